-- An answer as text: whole numbers with spaces between them. Times are told from the time of the decision,
-- which comes first, and slots as runs of equal steps: `0 100` is a hundred slots at that moment. So it is
-- short, since it is stored, and a repeated call gets it again behind the time of that call.
--
-- at highest ordinal since pause
-- confirmed: count, (0 for none, or 1 slot)*
-- outcomes:  count, (runs, (step, times)*, refused)*
-- next, paced
-- left:      count, (left)*
--
-- where refused and next are `0` for none, or `1 at limit`, the limit counted from 0 and -1 for the pause;
-- since and pause are moments.

local answer = {}

local function slots(text, at, list)
  local runs, times, step = #text + 1, 0, nil
  text[runs] = 0
  for _, slot in ipairs(list) do
    if times > 0 and slot - at == step then
      times = times + 1
      text[#text] = times
    else
      step, times = slot - at, 1
      text[runs] = text[runs] + 1
      text[#text + 1] = step
      text[#text + 1] = times
    end
    at = slot
  end
end

local function refused(text, at, what)
  if not what then
    text[#text + 1] = 0
    return
  end
  text[#text + 1] = 1
  text[#text + 1] = what.at - at
  text[#text + 1] = what.limit
end

function answer.text(a)
  local text = { a.at, a.highest, a.ordinal, a.since, a.pause, #a.confirmed }
  for _, slot in ipairs(a.confirmed) do
    text[#text + 1] = slot and 1 or 0
    if slot then
      text[#text + 1] = slot - a.at
    end
  end
  text[#text + 1] = #a.outcomes
  for _, outcome in ipairs(a.outcomes) do
    slots(text, a.at, outcome.slots)
    refused(text, a.at, outcome.refused)
  end
  refused(text, a.at, a.next)
  text[#text + 1] = a.paced and 1 or 0
  text[#text + 1] = #a.left
  for _, left in ipairs(a.left) do
    text[#text + 1] = left
  end
  for index, number in ipairs(text) do
    text[index] = whole(number)
  end
  return table.concat(text, ' ')
end
