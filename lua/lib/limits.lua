-- The four kinds of limit behind one set of questions. Each answers read, load, save, covers, beyond, max,
-- spacing, prune, earliest, room, take, charge, give, left and idle_at.

local kinds = { rolling = rolling, bucket = token_bucket, calendar = calendar, flight = flight }
local limits = {}

function limits.read()
  return args.list(function()
    local limit = { key = args.next_key(), crowd_key = args.next_key() }
    limit.far_key = args.next_key()
    limit.name, limit.claim, limit.watched = args.text(), accord.claim(), args.flag()
    limit.reserve = args.number()
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

-- `idle` tells from when on a limit needs no key; tells whether one was lost before that.
function limits.load(list, idle, now)
  local lost = false
  for _, limit in ipairs(list) do
    local found
    limit.state, found = limit.kind.load(limit.key, limit.rule)
    lost = lost or (not found and (idle[limit.name] or 0) > now)
  end
  return lost
end

-- Time passes.
function limits.prune(list, now)
  for _, limit in ipairs(list) do
    limit.kind.prune(limit.rule, limit.state, now, limit.resume)
  end
end

-- Saves what may have changed, and notes in the control hash from when on each limit needs no key.
function limits.save(list, c, now, handed_in)
  for _, limit in ipairs(list) do
    local idle = limit.kind.idle_at(limit.rule, limit.state)
    local log_key = limit.rule.log_key
    if idle > 0 then
      limit.kind.save(limit.key, limit.rule, limit.state, limit.claim.text)
      keep(limit.key, idle, now, handed_in)
      if log_key then
        keep(log_key, idle, now, handed_in)
      end
      if limit.watched then
        control.put(c, 'idle:' .. limit.name, whole(idle))
      end
    else
      redis.call('DEL', limit.key)
      if log_key then
        redis.call('DEL', log_key)
      end
      if limit.watched then
        c.del[#c.del + 1] = 'idle:' .. limit.name
      end
    end
  end
end
