-- The control hash of a provider, for seven days after its last use:
--
-- generation       ordinal and since: another one means that what was booked before is not in the state
-- pause            nobody sends before it; of parts of the provider see lib/pauses.lua
-- idle:NAME        from when on that limit needs no key; of the limits that are watched
-- limit:, till:    see lib/accord.lua
--
-- Times in microseconds since the epoch.

local WEEK = 604800000 -- In milliseconds.

local control = {}

-- With what it knows of the limits in `list`.
function control.load(key, list)
  local fields = { 'generation', 'pause' }
  for _, limit in ipairs(list) do
    if limit.watched then
      fields[#fields + 1] = 'idle:' .. limit.name
    end
  end
  local row = redis.call('HMGET', key, unpack(fields))
  local ordinal, since = string.match(row[1] or '', '^(%S+) (%S+)$')
  local c = { key = key, ordinal = tonumber(ordinal), since = tonumber(since), set = {}, del = {} }
  c.pause = tonumber(row[2] or 0)
  c.idle = {}
  for at = 3, #fields do
    c.idle[string.sub(fields[at], 6)] = tonumber(row[at])
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

function control.save(c)
  send('HDEL', c.key, c.del)
  send('HSET', c.key, c.set)
  redis.call('PEXPIRE', c.key, WEEK)
end
