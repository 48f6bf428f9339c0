-- The token bucket: when tokens are there, and what a booking does to it.

function token_bucket.covers()
  return true
end

function token_bucket.beyond()
  return false
end

function token_bucket.max(rule)
  return rule.capacity
end

function token_bucket.spacing(rule, cost)
  return wait(rule, cost * rule.period)
end

local function copy(bucket)
  return {
    tokens = bucket.tokens,
    last_time = bucket.last_time,
    rem = bucket.rem,
    tail = bucket.tail,
    held = cells.view(bucket.held),
  }
end

function token_bucket.earliest(rule, bucket, t, cost, resume)
  local later = copy(bucket)
  restart(rule, later, resume)
  token_bucket.prune(rule, later, t)
  if later.tokens >= cost then
    return math.max(t, later.last_time)
  end
  while true do
    local at = later.last_time + wait(rule, (cost - later.tokens) * rule.period - later.rem)
    local cell = cells.get(later.held, 1)
    if cell and (cell.latest < at or cost > rule.capacity - later.held.used) then
      token_bucket.prune(rule, later, math.max(cell.latest, later.last_time))
    else
      return at
    end
    if later.tokens >= cost then
      return later.last_time
    end
  end
end

-- Room is never out of order in a bucket.
token_bucket.room = token_bucket.earliest

-- Charges `cost` as soon from `how.now` on as it is there; what flies later than that is held aside.
function token_bucket.take(rule, bucket, slot, cost, how, resume)
  local at = token_bucket.earliest(rule, bucket, how.now, cost, resume)
  restart(rule, bucket, resume)
  token_bucket.prune(rule, bucket, at)
  bucket.tokens = bucket.tokens - cost
  bucket.tail = at
  if slot > at then
    cells.add(bucket.held, rule.cell, slot, cost)
  end
end

-- What a permit costs on top. Nothing that was charged before can be given back to it any more.
function token_bucket.charge(rule, bucket, now, slot, extra)
  extra = math.min(extra, rule.capacity + bucket.tokens)
  if extra <= 0 then
    return false
  end
  bucket.tokens = bucket.tokens - extra
  bucket.tail = 0
  return true
end

-- Gives back only if nothing was charged since: a bucket that was full in between has lost the token
-- already, and a later slot may rest on it. What is held aside stays: its cell may hold others' tokens.
function token_bucket.give(rule, bucket, now, slot, cost)
  if slot ~= bucket.tail then
    return false
  end
  if bucket.last_time > now then
    bucket.last_time = bucket.last_time - math.floor(cost * rule.period / rule.tokens)
  else
    bucket.tokens = bucket.tokens + cost
    local capacity = rule.capacity - bucket.held.used
    if bucket.tokens >= capacity then
      bucket.tokens, bucket.rem = capacity, 0
    end
  end
  return true
end

function token_bucket.left(rule, bucket, now, resume)
  local later = copy(bucket)
  restart(rule, later, resume)
  token_bucket.prune(rule, later, now)
  return math.max(later.tokens, 0)
end

-- From when on this state equals a fresh one.
function token_bucket.idle_at(rule, bucket)
  local full = bucket.last_time
    + wait(rule, (rule.capacity - bucket.tokens) * rule.period - bucket.rem)
  local last = cells.last(bucket.held)
  if not last then
    return full
  end
  return math.max(full, last.latest) + wait(rule, bucket.held.used * rule.period)
end
