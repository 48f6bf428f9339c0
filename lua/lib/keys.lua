-- How long keys live.

local GONE = 60000000 -- A member unseen for this long has left.

-- A key lives until it would say nothing, and a little longer; at least an hour where Redis' expiry does not know
-- the clock.
local function keep(key, idle, now, handed_in)
  local ms = math.max(math.ceil((idle - now) / 1000), 0) + 1000
  redis.call('PEXPIRE', key, whole(handed_in and math.max(ms, 3600000) or ms))
end
