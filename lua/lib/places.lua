-- Places in flight at the desk: they are no slots, and are decided beside them.

local places = {}

local function flights(d)
  local at = 0
  return function()
    repeat
      at = at + 1
    until not d.limits[at] or d.limits[at].kind == flight
    local limit = d.limits[at]
    if limit then
      return at, limit.rule, limit.state
    end
  end
end

-- The member tells how many places it holds.
function places.seat(d, held)
  for at, rule, state in flights(d) do
    local known = state.holders[d.member]
    flight.hold(rule, state, d.now, d.member, held[at])
    d.touched = d.touched or known ~= nil or held[at] > 0
  end
end

function places.take(d, costs)
  for at, rule, state in flights(d) do
    if costs[at] > 0 then
      flight.take_places(rule, state, d.now, d.member, costs[at])
      d.touched = true
    end
  end
end

-- With a slot that is not far.
function places.take_at(d, slot, costs)
  if slot <= d.now + d.reach then
    places.take(d, costs)
  end
end

-- The first limit that has no place for it, else nil.
function places.full(d, costs)
  for at, rule, state in flights(d) do
    if costs[at] > 0 and not flight.has_room(rule, state, d.member, costs[at]) then
      return at
    end
  end
end

-- The first limit that has no place for such a slot now, else nil.
function places.lacking(d, slot, costs)
  return slot <= d.now + d.reach and places.full(d, costs) or nil
end

-- There is no place under this limit, and nobody knows when.
function places.none(d, at)
  return { at = d.now, limit = at - 1 }
end

-- Who found so many places missing stands in the line for them; who wants none any more leaves it.
function places.queue(d, full, count)
  for at, _, state in flights(d) do
    local wanted = full == at and count or 0
    if wanted > 0 or state.line[d.member] then
      flight.queue(state, d.now, d.member, wanted)
      d.touched = true
    end
  end
end

-- Other members whose turn it is.
function places.entitled(d)
  local members = {}
  for _, rule, state in flights(d) do
    for _, member in ipairs(flight.entitled(rule, state)) do
      members[member] = member ~= d.member or nil
    end
  end
  return members
end
