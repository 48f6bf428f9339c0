-- What the replicas say of a limit: each what it was configured with, and what one has said at run time. Only texts:
-- who asks makes one limit of them, and nothing is decided for who goes by another accord.
--
-- stored: in the control hash `limit:NAME`, lines: `is 100/s` for what a replica is configured with, in the order in
--         which they came, then `now NUMBER 50/s` for a change, and `for 100/s` for what it stands in the place of;
--         and `till:NAME`: until when each of the first holds, unless it is heard again.
-- claim:  name (of the limit), text (how the replica has it configured), agreed (the accord that it goes by).
-- accord: text; claims { text, till }; number, change and of: those of the change.

local accord = {}

function accord.claim()
  return { name = args.text(), text = args.text(), agreed = args.text() }
end

-- One for each limit, by its claim.
function accord.load(control_key, list)
  local fields = {}
  for _, limit in ipairs(list) do
    fields[#fields + 1] = 'limit:' .. limit.claim.name
    fields[#fields + 1] = 'till:' .. limit.claim.name
  end
  local row = #fields > 0 and redis.call('HMGET', control_key, unpack(fields))
  local accords = {}
  for at, limit in ipairs(list) do
    local a = { claim = limit.claim, stored = row[2 * at - 1] or '', tills = row[2 * at] or '', claims = {}, of = {} }
    local till = string.gmatch(a.tills, '%S+')
    for kind, text in string.gmatch(a.stored, '(%l+) ([^\n]+)') do
      if kind == 'is' then
        a.claims[#a.claims + 1] = { text = text, till = tonumber(till() or 0) }
      elseif kind == 'now' then
        local number, change = string.match(text, '^(%S+) (.*)$')
        a.number, a.change = tonumber(number), change
      else
        a.of[#a.of + 1] = text
      end
    end
    accords[at] = a
  end
  return accords
end

local function has(list, text)
  for _, other in ipairs(list) do
    if other == text then
      return true
    end
  end
  return false
end

-- A replica says what it was configured with; what nobody has said for long is forgotten, and a change that stands for
-- nothing any more.
function accord.hear(a, now)
  local live, own = {}, nil
  for _, claim in ipairs(a.claims) do
    if claim.text == a.claim.text then
      own = claim
    end
    if claim.till > now or claim == own then
      live[#live + 1] = claim
    end
  end
  if not own then
    own = { text = a.claim.text, till = now }
    live[#live + 1] = own
  end
  if own.till <= now + GONE / 2 then
    own.till = now + GONE
  end
  a.claims = live
  for _, claim in ipairs(live) do
    if has(a.of, claim.text) then
      return
    end
  end
  a.number, a.change, a.of = nil, nil, {}
end

-- The limit is set anew, in the place of all that was heard. With a number it is told again by a replica that knows
-- it, in the place of its own claim, because the store has forgotten that.
function accord.set(a, change, number, now)
  accord.hear(a, now)
  local last = a.number or 0
  if number == last then
    if not has(a.of, a.claim.text) then
      a.of[#a.of + 1] = a.claim.text
    end
  elseif not number or number > last then
    a.number, a.change, a.of = number or math.max(now, last + 1), change, { a.claim.text }
    if not number then
      for at, claim in ipairs(a.claims) do
        a.of[at] = claim.text
      end
    end
  end
end

function accord.text(a)
  local lines = {}
  for at, claim in ipairs(a.claims) do
    lines[at] = 'is ' .. claim.text
  end
  if a.change then
    lines[#lines + 1] = 'now ' .. whole(a.number) .. ' ' .. a.change
    for _, text in ipairs(a.of) do
      lines[#lines + 1] = 'for ' .. text
    end
  end
  return table.concat(lines, '\n')
end

function accord.save(a, c)
  local tills = {}
  for at, claim in ipairs(a.claims) do
    tills[at] = whole(claim.till)
  end
  local text, till = accord.text(a), table.concat(tills, ' ')
  if text ~= a.stored then
    control.put(c, 'limit:' .. a.claim.name, text)
  end
  if till ~= a.tills then
    control.put(c, 'till:' .. a.claim.name, till)
  end
end

-- Nil if the replica goes by all of them; else their texts.
function accord.missed(accords)
  local texts, missed = {}, false
  for at, a in ipairs(accords) do
    texts[at] = accord.text(a)
    missed = missed or texts[at] ~= a.claim.agreed
  end
  return missed and table.concat(texts, '\n\n') or nil
end
