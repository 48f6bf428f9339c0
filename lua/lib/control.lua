-- The control hash of a provider, for seven days after its last use:
--
-- generation       ordinal and since: another one means that what was booked before is not in the state
-- pause            nobody sends before it
-- member:ID        seen, waits (callers queue there until about then), the last slot it was given, the number
--                  of its last booking, and the answer that it was told
-- idle:NAME        from when on that limit needs no key
--
-- Times in microseconds since the epoch.

local LIVE = 1500000 -- A member heard of within this time shares what is free.
local GONE = 60000000 -- A member unseen for this long has left.
local WEEK = 604800000 -- In milliseconds.

local control = {}

function control.load(key)
  local row = redis.call('HGETALL', key)
  local c = { key = key, pause = 0, members = {}, idle = {}, set = {}, del = {} }
  for at = 1, #row, 2 do
    local field, value = row[at], row[at + 1]
    local what, of = string.match(field, '^(%l+):?(.*)$')
    if what == 'member' then
      local seen, waits, last, number, answer = string.match(value, '^(%S+) (%S+) (%S+) (%S+) (.*)$')
      c.members[of] = {
        seen = tonumber(seen),
        waits = tonumber(waits),
        last = tonumber(last),
        number = number,
        answer = answer,
      }
    elseif what == 'idle' then
      c.idle[of] = tonumber(value)
    elseif what == 'pause' then
      c.pause = tonumber(value)
    elseif what == 'generation' then
      local ordinal, since = string.match(value, '^(%S+) (%S+)$')
      c.ordinal, c.since = tonumber(ordinal), tonumber(since)
    end
  end
  return c
end

function control.put(c, field, value)
  c.set[#c.set + 1] = field
  c.set[#c.set + 1] = value
end

-- No control hash, or a limit's key gone too early: the state was lost, and a new generation begins, newer
-- than any the caller has seen.
function control.renew(c, known, lost, now)
  if c.ordinal and not lost then
    return
  end
  c.ordinal, c.since = math.max(c.ordinal or 0, known) + 1, now
  control.put(c, 'generation', whole(c.ordinal) .. ' ' .. whole(now))
end

-- How many members are live, the one asking included, and whether others wait. Forgets who has left.
function control.count(c, asking, now)
  local live, contended = 1, false
  for id, member in pairs(c.members) do
    if member.seen <= now - GONE then
      c.members[id] = nil
      c.del[#c.del + 1] = 'member:' .. id
    elseif id ~= asking then
      if math.max(member.seen, member.waits) > now - LIVE then
        live = live + 1
      end
      contended = contended or member.waits > now
    end
  end
  return live, contended
end

-- A member that says goodbye counts as live no more. What it was told is kept as for any other: a repeated
-- goodbye must not give its permits back twice.
function control.tell(c, id, number, now, waits, last, goodbye, answer)
  local seen = goodbye and now - LIVE or now
  local row = { whole(seen), whole(waits), whole(last), number, answer }
  control.put(c, 'member:' .. id, table.concat(row, ' '))
end

function control.save(c, now)
  for name, at in pairs(c.idle) do
    if at <= now - GONE then
      c.del[#c.del + 1] = 'idle:' .. name
    end
  end
  send('HDEL', c.key, c.del)
  send('HSET', c.key, c.set)
  redis.call('PEXPIRE', c.key, WEEK)
end
