-- Who uses a limit: a sorted set of members, each until when it counts as live. One that has callers queued until
-- some moment counts as if it had been heard of then: that is how who waits is told from who was only seen.

local LIVE = 1500000 -- A member heard of within this time shares what is free.

local crowd = {}

-- How many members are live, the one asking included, and whether others wait.
function crowd.look(key, asking, now)
  local own = tonumber(redis.call('ZSCORE', key, asking))
  local function others(after)
    local count = redis.call('ZCOUNT', key, '(' .. whole(after), '+inf')
    return own and own > after and count - 1 or count
  end
  local live = 1 + others(now)
  return live, live > 1 and others(now + LIVE) > 0
end

-- A member was heard of, and has callers queued until `waits`, or leaves.
function crowd.tell(key, member, now, waits, leaves, handed_in)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', whole(now))
  if leaves then
    redis.call('ZREM', key, member)
    return
  end
  redis.call('ZADD', key, whole(math.max(waits, now) + LIVE), member)
  keep(key, math.max(waits, now) + GONE, now, handed_in)
end
