-- At most `max` in every interval of length `span`: a token comes back one span after its slot.
--
-- rule:   max, span (window and guard), cell (width), slack, paced. Times in microseconds.
-- stored: a HASH with limit, used, tails, pace, pace_rem, paced_until, and the log as a LIST beside it.
-- state:  the same with `log` for the list.

local rolling = {}

function rolling.read()
  local rule = { log_key = args.next_key() }
  rule.max, rule.span, rule.cell = args.number(), args.number(), args.number()
  rule.slack, rule.paced = args.number(), args.flag()
  return rule
end

-- The state, and whether it was there: a hash without its log is a loss like no hash at all.
function rolling.load(key, rule)
  local row = redis.call('HMGET', key, 'used', 'tails', 'pace', 'pace_rem', 'paced_until')
  local used = tonumber(row[1] or 0)
  local log = stored.list(rule.log_key, used)
  if not row[1] or (used > 0 and log.len == 0) then
    stored.clear(log)
    return { log = log, tails = { 0, 0, 0 }, pace = 0, pace_rem = 0, paced_until = 0 }, false
  end
  local tails = {}
  for tail in string.gmatch(row[2], '%d+') do
    tails[#tails + 1] = tonumber(tail)
  end
  return {
    log = log,
    tails = tails,
    pace = tonumber(row[3]),
    pace_rem = tonumber(row[4]),
    paced_until = tonumber(row[5]),
  }, true
end

function rolling.save(key, rule, state, text)
  local tails = {}
  for class, tail in ipairs(state.tails) do
    tails[class] = whole(tail)
  end
  redis.call('HSET', key, 'limit', text, 'used', whole(state.log.used), 'tails', table.concat(tails, ' '),
    'pace', whole(state.pace), 'pace_rem', whole(state.pace_rem), 'paced_until', whole(state.paced_until))
  stored.save(state.log)
end

function rolling.covers()
  return true
end

function rolling.beyond()
  return false
end

function rolling.max(rule)
  return rule.max
end

-- (cost * span + rem) / max and what remains, without a product above 2^53: numbers here are doubles.
local function spacing(cost, span, max, rem)
  local part = cost * (span % max) + rem
  return cost * math.floor(span / max) + math.floor(part / max), part % max
end

function rolling.spacing(rule, cost)
  return (spacing(cost, rule.span, rule.max, 0))
end

function rolling.prune(rule, state, now)
  cells.drop_until(state.log, now - rule.span)
end

-- The earliest slot from `t` on: in the order of its class (0 before 1 before 2), paced where the state says
-- so, with room. `resume` is the end of the last pause (0: none), from which the stream starts paced; `t` is
-- not before it.
function rolling.earliest(rule, state, t, cost, resume, class)
  t = math.max(t, state.tails[class + 1])
  if rolling.is_paced(rule, state, t, resume) then
    t = math.max(t, state.pace)
  end
  return rolling.room(rule, state, t, cost)
end

function rolling.is_paced(rule, state, t, resume)
  return rule.paced and t < math.max(state.paced_until, resume + 2 * rule.span)
end
