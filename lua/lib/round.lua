-- What one call gets of the desk, and where it must stop.
--
-- round: start (now and the time the reply takes); reach (slots may be that far ahead); before (the last slot
-- it was given before); quantum (slot time one call may take while others wait); burst (permits that are free now that one call may take); far_held;
-- granted, refused, used, burnt, last; stop (not granted: the slot at which the round ended); dead (the last
-- refusal, with its cost and budget: who asks for no less and waits no longer shares it).

local round = {}

function round.begin(d, start, reach, before, far_held)
  return {
    start = start,
    reach = reach,
    before = before,
    quantum = reach,
    burst = d.live > 1 and math.max(math.floor(desk.smallest(d) / d.live), 1) or math.huge,
    far_held = far_held,
    granted = 0,
    refused = 0,
    used = 0,
    burnt = 0,
    last = 0,
  }
end

local function step_of(d, cost)
  local step = 0
  for _, limit in ipairs(d.limits) do
    step = math.max(step, limit.kind.spacing(limit.rule, cost))
  end
  return step
end

-- Whether the round ends before `slot`. While others wait a call takes its part of what was booked since its
-- own last slot, or of what is free as far as it reaches, whichever is more: not only the long shares are fair.
local function ends(d, r, want, slot)
  if d.contended and slot > d.base and r.used == 0 then
    local time = math.max(d.now + r.reach - slot, slot - r.before)
    r.quantum = math.floor(math.min(math.max(time, 0), r.reach) / d.live)
  end
  if desk.is_beyond(d, slot, want.cost) then
    return true
  elseif slot > d.now + r.reach and (r.granted > 0 or r.far_held) then
    return true
  elseif r.granted == 0 then
    return false
  elseif slot <= d.base then
    return r.burnt + want.cost > r.burst
  end
  return r.used >= r.quantum
end

-- Some of the `count` callers are granted, then the rest refused or left for the next call.
function round.serve(d, r, want)
  local outcome = { slots = {} }
  local budget = want.budget or math.huge
  local step = step_of(d, want.cost)
  for done = 0, want.count - 1 do
    if r.dead and want.cost >= r.dead.cost and budget <= r.dead.budget then
      outcome.refused = r.dead.refused
      r.refused = r.refused + want.count - done
      break
    end
    if r.stop then
      break
    end
    local slot = desk.fit(d, want.cost)
    if slot > r.start and slot - d.now > budget then
      outcome.refused = desk.refusal(d, slot, want.cost, r.start)
      r.dead = { cost = want.cost, budget = budget, refused = outcome.refused }
      r.refused = r.refused + want.count - done
      break
    end
    if ends(d, r, want, slot) then
      r.stop = slot
      break
    end
    desk.put(d, slot, want.cost)
    outcome.slots[#outcome.slots + 1] = slot
    r.granted = r.granted + 1
    r.last = math.max(r.last, slot)
    if slot <= d.base then
      r.burnt = r.burnt + want.cost
    else
      r.used = r.used + step
    end
  end
  return outcome
end
