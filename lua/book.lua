-- One booking: gives a member permits with their slots, under several limits of one provider at once.
--
-- KEYS     the control hash; what the member was told; then for each limit its hash, its crowd, its far slots, and
--          of a rolling one its log; then the pauses of the parts of the provider that the member is in
-- ARGV     now       empty: the server's clock; else microseconds since the epoch
--          limits    count, (name, claim, watched, reserve, kind, numbers)*; claim: what all call the limit, how this
--                    replica has it configured, the accord that it goes by (lib/accord.lua); watched (0 or 1): the
--                    control hash tells until when its key must be there; reserve: what the lowest class leaves to
--                    others, while there is somebody of the highest; the numbers of a kind:
--                    rolling:  max, span, cell, slack, paced (0 or 1)
--                    bucket:   capacity, tokens, period, cell
--                    calendar: max, guard, resets: count, (moment)*
--                    flight:   max, lease
--          member    its id, its number of this booking
--          known     ordinal and since of the generation it knows; 0 0 for none
--          lead      no slot is before now plus this
--          late      a permit to be confirmed may have passed by so much at that moment
--          horizon   how far ahead slots may be booked; beyond it one
--          places    costs: places in flight that the member has, before this call and without what it returns
--          parts     count, (name)*; their pauses are at the end of KEYS
--          more      1: more callers queue than are asked for here
--          goodbye   1: the member leaves
--          returns   count, permit*; a permit is slot, costs, class, far (1: far ahead when it was booked, and not
--                    confirmed since)
--          settles   count, permit*; the costs are what is more than booked, or less
--          confirms  count, permit*; the costs are 0 where it has its places in flight
--          wants     count, (costs, class, budget or empty for any, count)*
--          Times in microseconds, moments since the epoch; costs one for each limit; class 0 before 1 before 2.
-- Returns  `1 now` and the answer (lib/answer.lua); `0 now`: the resets do not lie around now, which is the
--          server's; `2 now` and the accords of the limits, as texts with an empty line between them: they are other
--          ones than those that the numbers were made of. A repeated number gets its first answer and books nothing.
-- Rings    `next ID ..`: members that have a place in flight coming. See lib/bell.lua.
-- Writes   the generation, into the control hash, for 7 days; what the member was told, the crowds and far slots,
--          for 1 min; each limit's keys until they would equal none plus 1 s, only if something was booked,
--          returned, settled or exchanged. All at least 1 h if now was handed in. When it answers 2 only what this
--          replica says of the limits, into the control hash; nothing when it answers 0 or repeats.

local control_key, told_key = args.next_key(), args.next_key()
local now, handed_in = args.time()
local list = limits.read()
local id, number = args.text(), args.text()
local known, since = args.number(), args.number()
local lead, late, horizon = args.number(), args.number(), args.number()

local function costs()
  local each = {}
  for at = 1, #list do
    each[at] = args.number()
  end
  return each
end
local held = costs()
local parts = pauses.read()
local more, goodbye = args.flag(), args.flag()
local function booked()
  return { slot = args.number(), costs = costs(), class = args.number(), far = args.flag() }
end
local returns, settles, confirms = args.list(booked), args.list(booked), args.list(booked)
local wants = args.list(function()
  return { costs = costs(), class = args.number(), budget = args.number(), count = args.number() }
end)

local member = told.load(told_key, now)
if member and member.number == number then
  return '1 ' .. whole(now) .. ' ' .. member.answer
end
if not limits.cover(list, now) then
  return '0 ' .. whole(now)
end

local c = control.load(control_key, list)
local pause = pauses.join(c.pause, parts, list, now)
local accords = accord.load(control_key, list)
for _, a in ipairs(accords) do
  accord.hear(a, now)
  accord.save(a, c)
end
local missed = accord.missed(accords)
if missed then
  control.save(c)
  return '2 ' .. whole(now) .. '\n' .. missed
end
local lost = limits.load(list, c.idle, now)
local d = {
  member = id,
  now = now,
  base = now,
  resume = pause,
  reach = 0,
  handed_in = handed_in,
  limits = list,
}
local entitled = places.entitled(d)
limits.prune(list, now)
places.seat(d, held)
far.meet(d, wants)
control.renew(c, known, lost, now)
for _, limit in ipairs(list) do
  limit.live, limit.contended = crowd.look(limit.crowd_key, id, now)
  limit.burnt = 0
end
local start = now + lead
d.base = math.max(start, pause)
local ours = known == c.ordinal and since == c.since
if ours then
  for _, permit in ipairs(returns) do
    local _, own = far.redeem(d, permit)
    desk.give(d, permit.slot, own, true)
  end
  for _, change in ipairs(settles) do
    desk.settle(d, change)
  end
end
d.reach = math.floor(horizon / 10) * 8
d.shut = pause > c.pause and pause > now + d.reach
local confirmed, far_held = desk.confirm(d, confirms, ours, math.max(start - late, pause)), false
for _, slot in ipairs(confirmed) do
  far_held = far_held or (slot and slot > now + d.reach)
end
local before = member and member.last or 0
local r = round.begin(start, d.reach, before, far_held)
local outcomes, asked = {}, 0
for at, want in ipairs(wants) do
  outcomes[at] = round.serve(d, r, want)
  asked = asked + want.count
end
local next
if #wants > 0 then
  local last = wants[#wants]
  next = r.full and places.none(d, r.full) or desk.refusal(d, desk.outlook(d, last, r.stop), last, start)
end
places.queue(d, r.full, r.missing)
local text = answer.text({
  at = now,
  highest = d.highest,
  ordinal = c.ordinal,
  since = c.since,
  pause = pause,
  confirmed = confirmed,
  outcomes = outcomes,
  next = next,
  paced = next and desk.is_paced(d, next),
  left = desk.left(d),
})
local waits = now
if more or asked > r.granted + r.refused then
  waits = math.max(r.last, now) + 2 * d.reach
end
if d.touched then
  limits.save(list, c, now, handed_in)
end
for _, limit in ipairs(list) do
  crowd.tell(limit.crowd_key, id, now, waits, goodbye, handed_in)
end
-- Who says goodbye is remembered as any other: a repeated goodbye must not give its permits back twice.
told.save(told_key, now, math.max(r.last, before), number, text, handed_in)
control.save(c)
bell.next(control_key, places.entitled(d), entitled)
return '1 ' .. whole(now) .. ' ' .. text
