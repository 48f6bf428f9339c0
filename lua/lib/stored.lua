-- The stored forms of cells: nothing else knows them.
--
-- The log of a window is a LIST of whole numbers, three for a cell in the order of time: its latest slot, its
-- count, and how much before the latest its earliest is. A booking nearly always touches only its ends, so it
-- is read in pages and written from the lowest changed cell on. The sum of all counts is kept by the owner.
-- What a bucket holds aside is a text, latest:count ..

local PAGE = 4
local WIDTH = 3 -- Numbers of a cell.
local stored = {}

-- A cell { earliest, latest, count } lies at `at[first + 1]` to `at[first + len]`; what is not there yet is at the
-- same place in the list, and below `changed`.
local function laid_out(key, used, len)
  return { key = key, used = used, at = {}, first = 0, len = len, stored = len, changed = len + 1 }
end

function stored.list(key, used)
  return laid_out(key, used, redis.call('LLEN', key) / WIDTH)
end

-- Forgets all, what is stored included.
function stored.clear(log)
  log.used, log.first, log.len, log.changed = 0, log.stored, 0, log.stored + 1
end

-- From the nearer end: a list is walked to where it is read.
local function fetch(log, from, to)
  local origin = from > log.stored / 2 and log.stored or 0
  local flat = redis.call('LRANGE', log.key, WIDTH * (from - origin - 1), WIDTH * (to - origin) - 1)
  for at = from, to do
    local next = WIDTH * (at - from)
    local latest, count = tonumber(flat[next + 1]), tonumber(flat[next + 2])
    local earliest = latest - tonumber(flat[next + 3])
    log.at[at] = log.at[at] or { earliest = earliest, latest = latest, count = count }
  end
end

-- Loads the cell at `at` and some more in the direction of the walk, as many as were walked already.
function stored.load(log, at)
  if log.at[at + 1] then
    local size = math.max(log.first + log.len - at, PAGE)
    fetch(log, math.max(at - size, log.first) + 1, at)
  else
    local size = math.max(at - log.first, PAGE)
    fetch(log, at, math.min(at + size, log.changed) - 1)
  end
end

function stored.save(log)
  local kept = math.max(log.first, log.changed - 1)
  if kept == log.first then
    if log.stored > 0 then
      redis.call('DEL', log.key)
    end
  elseif log.first > 0 or kept < log.stored then
    redis.call('LTRIM', log.key, WIDTH * log.first, WIDTH * kept - 1)
  end
  local values = {}
  for at = kept + 1, log.first + log.len do
    local cell = log.at[at]
    values[#values + 1] = whole(cell.latest)
    values[#values + 1] = whole(cell.count)
    values[#values + 1] = whole(cell.latest - cell.earliest)
  end
  send('RPUSH', log.key, values)
end

function stored.parse(text)
  local log = laid_out(nil, 0, 0)
  for latest, count in string.gmatch(text, '(%d+):(%d+)') do
    log.len = log.len + 1
    latest = tonumber(latest)
    log.at[log.len] = { earliest = latest, latest = latest, count = tonumber(count) }
    log.used = log.used + log.at[log.len].count
  end
  return log
end

function stored.text(log)
  local pairs_of = {}
  for at = log.first + 1, log.first + log.len do
    pairs_of[#pairs_of + 1] = whole(log.at[at].latest) .. ':' .. whole(log.at[at].count)
  end
  return table.concat(pairs_of, ' ')
end
