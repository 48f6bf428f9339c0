-- A look at a provider that changes nothing.
--
-- KEYS     the control hash; then for each limit its hash, and of a rolling one its log
-- ARGV     now       empty: the server's clock; else microseconds since the epoch
--          limits    as in book.lua
-- Returns  `1 now pause`, and for each limit what is left and the first slot of a permit of cost 1, a moment
--          in microseconds; `0 now`: the resets do not lie around now, which is the server's.
-- Writes   nothing.

local c = control.load(args.next_key())
local now = args.time()
local list = limits.read()
if not limits.cover(list, now) then
  return '0 ' .. whole(now)
end
limits.load(list, c.idle, now, c.pause)
local text = { '1', whole(now), whole(c.pause) }
local start = math.max(now, c.pause)
for _, limit in ipairs(list) do
  local rule, state, kind = limit.rule, limit.state, limit.kind
  text[#text + 1] = whole(kind.left(rule, state, now, c.pause))
  text[#text + 1] = whole(kind.earliest(rule, state, start, 1, c.pause))
end
return table.concat(text, ' ')
