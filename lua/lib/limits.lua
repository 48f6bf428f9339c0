-- The three kinds of limit behind one set of questions. Each answers read, load, save, covers, beyond, max,
-- spacing, prune, earliest, room, take, give, left and idle_at.

local kinds = { rolling = rolling, bucket = token_bucket, calendar = calendar }
local limits = {}

function limits.read()
  return args.list(function()
    local limit = { key = args.next_key(), name = args.text(), text = args.text() }
    limit.kind = kinds[args.text()]
    limit.rule = limit.kind.read()
    return limit
  end)
end

function limits.cover(list, now)
  for _, limit in ipairs(list) do
    if not limit.kind.covers(limit.rule, now) then
      return false
    end
  end
  return true
end

-- Loads and prunes; `resume` is the end of the last pause. `idle` tells from when on a limit needs no key; tells
-- whether one was lost before that.
function limits.load(list, idle, now, resume)
  local lost = false
  for _, limit in ipairs(list) do
    local found
    limit.state, found = limit.kind.load(limit.key, limit.rule)
    lost = lost or (not found and (idle[limit.name] or 0) > now)
    limit.kind.prune(limit.rule, limit.state, now, resume)
  end
  return lost
end

-- Keys live until they would equal none, and a little longer; at least an hour where Redis' expiry does not
-- know the clock.
local function keep(key, idle, now, handed_in)
  local ms = math.max(math.ceil((idle - now) / 1000), 0) + 1000
  redis.call('PEXPIRE', key, whole(handed_in and math.max(ms, 3600000) or ms))
end

-- Saves what may have changed, and notes in the control hash from when on each limit needs no key.
function limits.save(list, c, now, handed_in)
  for _, limit in ipairs(list) do
    local idle = limit.kind.idle_at(limit.rule, limit.state)
    local log_key = limit.rule.log_key
    if idle > 0 then
      limit.kind.save(limit.key, limit.rule, limit.state, limit.text)
      keep(limit.key, idle, now, handed_in)
      if log_key then
        keep(log_key, idle, now, handed_in)
      end
      control.put(c, 'idle:' .. limit.name, whole(idle))
    else
      redis.call('DEL', limit.key)
      if log_key then
        redis.call('DEL', log_key)
      end
      c.del[#c.del + 1] = 'idle:' .. limit.name
    end
  end
end
