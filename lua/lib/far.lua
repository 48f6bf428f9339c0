-- Slots far ahead. They must be confirmed shortly before they are due, and until then a caller of a higher class may
-- have one: without that it would stand behind all that lower classes have booked, one slot for each gate.
--
-- stored: for each limit a sorted set of slots, `member class slot charged` each: what the member has charged there.
--         Only of classes that are not the highest ones in use: nobody else can have the others. And `highest`, until
--         when the highest class counts as being in use; the next one always does. For a minute after the last.

local TRIES = 8 -- Slots that are looked at: most often the first will do.

-- All far slots of a limit, the earliest first, and until when its highest class is in use; read once.
local function slots(limit)
  if limit.far then
    return limit.far, limit.highest_till
  end
  limit.far, limit.highest_till = {}, 0
  local row = redis.call('ZRANGE', limit.far_key, 0, -1, 'WITHSCORES')
  for at = 1, #row, 2 do
    local member, class, slot, charged = string.match(row[at], '^(%x+) (%d+) (%d+) (%d+)$')
    if member then
      limit.far[#limit.far + 1] =
        { member = member, class = tonumber(class), slot = tonumber(slot), charged = tonumber(charged) }
    else
      limit.highest_till = tonumber(row[at + 1])
    end
  end
  return limit.far, limit.highest_till
end

-- Whether there is anybody of the highest class is told by what is wanted.
function far.meet(d, wants)
  local met = false
  for at, limit in ipairs(d.limits) do
    local _, till = slots(limit)
    for _, want in ipairs(wants) do
      -- Not at each call: it is written down.
      if want.class == 0 and want.costs[at] > 0 and till < d.now + GONE / 2 then
        till = d.now + GONE
        limit.highest_till = till
        redis.call('ZADD', limit.far_key, whole(till), 'highest')
        keep(limit.far_key, till, d.now, d.handed_in)
      end
    end
    met = met or till > d.now
  end
  d.highest = met and 0 or 1
end

local function find(limit, member, class, slot)
  for _, it in ipairs(slots(limit)) do
    if it.member == member and it.class == class and it.slot == slot then
      return it
    end
  end
end

-- So much is charged there from now on.
local function put(d, limit, member, class, slot, before, charged)
  local text = member .. ' ' .. class .. ' ' .. whole(slot) .. ' '
  if before > 0 then
    redis.call('ZREM', limit.far_key, text .. whole(before))
  end
  if charged > 0 then
    redis.call('ZADD', limit.far_key, whole(slot), text .. whole(charged))
    local all, till = slots(limit)
    local last = all[#all] and all[#all].slot or slot
    keep(limit.far_key, math.max(slot + GONE, last + GONE, till), d.now, d.handed_in)
  end
  limit.far = nil
end

-- A slot that was booked may be so far ahead that others may have it.
function far.note(d, slot, costs, class)
  if slot <= d.now + d.reach or class <= d.highest then
    return
  end
  for at, limit in ipairs(d.limits) do
    -- A place in flight is no slot.
    if costs[at] > 0 and limit.kind ~= flight then
      redis.call('ZREMRANGEBYSCORE', limit.far_key, '-inf', whole(d.now - GONE))
      limit.far = nil
      local it = find(limit, d.member, class, slot)
      local before = it and it.charged or 0
      put(d, limit, d.member, class, slot, before, before + costs[at])
    end
  end
end

-- Whether a permit still has its slot under all limits, and what of it is its own: what somebody else has taken it
-- cannot give back. It is no far one any more afterwards.
function far.redeem(d, booked)
  if not booked.far then
    return true, booked.costs
  end
  local own, complete = {}, true
  for at, limit in ipairs(d.limits) do
    local cost = booked.costs[at]
    own[at] = cost
    if cost > 0 and limit.kind ~= flight then
      local it = find(limit, d.member, booked.class, booked.slot)
      own[at] = math.min(it and it.charged or 0, cost)
      complete = complete and own[at] == cost
      if it then
        put(d, limit, d.member, booked.class, booked.slot, it.charged, it.charged - own[at])
      end
    end
  end
  return complete, own
end

-- Others' of a lower class before `till`, the earliest first.
local function below(d, limit, class, till)
  local found = {}
  for _, it in ipairs(slots(limit)) do
    if it.class > class and it.member ~= d.member and d.base <= it.slot and it.slot < till then
      found[#found + 1] = it
    end
  end
  return found
end

-- The first far slot of a lower class before `slot`, whether it can be had or not.
function far.first_below(d, costs, class, slot)
  local first
  for at, limit in ipairs(d.limits) do
    local found = costs[at] > 0 and below(d, limit, class, slot)[1]
    if found then
      first = math.min(first or found.slot, found.slot)
    end
  end
  return first
end

local function charged(limit, found)
  local it = find(limit, found.member, found.class, found.slot)
  return it and it.charged or 0
end

local function fits(d, costs, class, found)
  for at, limit in ipairs(d.limits) do
    local cost = costs[at]
    if cost > 0 and charged(limit, found) < cost then
      if limit.kind.beyond(limit.rule, found.slot)
        or limit.kind.earliest(limit.rule, limit.state, found.slot, cost, limit.resume, class) ~= found.slot then
        return false
      end
    end
  end
  return true
end

-- The far slot of a lower class that may be had instead of `slot`, else nil.
function far.best(d, costs, class, slot)
  for at, limit in ipairs(d.limits) do
    if desk.decides(d, limit, slot, class, costs[at]) then
      local candidates = below(d, limit, class, slot)
      for try = 1, math.min(#candidates, TRIES) do
        if fits(d, costs, class, candidates[try]) then
          return candidates[try]
        end
      end
      return nil
    end
  end
end

-- Takes it over: the charge stands, and under the other limits it is charged like any other.
function far.claim(d, costs, class, found)
  for at, limit in ipairs(d.limits) do
    local cost = costs[at]
    local theirs = charged(limit, found)
    if cost > 0 and theirs >= cost then
      put(d, limit, found.member, found.class, found.slot, theirs, theirs - cost)
    elseif cost > 0 then
      local waited = desk.decides(d, limit, found.slot, class, cost)
      desk.take(d, limit, found.slot, cost, { now = d.now, class = class, waited = waited, paces = waited })
    end
  end
  d.touched = true
  far.note(d, found.slot, costs, class)
end
