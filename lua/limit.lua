-- A limit is set at run time, for all replicas.
--
-- KEYS     the control hash
-- ARGV     now       empty: the server's clock; else microseconds since the epoch
--          claim     as in book.lua
--          change    the limit as text
--          number    empty: it is new; else that of a change that the store may have lost
-- Returns  `1 now` and the accord (lib/accord.lua), on lines of its own.
-- Writes   the accord if it changed, and the first generation, into the control hash, for 7 days.
-- Rings    `limits`, if the accord changed. See lib/bell.lua.

local control_key = args.next_key()
local now = args.time()
local limit = { claim = accord.claim() }
local c = control.load(control_key, {})
control.renew(c, 0, false, now)
local a = accord.load(control_key, { limit })[1]
accord.set(a, args.text(), args.number(), now)
accord.save(a, c)
control.save(c)
local text = accord.text(a)
if text ~= a.stored then
  bell.ring(control_key, 'limits')
end
return '1 ' .. whole(now) .. '\n' .. text
