-- Pauses of parts of a provider, each a key with the moment of its end, in microseconds: for an hour longer, since the
-- stream resumes paced.
--
-- A part has the name of a scope. A limit of that very scope resumes when the part does; to the others, which calls of
-- other parts use, its pause is nothing.

local OVER = 3600000000

local pauses = {}

function pauses.read()
  return args.list(function()
    return { key = args.next_key(), name = args.text() }
  end)
end

function pauses.load(key, now)
  local till = tonumber(redis.call('GET', key) or 0)
  return till > now - OVER and till or 0
end

function pauses.save(key, till, now, handed_in)
  redis.call('SET', key, whole(till))
  keep(key, till + OVER, now, handed_in)
end

-- Until when the provider or one of the parts is paused; and each limit gets its own `resume`.
function pauses.join(pause, parts, list, now)
  local longest = pause
  for _, limit in ipairs(list) do
    limit.resume = pause
  end
  for _, part in ipairs(parts) do
    local till = pauses.load(part.key, now)
    longest = math.max(longest, till)
    local suffix = ':' .. part.name
    for _, limit in ipairs(list) do
      if string.sub(limit.name, -#suffix) == suffix then
        limit.resume = math.max(limit.resume, till)
      end
    end
  end
  return longest
end
