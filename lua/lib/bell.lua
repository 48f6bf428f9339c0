-- The bell of a provider, on the channel named like the keys, ..:bell. It need not arrive, so a user without rights
-- to it loses nothing but that.

local bell = {}

function bell.ring(control_key, message)
  redis.pcall('PUBLISH', (string.gsub(control_key, 'control$', 'bell')), message)
end

-- Calls up the members in `now` that are not in `before`.
function bell.next(control_key, now, before)
  local members = {}
  for member in pairs(now) do
    if not before[member] then
      members[#members + 1] = member
    end
  end
  if #members > 0 then
    bell.ring(control_key, 'next ' .. table.concat(members, ' '))
  end
end
