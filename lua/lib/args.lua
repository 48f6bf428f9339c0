-- KEYS and ARGV, read once from front to back. Every ARGV is converted here and nowhere else: it is
-- always text, and text never equals a number.

local args = { key = 0, at = 0 }

function args.next_key()
  args.key = args.key + 1
  return KEYS[args.key]
end

function args.text()
  args.at = args.at + 1
  return ARGV[args.at]
end

-- An empty text is no number: nil.
function args.number()
  return tonumber(args.text())
end

function args.flag()
  return args.text() == '1'
end

-- A count, then that many of what `read` reads.
function args.list(read)
  local list = {}
  for at = 1, args.number() do
    list[at] = read()
  end
  return list
end

-- The time, in microseconds since the epoch: the one handed in, else the server's. And whether it was
-- handed in: Redis' own expiry cannot know such a clock.
function args.time()
  local given = args.number()
  if given then
    return given, true
  end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2]), false
end

-- A whole number as text. Lua's own conversion keeps 14 digits, a time has 16; and a float in a reply
-- would be cut off.
local function whole(number)
  return string.format('%.0f', number)
end

-- `command key values..` in bounded pieces: a long list overflows the stack of `unpack`. An even
-- number each, so that pairs stay together.
local function send(command, key, values)
  for first = 1, #values, 100 do
    redis.call(command, key, unpack(values, first, math.min(first + 99, #values)))
  end
end
