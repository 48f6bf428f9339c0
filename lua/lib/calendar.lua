-- At most `max` between two resets of a calendar. Zones are the caller's business: it hands in the resets.
--
-- rule:   max, guard, resets: consecutive, the first not after now. Times in microseconds.
-- stored: a HASH with limit, and for each period used:RESET, named by the reset that ends it.
-- state:  `used` by reset, and the names of what is `stored`.

local calendar = {}

function calendar.read()
  return { max = args.number(), guard = args.number(), resets = args.list(args.number) }
end

function calendar.load(key)
  local row = redis.call('HGETALL', key)
  local state = { used = {}, stored = {} }
  for at = 1, #row, 2 do
    local reset = tonumber(string.match(row[at], '^used:(%d+)$'))
    if reset then
      state.used[reset] = tonumber(row[at + 1])
      state.stored[reset] = row[at]
    end
  end
  return state, #row > 0
end

function calendar.save(key, rule, state, text)
  local set, del = { 'limit', text }, {}
  for reset, used in pairs(state.used) do
    set[#set + 1] = 'used:' .. whole(reset)
    set[#set + 1] = whole(used)
  end
  for reset, field in pairs(state.stored) do
    if not state.used[reset] then
      del[#del + 1] = field
    end
  end
  send('HSET', key, set)
  send('HDEL', key, del)
end

-- Whether the resets handed in allow a decision at `now`.
function calendar.covers(rule, now)
  return #rule.resets > 2 and rule.resets[1] <= now and now < rule.resets[3]
end

local function end_of(rule)
  local last = rule.resets[#rule.resets]
  return last and last - rule.guard or 0
end

-- Slots from here on lie beyond the resets handed in.
function calendar.beyond(rule, t)
  return t >= end_of(rule)
end

function calendar.max(rule)
  return rule.max
end

function calendar.spacing()
  return 0
end

-- The resets that count for a slot at `t`: of the period after its own if that is near, of its own, of the
-- one before. The provider's clock is not ours: near a reset a slot may land on either side of it.
local function periods(rule, t)
  local next = 1
  while rule.resets[next] and rule.resets[next] <= t do
    next = next + 1
  end
  local start, own = rule.resets[next - 1], rule.resets[next]
  -- Of the period that ends with the first reset only what lies near that may still count.
  if not own or t >= end_of(rule) or (next == 1 and t < own - rule.guard) then
    return {}
  end
  local list = {}
  if t >= own - rule.guard and rule.resets[next + 1] then
    list[1] = rule.resets[next + 1]
  end
  list[#list + 1] = own
  if start and t < start + rule.guard then
    list[#list + 1] = start
  end
  return list
end
