-- Nobody sends for some time; a longer pause stays.
--
-- KEYS     the control hash
-- ARGV     now       empty: the server's clock; else microseconds since the epoch
--          time      how long from now, in microseconds
-- Returns  `1 now` and the end of the pause, a moment in microseconds.
-- Writes   the pause if it moved, and the first generation, into the control hash, for 7 days.
-- Rings    `pause TILL` on the channel named like the keys, ..:bell, if the pause moved. It need not arrive, so a
--          user without rights to it loses nothing but that.

local c = control.load(args.next_key())
local now = args.time()
local till = now + args.number()
control.renew(c, 0, false, now)
local moved = till > c.pause
if moved then
  c.pause = till
  control.put(c, 'pause', whole(till))
end
control.save(c, now)
if moved then
  local bell = string.gsub(c.key, 'control$', 'bell')
  redis.pcall('PUBLISH', bell, 'pause ' .. whole(till))
end
return '1 ' .. whole(now) .. ' ' .. whole(c.pause)
