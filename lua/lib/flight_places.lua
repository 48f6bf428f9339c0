-- Calls in flight: who holds a place, and who waits for one.

-- A member calls, and holds so many places.
function flight.hold(rule, state, now, member, places)
  state.holders[member] = places > 0 and { places = places, till = now + rule.lease } or nil
end

function flight.free(rule, state)
  local free = rule.max
  for _, holder in pairs(state.holders) do
    free = free - holder.places
  end
  return free
end

function flight.left(rule, state)
  return math.max(flight.free(rule, state), 0)
end

-- Whether a member may take so many now: who stands before it in the line has its own coming.
function flight.has_room(rule, state, member, cost)
  local own, ahead = state.line[member], 0
  for _, waiting in pairs(state.line) do
    if waiting.number < (own and own.number or math.huge) then
      ahead = ahead + waiting.places
    end
  end
  return flight.free(rule, state) - ahead >= cost
end

-- Takes so many more. Who wants others goes to the end of the line.
function flight.take_places(rule, state, now, member, cost)
  local holder = state.holders[member]
  flight.hold(rule, state, now, member, (holder and holder.places or 0) + cost)
  state.line[member] = nil
end

-- Stands in the line for so many, at its end unless it stands there already; for none, it leaves.
function flight.queue(state, now, member, count)
  if count == 0 then
    state.line[member] = nil
    return
  end
  local own = state.line[member]
  if not own then
    state.last = state.last + 1
  end
  state.line[member] = { number = own and own.number or state.last, places = count, till = now + WAITS }
end

-- The first in the line, as far as there are free places.
function flight.entitled(rule, state)
  local line = {}
  for member, waiting in pairs(state.line) do
    line[#line + 1] = { number = waiting.number, places = waiting.places, member = member }
  end
  table.sort(line, function(a, b)
    return a.number < b.number
  end)
  local members, free = {}, flight.free(rule, state)
  for at, waiting in ipairs(line) do
    free = free - waiting.places
    if free < 0 then
      break
    end
    members[at] = waiting.member
  end
  return members
end

-- When there may be a place, if nobody ends before its lease does. For a look from outside.
function flight.next_free(rule, state, now)
  if flight.free(rule, state) > 0 then
    return now
  end
  local first
  for _, holder in pairs(state.holders) do
    first = math.min(first or holder.till, holder.till)
  end
  return math.max(first or now, now)
end
