-- The limits of one call, laid out: several decided together, all or nothing. `costs` are what a permit takes of each,
-- in their order; 0: it does not touch that one.
--
-- desk: shut (a part of the provider is paused for longer than slots are near, and others are not: nothing is booked for
-- its end yet, or what is held for that would be missing for them); member (who calls); now; base (no slot is before it); resume (the end of the last pause that holds for the member); reach (slots that
-- lie further ahead are far; one that does not takes its places in flight with it, a far one gets them when it is
-- near: who waits for a window must not keep those of others); highest (class in use); handed_in (now was);
-- limits, each with resume (the end of the last pause of all that use it), live (members that use it, the caller included), contended (others wait) and burnt (what is free
-- now of which this call has taken something); touched (something was booked, returned, settled or exchanged: only
-- then is anything written).

local desk = {}
local far = {} -- See lib/far.lua.

-- `unused`: nobody flies in its place.
function desk.give(d, slot, costs, unused)
  for at, limit in ipairs(d.limits) do
    local cost = costs[at]
    if cost > 0 and limit.kind.give(limit.rule, limit.state, d.now, slot, cost) then
      d.touched = true
      if unused and limit.kind == rolling then
        rolling.ease(limit.rule, limit.state, d.now, cost)
      end
    end
  end
end

-- What a permit really cost is known: more than was booked for it, or less.
function desk.settle(d, change)
  local less = {}
  for at, cost in ipairs(change.costs) do
    less[at] = -cost
  end
  desk.give(d, change.slot, less, true)
  for at, limit in ipairs(d.limits) do
    local extra = change.costs[at]
    if extra > 0 and limit.kind.charge(limit.rule, limit.state, d.now, change.slot, extra, limit.resume) then
      d.touched = true
    end
  end
end

function desk.take(d, limit, slot, cost, how)
  limit.kind.take(limit.rule, limit.state, slot, cost, how, limit.resume)
  d.touched = true
end

local function is_too_much(d, costs)
  for at, limit in ipairs(d.limits) do
    if costs[at] > limit.kind.max(limit.rule) then
      return true
    end
  end
  return false
end

-- For so much there must be room: the lowest class leaves some to others, while there is somebody of the highest.
local function need(d, limit, class, cost)
  if class == 2 and d.highest == 0 then
    return math.min(cost + limit.reserve, limit.kind.max(limit.rule))
  end
  return cost
end

-- The earliest slot that all limits agree on: `question` is earliest or room. Without a class nothing is left to others.
local function agree(d, question, costs, class)
  local t = d.base
  -- What no limit ever admits would be looked for without end.
  while not is_too_much(d, costs) do
    local before = t
    for at, limit in ipairs(d.limits) do
      if costs[at] > 0 then
        local cost = need(d, limit, class, costs[at])
        t = limit.kind[question](limit.rule, limit.state, t, cost, limit.resume, class)
      end
    end
    -- With one limit its own word is final.
    if t == before or #d.limits == 1 then
      break
    end
  end
  return t
end

function desk.fit(d, costs, class)
  return agree(d, 'earliest', costs, class)
end

-- Whether the limit itself allows nothing earlier than `slot`.
function desk.decides(d, limit, slot, class, cost)
  return cost > 0 and slot > d.base
    and limit.kind.earliest(limit.rule, limit.state, slot - 1, need(d, limit, class, cost), limit.resume, class)
      >= slot
end

function desk.put(d, slot, costs, class)
  for at, limit in ipairs(d.limits) do
    if costs[at] > 0 then
      local waited = desk.decides(d, limit, slot, class, costs[at])
      local how = { now = d.now, class = class, waited = waited, paces = waited or slot <= d.base }
      desk.take(d, limit, slot, costs[at], how)
    end
  end
  far.note(d, slot, costs, class)
end

-- Whether a slot cannot be booked: it lies beyond the resets handed in, or there is no such slot at all.
function desk.is_beyond(d, slot, costs)
  for at, limit in ipairs(d.limits) do
    if costs[at] > 0 and limit.kind.beyond(limit.rule, slot) then
      return true
    end
  end
  return is_too_much(d, costs)
end

-- How many share the limits of which others wait for the same; nil: nobody does.
function desk.crowd(d, costs)
  local live
  for at, limit in ipairs(d.limits) do
    if costs[at] > 0 and limit.contended then
      live = math.max(live or 0, limit.live)
    end
  end
  return live
end

-- Of a cold burst one call takes its part at most; the next has the rest.
function desk.is_burnt(d, costs)
  for at, limit in ipairs(d.limits) do
    local part = math.max(math.floor(limit.kind.max(limit.rule) / limit.live), 1)
    if limit.live > 1 and costs[at] > 0 and limit.burnt + costs[at] > part then
      return true
    end
  end
  return false
end

-- It moves neither order nor pace.
local function put_out_of_order(d, slot, costs, class)
  for at, limit in ipairs(d.limits) do
    if costs[at] > 0 then
      local how = { now = d.now, class = class, waited = false, paces = false }
      desk.take(d, limit, slot, costs[at], how)
    end
  end
  far.note(d, slot, costs, class)
end

-- One that has passed gets the earliest room, out of order and pace and moving neither: sent to the tail
-- instead, a busy fleet loses half its quota. One that a pause, a lost state or a higher class has swallowed (it is
-- not `complete`) is booked anew.
local function exchange(d, booked, complete)
  if d.shut then
    return false
  end
  local anew = not complete or d.base == d.resume
  local slot = anew and desk.fit(d, booked.costs, booked.class) or agree(d, 'room', booked.costs)
  if desk.is_beyond(d, slot, booked.costs) or places.lacking(d, slot, booked.costs) then
    return false
  end
  places.take_at(d, slot, booked.costs)
  local put = anew and desk.put or put_out_of_order
  put(d, slot, booked.costs, booked.class)
  return slot
end

-- One that is still far gets the earliest room, too, if that is sooner: it was booked when less had come back. Not
-- while there is a pause, or all would move to its end; nor under a bucket, which may not take back what it gave.
local function move_up(d, booked)
  local slot, costs = booked.slot, booked.costs
  local fixed = slot <= d.now + d.reach or d.base == d.resume
  for at, limit in ipairs(d.limits) do
    fixed = fixed or costs[at] > 0 and limit.kind == token_bucket
  end
  if fixed then
    far.note(d, slot, costs, booked.class)
    return slot
  end
  desk.give(d, slot, costs, false)
  -- No sooner than slots are near: who gives back at once what it did not need would else move up at once, and so on.
  local base = d.base
  d.base = math.max(base, d.now + d.reach)
  local sooner = agree(d, 'room', costs, booked.class)
  d.base = base
  if sooner < slot and not desk.is_beyond(d, sooner, costs) and not places.lacking(d, sooner, costs) then
    places.take_at(d, sooner, costs)
    slot = sooner
  end
  put_out_of_order(d, slot, costs, booked.class)
  return slot
end

-- Slots at `from` and later are kept, or moved up if they are far, unless somebody else has them now or there is no
-- place in flight for them; the others are exchanged; false where nothing can be had yet. All of these are given back
-- before any is booked: they make room for each other.
function desk.confirm(d, confirms, ours, from)
  local slots, complete, kept = {}, {}, {}
  for at, booked in ipairs(confirms) do
    local own
    if ours then
      complete[at], own = far.redeem(d, booked)
    end
    local keeps = complete[at] and booked.slot >= from
    if keeps and not places.lacking(d, booked.slot, booked.costs) then
      places.take_at(d, booked.slot, booked.costs)
      kept[at] = true
    elseif ours then
      desk.give(d, booked.slot, own, keeps)
      if keeps then
        slots[at] = false
      end
    end
  end
  for at, booked in ipairs(confirms) do
    if kept[at] then
      slots[at] = move_up(d, booked)
    elseif slots[at] == nil then
      slots[at] = exchange(d, booked, complete[at])
    end
  end
  return slots
end

-- The earliest slot, and whose far slot it is if a lower class has to give it up.
function desk.best(d, costs, class)
  local slot = desk.fit(d, costs, class)
  local found = slot > d.base and far.best(d, costs, class, slot)
  if found then
    return found.slot, found
  end
  return slot
end

-- Before this nothing can be had by who wants the same, also not what others may have to give up. `stop`: where the
-- round ended.
function desk.outlook(d, want, stop)
  local slot = stop or desk.fit(d, want.costs, want.class)
  return far.first_below(d, want.costs, want.class, slot) or slot
end

-- `slot` and the limit that allows none earlier (counted from 0), unless it is the pause or there is none (-1).
function desk.refusal(d, slot, want, start)
  if slot == d.base and d.base > start then
    return { at = slot, limit = -1 }
  end
  for at, limit in ipairs(d.limits) do
    if desk.decides(d, limit, slot, want.class, want.costs[at]) then
      return { at = slot, limit = at - 1 }
    end
  end
  return { at = slot, limit = #d.limits > 0 and 0 or -1 }
end

function desk.is_paced(d, next)
  local limit = d.limits[next.limit + 1]
  if limit and limit.kind == rolling then
    return rolling.is_paced(limit.rule, limit.state, next.at, limit.resume)
  end
  if limit and limit.kind == flight then
    return limit.state.line[d.member] ~= nil
  end
  return limit ~= nil and limit.kind == token_bucket and next.at > d.base
end

function desk.left(d)
  local left = {}
  for at, limit in ipairs(d.limits) do
    left[at] = limit.kind.left(limit.rule, limit.state, d.now, limit.resume)
  end
  return left
end
