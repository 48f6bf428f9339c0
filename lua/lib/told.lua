-- What a member was told last: seen, the last slot it was given, the number of its last booking, and the answer. A
-- text of its own, for as long as the member may ask again.

local told = {}

-- Nil: nothing, or too long ago.
function told.load(key, now)
  local seen, last, number, answer = string.match(redis.call('GET', key) or '', '^(%S+) (%S+) (%S+) (.*)$')
  if seen and tonumber(seen) > now - GONE then
    return { last = tonumber(last), number = number, answer = answer }
  end
end

function told.save(key, now, last, number, answer, handed_in)
  redis.call('SET', key, table.concat({ whole(now), whole(last), number, answer }, ' '))
  keep(key, now + GONE, now, handed_in)
end
