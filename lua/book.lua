-- One booking: gives a member permits with their slots, under several limits of one provider at once.
--
-- KEYS     the control hash; then for each limit its hash, and of a rolling one its log
-- ARGV     now       empty: the server's clock; else microseconds since the epoch
--          limits    count, (name, text, kind, numbers)*, the numbers of a kind being
--                    rolling:  max, span, cell, slack, paced (0 or 1)
--                    bucket:   capacity, tokens, period, cell
--                    calendar: max, guard, resets: count, (moment)*
--          member    its id, its number of this booking
--          known     ordinal and since of the generation it knows; 0 0 for none
--          lead      no slot is before now plus this
--          late      a permit to be confirmed may have passed by so much at that moment
--          horizon   how far ahead slots may be booked; beyond it one
--          more      1: more callers queue than are asked for here
--          goodbye   1: the member leaves
--          returns   count, (slot, cost)*
--          confirms  count, (slot, cost)*
--          wants     count, (cost, budget or empty for any, count)*
--          Times in microseconds, moments since the epoch.
-- Returns  `1 now` and the answer (lib/answer.lua); `0 now`: the resets do not lie around now, which is the
--          server's. A repeated number gets its first answer and books nothing.
-- Writes   the member's row and the generation, into the control hash, for 7 days; each limit's keys until
--          they would equal none plus 1 s (at least 1 h if now was handed in), only if something was booked,
--          returned or exchanged. Nothing when it answers 0 or repeats.

local c = control.load(args.next_key())
local now, handed_in = args.time()
local list = limits.read()
local id, number = args.text(), args.text()
local known, since = args.number(), args.number()
local lead, late, horizon = args.number(), args.number(), args.number()
local more, goodbye = args.flag(), args.flag()

local function booked()
  return { slot = args.number(), cost = args.number() }
end
local returns, confirms = args.list(booked), args.list(booked)
local wants = args.list(function()
  return { cost = args.number(), budget = args.number(), count = args.number() }
end)

local member = c.members[id]
if member and member.number == number then
  return '1 ' .. whole(now) .. ' ' .. member.answer
end
if not limits.cover(list, now) then
  return '0 ' .. whole(now)
end

local lost = limits.load(list, c.idle, now, c.pause)
control.renew(c, known, lost, now)
local live, contended = control.count(c, id, now)
local start = now + lead
local d = {
  now = now,
  base = math.max(start, c.pause),
  resume = c.pause,
  live = live,
  contended = contended,
  limits = list,
}
local ours = known == c.ordinal and since == c.since
if ours then
  for _, permit in ipairs(returns) do
    desk.give(d, permit, true)
  end
end
local reach = math.floor(horizon / 10) * 8
local confirmed, far_held = desk.confirm(d, confirms, ours, math.max(start - late, c.pause)), false
for _, slot in ipairs(confirmed) do
  far_held = far_held or (slot and slot > now + reach)
end
local before = member and c.members[id] and member.last or 0
local r = round.begin(d, start, reach, before, far_held)
local outcomes, asked = {}, 0
for at, want in ipairs(wants) do
  outcomes[at] = round.serve(d, r, want)
  asked = asked + want.count
end
local next
if #wants > 0 then
  local cost = wants[#wants].cost
  next = desk.refusal(d, r.stop or desk.fit(d, cost), cost, start)
end
local told = answer.text({
  at = now,
  ordinal = c.ordinal,
  since = c.since,
  pause = c.pause,
  confirmed = confirmed,
  outcomes = outcomes,
  next = next,
  paced = next and desk.is_paced(d, next),
  left = desk.left(d),
})
local waits = 0
if not goodbye and (more or asked > r.granted + r.refused) then
  waits = math.max(r.last, now) + 2 * reach
end
if d.touched then
  limits.save(list, c, now, handed_in)
end
control.tell(c, id, number, now, waits, math.max(r.last, before), goodbye, told)
control.save(c, now)
return '1 ' .. whole(now) .. ' ' .. told
