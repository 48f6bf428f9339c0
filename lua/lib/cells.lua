-- A log of slots in fixed cells, so that memory does not depend on how many permits a window has.
-- Everything booked within one `width` of time is one cell { earliest, latest, count }. Towards the past a
-- cell counts from its latest slot, towards the future from its earliest: whichever side is looked from, it
-- never counts for too short. `log.used` is the sum of all counts, `log.len` the number of cells.

local cells = {}

function cells.last(log)
  local at = log.first + log.len
  if log.len > 0 and not log.at[at] then
    stored.load(log, at)
  end
  return log.len > 0 and log.at[at] or nil
end

-- The cell at `index`, the oldest at 1; nil behind the last.
function cells.get(log, index)
  local at = log.first + index
  if index <= log.len and not log.at[at] then
    stored.load(log, at)
  end
  return index <= log.len and log.at[at] or nil
end

-- Drops what lies at or before `time`.
function cells.drop_until(log, time)
  local cell = cells.get(log, 1)
  while cell and cell.latest <= time do
    log.used = log.used - cell.count
    log.first, log.len = log.first + 1, log.len - 1
    cell = cells.get(log, 1)
  end
end

-- The index of the cell of `slot` and true, or the index behind which it belongs and false. From the newest
-- backwards: a slot is nearly always looked for at the end. What lies behind the index is loaded then.
local function find(log, width, slot)
  local id = math.floor(slot / width)
  local index = log.len
  local cell = cells.last(log)
  while cell do
    local other = math.floor(cell.latest / width)
    if other <= id then
      return index, other == id
    end
    index = index - 1
    cell = index > 0 and cells.get(log, index)
  end
  return 0, false
end

function cells.add(log, width, slot, count)
  log.used = log.used + count
  local index, found = find(log, width, slot)
  local at = log.first + index
  if found then
    local cell = log.at[at]
    cell.earliest, cell.latest = math.min(cell.earliest, slot), math.max(cell.latest, slot)
    cell.count = cell.count + count
  else
    at = at + 1
    for behind = log.first + log.len, at, -1 do
      log.at[behind + 1] = log.at[behind]
    end
    log.at[at] = { earliest = slot, latest = slot, count = count }
    log.len = log.len + 1
  end
  log.changed = math.min(log.changed, at)
end

-- Takes `count` out of the cell of `slot`, never more than it holds. Tells whether there was one.
function cells.remove(log, width, slot, count)
  local index, found = find(log, width, slot)
  if not found then
    return false
  end
  local at = log.first + index
  local cell = log.at[at]
  local taken = math.min(count, cell.count)
  log.used, cell.count = log.used - taken, cell.count - taken
  if cell.count == 0 then
    for behind = at, log.first + log.len do
      log.at[behind] = log.at[behind + 1]
    end
    log.len = log.len - 1
  end
  log.changed = math.min(log.changed, at)
  return true
end

-- A second reading that drops cells of its own and changes none.
function cells.view(log)
  return { used = log.used, at = log.at, first = log.first, len = log.len }
end
