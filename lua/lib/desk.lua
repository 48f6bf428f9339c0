-- The limits of one call, laid out: several decided together, all or nothing.
--
-- desk: now; base (no slot is before it); resume (the end of the last pause); live (members, the caller
-- included); contended (others wait); limits; touched (something was booked, returned or exchanged: only
-- then is anything written).

local desk = {}

-- `unused`: nobody flies in its place.
function desk.give(d, booked, unused)
  for _, limit in ipairs(d.limits) do
    if limit.kind.give(limit.rule, limit.state, d.now, booked.slot, booked.cost) then
      d.touched = true
      if unused and limit.kind == rolling then
        rolling.ease(limit.rule, limit.state, d.now, booked.cost)
      end
    end
  end
end

local function take(d, limit, slot, cost, how)
  limit.kind.take(limit.rule, limit.state, slot, cost, how, d.resume)
  d.touched = true
end

function desk.smallest(d)
  local least = math.huge
  for _, limit in ipairs(d.limits) do
    least = math.min(least, limit.kind.max(limit.rule))
  end
  return least
end

-- The earliest slot that all limits agree on: `question` is earliest or room.
local function agree(d, question, cost)
  local t = d.base
  -- What no limit ever admits would be looked for without end.
  while cost <= desk.smallest(d) do
    local before = t
    for _, limit in ipairs(d.limits) do
      t = limit.kind[question](limit.rule, limit.state, t, cost, d.resume)
    end
    -- With one limit its own word is final.
    if t == before or #d.limits == 1 then
      break
    end
  end
  return t
end

function desk.fit(d, cost)
  return agree(d, 'earliest', cost)
end

-- Whether the limit itself allows nothing earlier than `slot`.
local function decides(d, limit, slot, cost)
  return slot > d.base and limit.kind.earliest(limit.rule, limit.state, slot - 1, cost, d.resume) >= slot
end

function desk.put(d, slot, cost)
  for _, limit in ipairs(d.limits) do
    local waited = decides(d, limit, slot, cost)
    take(d, limit, slot, cost, { now = d.now, waited = waited, paces = waited or slot <= d.base })
  end
end

-- Whether a slot cannot be booked: it lies beyond the resets handed in, or there is no such slot at all.
function desk.is_beyond(d, slot, cost)
  for _, limit in ipairs(d.limits) do
    if limit.kind.beyond(limit.rule, slot) then
      return true
    end
  end
  return cost > desk.smallest(d)
end

-- One that has passed gets the earliest room, out of order and pace and moving neither: sent to the tail
-- instead, a busy fleet loses half its quota. One that a pause or a lost state has swallowed is booked anew.
local function exchange(d, booked, ours)
  local anew = not ours or d.base == d.resume
  local slot = agree(d, anew and 'earliest' or 'room', booked.cost)
  if desk.is_beyond(d, slot, booked.cost) then
    return false
  end
  if anew then
    desk.put(d, slot, booked.cost)
    return slot
  end
  for _, limit in ipairs(d.limits) do
    take(d, limit, slot, booked.cost, { now = d.now, waited = false, paces = false })
  end
  return slot
end

-- Slots at `from` and later are kept; the others are exchanged, false where nothing can be had yet. All of these are
-- given back before any is booked: they make room for each other.
function desk.confirm(d, confirms, ours, from)
  local slots = {}
  for at, booked in ipairs(confirms) do
    if ours and booked.slot >= from then
      slots[at] = booked.slot
    elseif ours then
      desk.give(d, booked, false)
    end
  end
  for at, booked in ipairs(confirms) do
    slots[at] = slots[at] or exchange(d, booked, ours)
  end
  return slots
end

-- `slot` and the limit that allows none earlier (counted from 0), unless it is the pause (-1).
function desk.refusal(d, slot, cost, start)
  if slot == d.base and d.base > start then
    return { at = slot, limit = -1 }
  end
  for at, limit in ipairs(d.limits) do
    if decides(d, limit, slot, cost) then
      return { at = slot, limit = at - 1 }
    end
  end
  return { at = slot, limit = 0 }
end

function desk.is_paced(d, next)
  local limit = d.limits[next.limit + 1]
  if limit and limit.kind == rolling then
    return rolling.is_paced(limit.rule, limit.state, next.at, d.resume)
  end
  return limit ~= nil and limit.kind == token_bucket and next.at > d.base
end

function desk.left(d)
  local left = {}
  for at, limit in ipairs(d.limits) do
    left[at] = limit.kind.left(limit.rule, limit.state, d.now, d.resume)
  end
  return left
end
