-- A look at a provider that changes nothing.
--
-- KEYS     the control hash; then for each limit, and pauses, as in book.lua
-- ARGV     now       empty: the server's clock; else microseconds since the epoch
--          limits    as in book.lua
--          parts     as in book.lua
-- Returns  `1 now pause`, and for each limit what is left and the first slot of a permit of cost 1, a moment
--          in microseconds; `0 now` and `2 now ..` as book.lua does.
-- Writes   nothing.

local control_key = args.next_key()
local now = args.time()
local list = limits.read()
local parts = pauses.read()
if not limits.cover(list, now) then
  return '0 ' .. whole(now)
end
local accords = accord.load(control_key, list)
for _, a in ipairs(accords) do
  accord.hear(a, now)
end
local missed = accord.missed(accords)
if missed then
  return '2 ' .. whole(now) .. '\n' .. missed
end
local c = control.load(control_key, list)
local pause = pauses.join(c.pause, parts, list, now)
limits.load(list, c.idle, now)
limits.prune(list, now)
local text = { '1', whole(now), whole(pause) }
local start = math.max(now, pause)
for _, limit in ipairs(list) do
  local rule, state, kind = limit.rule, limit.state, limit.kind
  text[#text + 1] = whole(kind.left(rule, state, now, limit.resume))
  local next = kind == flight and flight.next_free(rule, state, start)
  text[#text + 1] = whole(next or kind.earliest(rule, state, start, 1, limit.resume, 1))
end
return table.concat(text, ' ')
