-- Nobody sends for some time, or nobody in a part of the provider; a longer pause stays.
--
-- KEYS     the control hash; the pause of the part, if it is one
-- ARGV     now       empty: the server's clock; else microseconds since the epoch
--          time      how long from now, in microseconds
-- Returns  `1 now` and the end of the pause, a moment in microseconds.
-- Writes   the pause if it moved: of all into the control hash, of a part into its key, until an hour after its end;
--          and the first generation into the control hash, for 7 days.
-- Rings    `pause TILL`, if the pause moved. See lib/bell.lua.

local c = control.load(args.next_key(), {})
local part = args.next_key()
local now, handed_in = args.time()
local till = now + args.number()
control.renew(c, 0, false, now)
local before = c.pause
if part then
  before = pauses.load(part, now)
end
if till > before then
  if part then
    pauses.save(part, till, now, handed_in)
  else
    control.put(c, 'pause', whole(till))
  end
end
control.save(c)
if till > before then
  bell.ring(c.key, 'pause ' .. whole(till))
end
return '1 ' .. whole(now) .. ' ' .. whole(math.max(till, before))
