-- At most so many calls at once: a place is taken when a call may set out and is free again when it has ended.
--
-- rule:   max, lease (a member unheard of for so long has lost its places, in microseconds).
-- stored: a HASH with limit, last (the number of who came last), for each holder held:MEMBER `places until`, and for
--         each that waits line:MEMBER `number places until`.
-- state:  holders and line by member, last, and the names of what is `stored`.
--
-- A member always tells how many places it holds; the state never counts up or down by itself. So whatever was lost
-- or told twice, late or out of order is right again with the next call, and what comes back late adds no room.

-- Who waits for a place asks again within this time, twice as long as it means to, or has left the line.
local WAITS = 1000000

local flight = {}

function flight.read()
  return { max = args.number(), lease = args.number() }
end

function flight.load(key)
  local row = redis.call('HGETALL', key)
  local state = { holders = {}, line = {}, last = 0, stored = {} }
  for at = 1, #row, 2 do
    local field, value = row[at], row[at + 1]
    local what, member = string.match(field, '^(%l+):(%x+)$')
    if what == 'held' then
      local count, till = string.match(value, '^(%d+) (%d+)$')
      state.holders[member] = { places = tonumber(count), till = tonumber(till) }
      state.stored[field] = value
    elseif what == 'line' then
      local number, count, till = string.match(value, '^(%d+) (%d+) (%d+)$')
      state.line[member] = { number = tonumber(number), places = tonumber(count), till = tonumber(till) }
      state.stored[field] = value
    elseif field == 'last' then
      state.last = tonumber(value)
    end
  end
  return state, #row > 0
end

function flight.save(key, rule, state, text)
  local set, del = { 'limit', text, 'last', whole(state.last) }, {}
  for member, holder in pairs(state.holders) do
    set[#set + 1] = 'held:' .. member
    set[#set + 1] = whole(holder.places) .. ' ' .. whole(holder.till)
  end
  for member, waiting in pairs(state.line) do
    set[#set + 1] = 'line:' .. member
    set[#set + 1] = whole(waiting.number) .. ' ' .. whole(waiting.places) .. ' ' .. whole(waiting.till)
  end
  for field in pairs(state.stored) do
    local what, member = string.match(field, '^(%l+):(%x+)$')
    if not (what == 'held' and state.holders or state.line)[member] then
      del[#del + 1] = field
    end
  end
  send('HSET', key, set)
  send('HDEL', key, del)
end

function flight.covers()
  return true
end

function flight.beyond()
  return false
end

function flight.max(rule)
  return rule.max
end

function flight.spacing()
  return 0
end

function flight.prune(rule, state, now)
  for member, holder in pairs(state.holders) do
    if holder.till <= now then
      state.holders[member] = nil
    end
  end
  for member, waiting in pairs(state.line) do
    if waiting.till <= now then
      state.line[member] = nil
    end
  end
end

-- Its places are no slots: who has one is decided beside them (lib/places.lua).
function flight.room(rule, state, t)
  return t
end

flight.earliest = flight.room

function flight.take() end

function flight.give()
  return false
end

flight.charge = flight.give

-- From when on this state equals a fresh one.
function flight.idle_at(rule, state)
  local last = 0
  for _, holder in pairs(state.holders) do
    last = math.max(last, holder.till)
  end
  for _, waiting in pairs(state.line) do
    last = math.max(last, waiting.till)
  end
  return last
end
