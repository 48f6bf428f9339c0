//! Fields that tell several things at once: `100, 100;w=10`, `32/40`, `20:1,100:120`, `q=10;r=7;t=3540`.

use super::drafts::Drafts;
use crate::signal::{
    base::Base,
    dialect::Means,
    form::Form,
    number::{Count, Decimal, SECOND},
};

/// A field of numbers: one, or a list in which each has a window of its own.
///
/// The first member of a list without windows is the limit that ends first; then come policies (drafts 3 to 6).
/// Where the dialect names the `windows`, the provider promises their order.
pub fn counts<'a>(
    drafts: &mut Drafts<'a>,
    means: Means,
    group: &'a str,
    name: &'a str,
    windows: &'a [String],
    (line, text): (usize, &'a str),
) {
    if let (true, Some(count)) = (windows.is_empty(), Count::read(text)) {
        return put(drafts, means, group, (name, line), Some(count), None);
    }
    let members = text.split(',').map(member);
    if !windows.is_empty() {
        // Members that are too many or too few are not in the promised order.
        if members.clone().count() == windows.len() {
            for (window, (count, _)) in windows.iter().zip(members) {
                put(drafts, means, group, (window, line), count, None);
            }
        }
        return;
    }
    let mut lengths = members.clone().filter_map(|(_, length)| length);
    let first = members.clone().next().unwrap_or_default();
    if first.1.is_none() || lengths.nth(1).is_none() {
        put(drafts, means, group, (name, line), first.0, first.1);
        return;
    }
    for (count, length) in members {
        if let Some(length) = length {
            put(drafts, means, group, (length, line), count, Some(length));
        }
    }
}

fn put<'a>(
    drafts: &mut Drafts<'a>,
    means: Means,
    group: &'a str,
    (name, line): (&'a str, usize),
    count: Option<Count>,
    length: Option<&str>,
) {
    let Some(count) = count else { return };
    let Some(draft) = drafts.at(group, name, line) else { return };
    draft.length = draft.length.or_else(|| Some(Decimal::read(length?)?.wait(SECOND)));
    match means {
        Means::Remaining => draft.remaining(count),
        Means::Used => draft.used(count),
        _ => draft.limit(count),
    }
}

/// `100;w=60`: the number and the seconds of its window.
fn member(text: &str) -> (Option<Count>, Option<&str>) {
    let mut parts = text.split(';').map(str::trim);
    let count = parts.next().and_then(Count::read);
    let mut pairs = parts.filter_map(|part| part.split_once('='));
    let length = pairs.find(|(key, _)| matches!(key.trim(), "w" | "window")).map(|(_, value)| value.trim());
    (count, length)
}

/// `32/40`, or `api-usage=25/5000; per-app-api-usage=17/250(appName=sample)`.
pub fn used_of_limit<'a>(drafts: &mut Drafts<'a>, group: &'a str, line: usize, text: &'a str) {
    for member in text.split([';', ',']) {
        let member = member.split('(').next().unwrap_or_default();
        let (name, counts) = member.split_once('=').unwrap_or(("", member));
        let Some((used, limit)) = counts.split_once('/') else { continue };
        let (used, limit) = (Count::read(used.trim()), Count::read(limit.trim()));
        if let (Some(used), Some(limit)) = (used, limit)
            && let Some(draft) = drafts.at(group, name.trim(), line)
        {
            draft.limit(limit);
            draft.used(used);
        }
    }
}

/// `20:1,100:120`: the windows are joined by their seconds, since their order is not promised.
pub fn per_length<'a>(drafts: &mut Drafts<'a>, means: Means, group: &'a str, text: &'a str) {
    for (count, length) in text.split(',').filter_map(|member| member.split_once(':')) {
        let (count, length) = (Count::read(count.trim()), length.trim());
        if Decimal::read(length).is_some() {
            let means = if means == Means::UsedPerLength { Means::Used } else { Means::Limit };
            put(drafts, means, group, (length, 0), count, Some(length));
        }
    }
}

/// `b=per_hour;q=10;r=7;t=3540,b=per_day;..`, or with whole words and one window.
pub fn pairs<'a>(
    drafts: &mut Drafts<'a>,
    at: (usize, Form, &Base<'_>),
    group: &'a str,
    star: &'a str,
    text: &'a str,
) {
    let (row, form, base) = at;
    for (line, member) in text.split(',').enumerate() {
        let pairs =
            || member.split(';').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.trim(), v.trim()));
        let named = pairs().find(|(key, _)| matches!(*key, "b" | "name"));
        let (name, line) = named.map_or((star, line), |(_, name)| (name, 0));
        for (key, value) in pairs() {
            let Some(draft) = drafts.at(group, name, line) else { return };
            let count = || Count::read(value);
            match key {
                "q" | "limit" | "total" => count().into_iter().for_each(|count| draft.limit(count)),
                "r" | "remaining" => count().into_iter().for_each(|count| draft.remaining(count)),
                "t" | "reset" | "resets" => {
                    form.read(value, base).into_iter().for_each(|time| draft.reset(row, time));
                }
                _ => {}
            }
        }
    }
}

/// `60:transaction:key, 2700:default;error:organization`: the longest of them. Which kinds of calls one makes, the
/// upstream does not know.
pub fn longest(form: Form, text: &str, base: &Base<'_>) -> Option<std::time::Duration> {
    let first = |member: &str| form.read(member.split(':').next()?.trim(), base);
    text.split(',').filter_map(first).max()
}
