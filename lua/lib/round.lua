-- What one call gets of the desk, and where it must stop.
--
-- round: start (now and the time the reply takes); before (the last slot it was given before); quantum (slot time one
-- call may take while others wait); far_held; granted, refused, used, last; stop (not granted: the slot at which the
-- round ended); full and missing (who came first wants so many places in flight of this limit, and waits for them);
-- dead (the last refusal, with its costs, class and budget: who asks for no less, is no better and waits no longer
-- shares it).

local round = {}

function round.begin(start, reach, before, far_held)
  return {
    start = start,
    before = before,
    quantum = reach,
    far_held = far_held,
    granted = 0,
    refused = 0,
    used = 0,
    last = 0,
  }
end

-- What it takes of a saturated stream, in time.
local function step_of(d, costs)
  local step = 0
  for at, limit in ipairs(d.limits) do
    step = math.max(step, limit.kind.spacing(limit.rule, costs[at]))
  end
  return step
end

-- Whether it takes at least as much of every limit.
local function covers(costs, others)
  for at, cost in ipairs(costs) do
    if cost < others[at] then
      return false
    end
  end
  return true
end

-- Whether the round ends before `slot`. While others wait a call takes its part of what was booked since its
-- own last slot, or of what is free as far as it reaches, whichever is more: not only the long shares are fair.
local function ends(d, r, want, slot)
  local live = slot > d.base and r.used == 0 and desk.crowd(d, want.costs)
  if live then
    local time = math.max(d.now + d.reach - slot, slot - r.before)
    r.quantum = math.floor(math.min(math.max(time, 0), d.reach) / live)
  end
  if desk.is_beyond(d, slot, want.costs) then
    return true
  elseif slot > d.now + d.reach and (r.granted > 0 or r.far_held) then
    return true
  elseif r.granted == 0 then
    return false
  elseif slot <= d.base then
    return desk.is_burnt(d, want.costs)
  end
  return r.used >= r.quantum
end

-- Some of the `count` callers are granted, then the rest refused or left for the next call.
function round.serve(d, r, want)
  local outcome = { slots = {} }
  local budget = want.budget or math.huge
  if d.shut then
    if d.base - d.now > budget then
      outcome.refused = { at = d.base, limit = -1 }
      r.refused = r.refused + want.count
    end
    r.stop = d.base
    return outcome
  end
  for done = 0, want.count - 1 do
    if r.dead and covers(want.costs, r.dead.costs) and want.class >= r.dead.class and budget <= r.dead.budget then
      outcome.refused = r.dead.refused
      r.refused = r.refused + want.count - done
      break
    end
    -- Who waits for a place holds up those behind it who want one of the same, and nobody else: the call
    -- that has the place may need a redirect hop, which takes none, before it can end.
    local behind = r.full and want.costs[r.full] > 0 and r.full
    if (behind and budget > 0) or (r.stop and not behind) then
      break
    end
    local slot, found = desk.best(d, want.costs, want.class)
    local full = behind or places.lacking(d, slot, want.costs)
    local late = slot > r.start and slot - d.now > budget
    if late or (budget == 0 and full) then
      local none = not late and places.none(d, full)
      outcome.refused = none or desk.refusal(d, slot, want, r.start)
      r.dead = { costs = want.costs, class = want.class, budget = budget, refused = outcome.refused }
      r.refused = r.refused + want.count - done
      break
    end
    if full then
      -- A place comes back whenever a call ends: nobody knows when.
      r.full, r.missing = r.full or full, r.missing or want.costs[full]
      break
    end
    if ends(d, r, want, slot) then
      r.stop = slot
      break
    end
    if found then
      far.claim(d, want.costs, want.class, found)
    else
      desk.put(d, slot, want.costs, want.class)
    end
    places.take_at(d, slot, want.costs)
    outcome.slots[#outcome.slots + 1] = slot
    r.granted = r.granted + 1
    r.last = math.max(r.last, slot)
    if slot > d.base then
      r.used = r.used + step_of(d, want.costs)
    else
      for at, limit in ipairs(d.limits) do
        limit.burnt = limit.burnt + want.costs[at]
      end
    end
  end
  return outcome
end
