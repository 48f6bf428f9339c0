-- The log of a rolling window: where there is room, and what a booking does to it.

-- Nothing is booked after `t`: only the interval that ends at `t` counts.
local function room_at_the_end(rule, state, t, cost)
  local used = state.log.used
  local at = 1
  local cell = cells.get(state.log, at)
  while cell do
    if cell.latest > t - rule.span then
      if used + cost <= rule.max then
        break
      end
      t = cell.latest + rule.span
    end
    used = used - cell.count
    at = at + 1
    cell = cells.get(state.log, at)
  end
  return t
end

-- The first cell of the last interval containing `t` that has no room for `cost`, else nil.
local function overfull(rule, state, t, cost)
  local log = state.log
  local first = 1
  local cell = cells.get(log, first)
  while cell and cell.latest <= t - rule.span do
    first = first + 1
    cell = cells.get(log, first)
  end
  local behind, used, found = first, 0, nil
  while cell do
    local begin = math.min(cell.latest, t)
    local next = cells.get(log, behind)
    while next and next.earliest < begin + rule.span do
      used = used + next.count
      behind = behind + 1
      next = cells.get(log, behind)
    end
    if used + cost > rule.max then
      found = cell.latest
    end
    if cell.latest > t then
      break
    end
    used = used - cell.count
    first = first + 1
    cell = cells.get(log, first)
  end
  return found
end

-- The earliest moment from `t` on at which every interval that contains it, what is booked in the
-- future included, has room for `cost`.
function rolling.room(rule, state, t, cost)
  -- The usual case, without a walk.
  if state.log.used + cost <= rule.max then
    return t
  end
  while true do
    local last = cells.last(state.log)
    if not last then
      return t
    elseif last.latest <= t then
      return room_at_the_end(rule, state, t, cost)
    end
    local oldest = overfull(rule, state, t, cost)
    if not oldest then
      return t
    end
    t = oldest + rule.span
  end
end

-- The next slot is as much later as `cost` takes of a saturated stream.
local function pace_on(rule, state, place, cost, resume)
  local base = math.max(state.pace, resume, place - rule.slack)
  local rem = base == state.pace and state.pace_rem or 0
  local step
  step, state.pace_rem = spacing(cost, rule.span, rule.max, rem)
  state.pace = base + step
end

-- A slot that waits for ANOTHER limit moves neither order nor pace, else a saturated route would hold up
-- the rest.
function rolling.take(rule, state, slot, cost, how, resume)
  cells.add(state.log, rule.cell, slot, cost)
  if how.waited then
    state.tails[how.class + 1] = math.max(state.tails[how.class + 1], slot)
  end
  if not rule.paced then
    return
  end
  -- Paced from the booking that fills the window, until two windows pass without one that finds it half
  -- full. A stream at the very limit never refills a hole: it would look idle and burst again.
  local full = state.log.used + cost > rule.max
  local busy = rolling.is_paced(rule, state, slot, resume) and 2 * state.log.used >= rule.max
  if full or busy then
    state.paced_until = math.max(state.paced_until, slot + 2 * rule.span)
  end
  if how.paces then
    -- What is free now has its place now, also if the reply takes a while: else a far replica would leave a
    -- hole before each of its slots.
    pace_on(rule, state, how.waited and slot or how.now, cost, resume)
  end
end

-- What a permit costs on top of what was booked, at its slot; the stream slows down by as much, but never for longer
-- than until one further window has passed.
function rolling.charge(rule, state, now, slot, extra, resume)
  extra = math.min(extra, 2 * rule.max - state.log.used)
  if extra <= 0 or slot <= now - rule.span then
    return false
  end
  cells.add(state.log, rule.cell, slot, extra)
  if rule.paced then
    if state.log.used >= rule.max then
      state.paced_until = math.max(state.paced_until, math.max(slot, now) + 2 * rule.span)
    end
    local pace, pace_rem = state.pace, state.pace_rem
    pace_on(rule, state, now, extra, resume)
    local latest = slot + 2 * rule.span
    if state.pace > latest then
      if pace < latest then
        pace, pace_rem = latest, 0
      end
      state.pace, state.pace_rem = pace, pace_rem
    end
  end
  return true
end

-- Not of a window that is over: others may lie in the same cell.
function rolling.give(rule, state, now, slot, cost)
  return slot > now - rule.span and cells.remove(state.log, rule.cell, slot, cost)
end

-- What came back unused leaves its place in the pace, too: else a fleet that books ahead and gives back would be
-- slowed down by what it never sent. But what has passed is over, or much that comes back at once would be a burst.
function rolling.ease(rule, state, now, cost)
  if not rule.paced or state.pace <= now then
    return
  end
  local step, part = spacing(cost, rule.span, rule.max, 0)
  local rem = state.pace_rem - part
  if rem < 0 then
    step, rem = step + 1, rem + rule.max
  end
  state.pace, state.pace_rem = state.pace - step, rem
  if state.pace < now then
    state.pace, state.pace_rem = now, 0
  end
end

function rolling.left(rule, state)
  return math.max(rule.max - state.log.used, 0)
end

-- From when on this state equals a fresh one.
function rolling.idle_at(rule, state)
  local last = cells.last(state.log)
  local free = last and last.latest + rule.span or 0
  return math.max(free, state.paced_until, state.pace, unpack(state.tails))
end
