-- The calendar window: where there is room, and what a booking does to it.

function calendar.prune(rule, state, now)
  for reset in pairs(state.used) do
    if reset + rule.guard <= now then
      state.used[reset] = nil
    end
  end
end

-- The earliest slot with room, or the end of the resets where that is not known.
function calendar.room(rule, state, t, cost)
  local full, known
  repeat
    full, known = nil, false
    for _, reset in ipairs(periods(rule, t)) do
      known = true
      if not full and (state.used[reset] or 0) + cost > rule.max then
        full = reset
      end
    end
    if full then
      t = full + rule.guard
    end
  until not full
  return known and t or math.max(t, end_of(rule))
end

-- Order is that of the calls.
calendar.earliest = calendar.room

-- Tells whether a period counts otherwise than before.
local function change(rule, state, slot, by)
  local changed = false
  for _, reset in ipairs(periods(rule, slot)) do
    local before = state.used[reset]
    local used = (before or 0) + by
    state.used[reset] = used > 0 and used or nil
    changed = changed or state.used[reset] ~= before
  end
  return changed
end

function calendar.take(rule, state, slot, cost)
  change(rule, state, slot, cost)
end

-- The use of the fullest period that counts at `t`; where none is known there is no room.
local function most(rule, state, t)
  local list = periods(rule, t)
  if #list == 0 then
    return rule.max
  end
  local used = 0
  for _, reset in ipairs(list) do
    used = math.max(used, state.used[reset] or 0)
  end
  return used
end

-- What a permit costs on top, in the periods of its slot.
function calendar.charge(rule, state, now, slot, extra)
  extra = math.min(extra, 2 * rule.max - most(rule, state, slot))
  return extra > 0 and change(rule, state, slot, extra)
end

function calendar.give(rule, state, now, slot, cost)
  return change(rule, state, slot, -cost)
end

function calendar.left(rule, state, now)
  return math.max(rule.max - most(rule, state, now), 0)
end

-- From when on this state equals a fresh one.
function calendar.idle_at(rule, state)
  local last = 0
  for reset in pairs(state.used) do
    last = math.max(last, reset + rule.guard)
  end
  return last
end
