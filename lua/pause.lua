-- Nobody sends for some time; a longer pause stays.
--
-- KEYS     the control hash
-- ARGV     now       empty: the server's clock; else microseconds since the epoch
--          time      how long from now, in microseconds
-- Returns  `1 now` and the end of the pause, a moment in microseconds.
-- Writes   the pause if it moved, and the first generation, into the control hash, for 7 days.
-- Rings    `pause TILL`, if the pause moved. See lib/bell.lua.

local c = control.load(args.next_key(), {})
local now = args.time()
local till = now + args.number()
control.renew(c, 0, false, now)
local moved = till > c.pause
if moved then
  c.pause = till
  control.put(c, 'pause', whole(till))
end
control.save(c)
if moved then
  bell.ring(c.key, 'pause ' .. whole(till))
end
return '1 ' .. whole(now) .. ' ' .. whole(c.pause)
