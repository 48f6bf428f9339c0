//! Windows while they are put together: what the fields of an answer say about each.

use std::{borrow::Cow, time::Duration};

use crate::signal::{
    Window,
    base::Base,
    dialect::{Lengths, Rules},
    number::Count,
};

/// As many windows are kept apart. No provider has so many, and an answer may not cost more than its length.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub struct Draft<'a> {
    group: &'a str,
    name: Cow<'a, str>,
    line: usize,
    pub limit: Option<f64>,
    pub remaining: Option<f64>,
    pub used: Option<f64>,
    /// Of several fields the one that the dialect names first.
    reset: Option<(usize, Duration)>,
    pub length: Option<Duration>,
    /// The limit is one of calls a second.
    pub rate: bool,
    /// What the provider calls it, beside its headers' names.
    pub title: &'a str,
    /// A number below zero, where a limit stands and where what is left of it does.
    sentinels: [bool; 2],
}

impl Draft<'_> {
    pub fn limit(&mut self, count: Count) {
        match count {
            Count::Known(count) => self.limit = Some(count),
            Count::Sentinel => self.sentinels[0] = true,
        }
    }

    pub fn remaining(&mut self, count: Count) {
        match count {
            Count::Known(count) => self.remaining = Some(count),
            Count::Sentinel => self.sentinels[1] = true,
        }
    }

    pub fn used(&mut self, count: Count) {
        if let Count::Known(count) = count {
            self.used = Some(count);
        }
    }

    /// The provider says that it does not know: it is no window at all. Less than nothing of a limit is nothing.
    fn is_unknown(&self) -> bool {
        self.sentinels[0] || self.sentinels[1] && self.limit.is_none()
    }

    pub fn reset(&mut self, row: usize, reset: Duration) {
        if self.reset.is_none_or(|(first, _)| row < first) {
            self.reset = Some((row, reset));
        }
    }
}

#[derive(Debug, Default)]
pub struct Drafts<'a>(Vec<Draft<'a>>);

impl<'a> Drafts<'a> {
    /// The window of that name in that group, and of that line where a provider repeats its fields without names.
    pub fn at(
        &mut self,
        group: &'a str,
        name: impl Into<Cow<'a, str>>,
        line: usize,
    ) -> Option<&mut Draft<'a>> {
        let name = name.into();
        let same = |draft: &Draft<'_>| draft.line == line && draft.group == group && draft.name == name;
        let at = match self.0.iter().position(same) {
            Some(at) => at,
            None if self.0.len() == MOST => return None,
            None => {
                self.0.push(Draft { group, name, line, ..Draft::default() });
                self.0.len() - 1
            }
        };
        self.0.get_mut(at)
    }

    /// Whether a limit is a rate, and how long one call takes at it.
    pub fn pace(&self) -> Option<Duration> {
        let rates = self.0.iter().filter(|draft| draft.rate).filter_map(|draft| draft.limit);
        rates.filter_map(|rate| seconds(1.0 / rate)).max()
    }

    /// All of which something is known.
    pub fn finish(&mut self, rules: &Rules, base: &Base<'_>) -> Vec<Window> {
        let mut windows = Vec::with_capacity(self.0.len());
        for draft in self.0.drain(..).filter(|draft| !draft.is_unknown()) {
            windows.extend(finish(draft, rules, base));
        }
        windows
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A window of which nothing is told but that it is empty.
pub fn emptied(name: &str, rules: &Rules, base: &Base<'_>) -> Option<Window> {
    finish(Draft { group: name, remaining: Some(0.0), ..Draft::default() }, rules, base)
}

fn finish(draft: Draft<'_>, rules: &Rules, base: &Base<'_>) -> Option<Window> {
    let Draft { group, name, title, limit, remaining, used, reset, length, sentinels, .. } = draft;
    let remaining = if sentinels[1] { Some(0.0) } else { remaining };
    let facts = || rules.windows.get(&*name).or_else(|| rules.windows.get(group));
    let facts = if rules.windows.is_empty() { None } else { facts() };
    let limit = limit.or(facts.and_then(|facts| facts.limit));
    let remaining = remaining.or_else(|| Some((limit? - used?).max(0.0)));
    let empty = remaining == Some(0.0);
    let per = facts.and_then(|facts| facts.per.as_ref());
    let reset = match (reset, length) {
        (Some((_, reset)), _) => Some(reset),
        (None, Some(length)) if rules.lengths == Lengths::Aligned => end(base, length),
        // Nobody told it: it is worked out for those who must wait for it.
        _ => per.filter(|_| empty).and_then(|per| next(base, per)),
    };
    if limit.is_none() && remaining.is_none() && reset.is_none() {
        return None;
    }
    let wait = reset.or_else(|| length.filter(|_| rules.lengths == Lengths::Bound));
    let name = if title.is_empty() { name } else { Cow::Borrowed(title) };
    let name = match (group.is_empty(), name.is_empty()) {
        (false, false) => format!("{group}:{name}"),
        (true, _) => name.into_owned(),
        (false, true) => group.to_owned(),
    };
    Some(Window { name, limit, remaining, reset, wait })
}

/// The end of a window that ends at whole multiples of its length.
fn end(base: &Base<'_>, length: Duration) -> Option<Duration> {
    let since = base.time().duration_since(std::time::SystemTime::UNIX_EPOCH).ok()?.as_micros();
    let length = length.as_micros();
    let left = length - since.checked_rem(length)?;
    u64::try_from(left).ok().map(Duration::from_micros)
}

/// The next reset of a window by the calendar.
fn next(base: &Base<'_>, per: &crate::Limit) -> Option<Duration> {
    let since = base.time().duration_since(std::time::SystemTime::UNIX_EPOCH).ok()?;
    let resets = per.boundaries(i64::try_from(since.as_micros()).ok()?);
    let next = u64::try_from(*resets.get(1)?).ok()?;
    base.until_epoch(Duration::from_micros(next))
}

/// So many seconds, up to a whole microsecond, if that is a time at all.
pub fn seconds(seconds: f64) -> Option<Duration> {
    let micros = (seconds * 1e6).ceil();
    // Also false for what is not a number.
    (0.0..=1e17).contains(&micros).then(|| Duration::from_micros(micros as u64))
}
