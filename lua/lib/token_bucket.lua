-- The classic token bucket: at most `capacity` at once and `tokens` per `period` after that.
--
-- rule:   capacity, tokens, period, cell. Times in microseconds; tokens and period are reduced.
-- stored: a HASH with limit, tokens, last_time, rem, tail, held; and capacity, rate and period: by which limit
--         they were counted.
-- bucket: tokens    whole tokens at last_time; below zero it is a debt
--         last_time when they were counted; in the future it is when the last token was promised: nothing
--                   before then
--         rem       parts of a token on top, in 1/period
--         tail      when the last booking was charged; 0: nothing can be given back to it any more
--         held      tokens charged when they were there, to fly later because of another limit or a slow
--                   reply: until then the capacity is lower by them, else they would fly on top of a full
--                   bucket

local token_bucket = {}

function token_bucket.read()
  local rule = {}
  rule.capacity, rule.tokens, rule.period, rule.cell =
    args.number(), args.number(), args.number(), args.number()
  return rule
end

-- Missing means empty at the beginning of time: by now it is full.
function token_bucket.load(key, rule)
  local row = redis.call('HMGET', key, 'tokens', 'last_time', 'rem', 'tail', 'held', 'capacity', 'rate', 'period')
  local was = { capacity = tonumber(row[6]), tokens = tonumber(row[7]), period = tonumber(row[8]) }
  local same = was.capacity == rule.capacity and was.tokens == rule.tokens and was.period == rule.period
  return {
    tokens = tonumber(row[1] or 0),
    last_time = tonumber(row[2] or 0),
    rem = tonumber(row[3] or 0),
    tail = tonumber(row[4] or 0),
    held = stored.parse(row[5] or ''),
    counted_by = was.period and not same and was,
  }, row[1] ~= false
end

function token_bucket.save(key, rule, bucket, text)
  redis.call('HSET', key, 'limit', text, 'tokens', whole(bucket.tokens), 'last_time',
    whole(bucket.last_time), 'rem', whole(bucket.rem), 'tail', whole(bucket.tail),
    'held', stored.text(bucket.held), 'capacity', whole(rule.capacity), 'rate', whole(rule.tokens),
    'period', whole(rule.period))
end

-- How long `parts` of a token take to come, rounded up: against the caller.
local function wait(rule, parts)
  return math.ceil(math.max(parts, 0) / rule.tokens)
end

-- Elapsed time earns tokens, up to the capacity. A clock that steps back earns nothing.
local function refill(rule, bucket, now)
  if now <= bucket.last_time then
    return
  end
  local capacity = rule.capacity - bucket.held.used
  local missing = (capacity - bucket.tokens) * rule.period - bucket.rem
  local elapsed = now - bucket.last_time
  if elapsed > wait(rule, missing) then
    -- Full: a token given back from now on is lost already.
    bucket.tokens, bucket.rem, bucket.tail = capacity, 0, 0
  else
    -- In the microsecond in which it gets full what that is too long is carried: else rounding would cost a
    -- little of every token.
    local parts = bucket.tokens * rule.period + bucket.rem + elapsed * rule.tokens
    bucket.rem = parts % rule.period
    bucket.tokens = (parts - bucket.rem) / rule.period
  end
  bucket.last_time = now
end

local fit, restart

-- Time passes. A pause that is over by then has emptied it, if one is told of.
function token_bucket.prune(rule, bucket, now, resume)
  if bucket.counted_by then
    fit(rule, bucket, now, resume)
  end
  if resume and resume <= now then
    restart(rule, bucket, resume)
  end
  local cell = cells.get(bucket.held, 1)
  while cell and cell.latest <= now do
    refill(rule, bucket, cell.latest)
    cells.drop_until(bucket.held, cell.latest)
    -- How much of a token given back would have been too much before, nobody knows any more.
    bucket.tail = 0
    cell = cells.get(bucket.held, 1)
  end
  refill(rule, bucket, now)
end

-- After a pause the bucket starts empty: nobody stampedes. A debt stays.
function restart(rule, bucket, resume)
  if bucket.last_time < resume then
    token_bucket.prune(rule, bucket, resume)
    if bucket.tokens >= 0 then
      bucket.tokens, bucket.rem = 0, 0
    end
  end
end

-- If the limit was another one what is missing stays missing: of a smaller bucket it may be more than it holds, which is
-- a debt, but never above the capacity once more. The time since then counts at the slower rate.
function fit(rule, bucket, now, resume)
  local was = bucket.counted_by
  bucket.counted_by = false
  if was.tokens / was.period < rule.tokens / rule.period then
    token_bucket.prune(was, bucket, now, resume)
  end
  if was.period ~= rule.period then
    bucket.rem = 0
  end
  local less = math.max(was.capacity - rule.capacity, 0)
  bucket.tokens = math.max(bucket.tokens - less, -rule.capacity)
end
