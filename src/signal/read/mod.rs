//! From the headers of an answer to waits and windows.

mod drafts;
mod lists;
mod members;
mod percent;
mod structured;

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

pub use drafts::{Drafts, emptied, seconds};

use super::{
    base::{Base, says_cached, text},
    dialect::{Means, Rules},
    longer_of,
    number::Count,
};

/// The headers that a dialect reads.
#[derive(Debug, Default)]
pub struct Hits<'a> {
    all: Vec<Hit<'a>>,
    /// The answer was stored somewhere before.
    pub cached: bool,
}

#[derive(Debug)]
struct Hit<'a> {
    /// Which header of the dialect.
    row: usize,
    /// What its star stands for.
    star: &'a str,
    /// Of several lines with this name.
    line: usize,
    value: &'a HeaderValue,
}

impl<'a> Hits<'a> {
    /// One look at each header.
    pub fn find(headers: &'a HeaderMap, rules: &Rules) -> Self {
        let mut hits = Self::default();
        // The lines of one header follow each other.
        let (mut last, mut line): (Option<&HeaderName>, usize) = (None, 0);
        for (name, value) in headers {
            let text = name.as_str();
            if let Some((row, star)) = rules.index.find(text) {
                line = if last == Some(name) { line + 1 } else { 0 };
                last = Some(name);
                hits.take(rules, Hit { row, star, line, value }, text);
            }
        }
        hits
    }

    /// Seldom called: it must not make the loop larger.
    #[inline(never)]
    fn take(&mut self, rules: &Rules, hit: Hit<'a>, name: &str) {
        if hit.row < rules.headers.len() {
            if self.all.is_empty() {
                self.all.reserve(8);
            }
            self.all.push(hit);
        } else {
            self.cached |= says_cached(name, hit.value);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// What the headers said.
#[derive(Debug, Default)]
pub struct Seen<'a> {
    /// Of the waits that are told, the one that the dialect names first.
    pub hint: Option<(usize, Duration)>,
    pub windows: Drafts<'a>,
}

impl<'a> Seen<'a> {
    pub fn read_all(&mut self, rules: &'a Rules, hits: &Hits<'a>, base: &Base<'_>) {
        let mut structured = false;
        for hit in &hits.all {
            if is_structured(rules, hit.row) {
                structured = true;
                continue;
            }
            if let Some(text) = text(hit.value).filter(|text| !text.is_empty()) {
                self.read(rules, hit.row, hit.star, (hit.line, text), base);
            }
        }
        if structured {
            self.structured(rules, hits);
        }
    }

    fn read(&mut self, rules: &'a Rules, row: usize, star: &'a str, at: (usize, &'a str), base: &Base<'_>) {
        let header = &rules.headers[row];
        let (line, text) = at;
        let group = header.window.as_deref().unwrap_or_default();
        let windows = &mut self.windows;
        match header.means {
            Means::Wait => self.waits(row, header.form.read(text, base)),
            Means::Waits => self.waits(row, lists::longest(header.form, text, base)),
            Means::Limit | Means::Remaining | Means::Used => {
                lists::counts(windows, header.means, group, star, &header.windows, at);
                if header.means == Means::Used && !star.is_empty() {
                    // The window's name is its length: `x-used-weight-1m`.
                    let length = super::span::read(star);
                    windows.at(group, star, line).into_iter().for_each(|draft| draft.length = length);
                }
            }
            Means::Reset => {
                if let Some(reset) = header.form.read(text, base)
                    && let Some(draft) = windows.at(group, star, line)
                {
                    draft.reset(row, reset);
                }
            }
            Means::Length => {
                if let Some(length) = header.form.read(text, base)
                    && let Some(draft) = windows.at(group, star, line)
                {
                    draft.length = Some(length);
                }
            }
            Means::Name => windows.at(group, star, line).into_iter().for_each(|draft| draft.title = text),
            Means::Rate => {
                if let Some(Count::Known(rate)) = Count::read(text)
                    && let Some(draft) = windows.at(group, star, line)
                {
                    (draft.limit, draft.rate) = (Some(rate), true);
                }
            }
            Means::UsedOfLimit => lists::used_of_limit(windows, group, line, text),
            Means::LimitPerLength | Means::UsedPerLength => {
                lists::per_length(windows, header.means, group, text)
            }
            Means::Pairs => lists::pairs(windows, (row, header.form, base), group, star, text),
            Means::UsagePercent => {
                let regain = percent::usage(windows, row, group, text);
                self.waits(row, regain);
            }
            Means::RateLimit | Means::RateLimitPolicy => {}
        }
    }

    /// Of several lines of one header the longest that can be believed, so that one bad line does not hide a good one.
    fn waits(&mut self, row: usize, wait: Option<Duration>) {
        let Some(wait) = wait else { return };
        self.hint = match self.hint {
            Some((first, _)) if first < row => self.hint,
            Some((first, told)) if first == row => Some((row, longer_of(told, wait))),
            _ => Some((row, wait)),
        };
    }

    /// Fields that are read when all their lines are known.
    fn structured(&mut self, rules: &'a Rules, hits: &Hits<'a>) {
        let fields = hits.all.iter().filter(|hit| is_structured(rules, hit.row));
        let mut fields: Vec<_> = fields.map(|hit| (hit.row, hit.value)).collect();
        // Stable: the lines of a field stay in order.
        fields.sort_by_key(|(row, _)| *row);
        for lines in fields.chunk_by(|one, other| one.0 == other.0) {
            let row = lines[0].0;
            let header = &rules.headers[row];
            let group = header.window.as_deref().unwrap_or_default();
            match header.means {
                Means::RateLimitPolicy => structured::policy(&mut self.windows, group, lines),
                _ => structured::state(&mut self.windows, row, group, lines),
            }
        }
    }
}

fn is_structured(rules: &Rules, row: usize) -> bool {
    matches!(rules.headers[row].means, Means::RateLimit | Means::RateLimitPolicy)
}
