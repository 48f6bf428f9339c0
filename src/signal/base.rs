//! By which clock the dates of an answer count.

use std::{
    cell::OnceCell,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderValue, header::DATE};

use super::{date, number::round_up};

/// Where caches say that an answer is theirs: all, those of libraries, of proxies, and of one large network.
pub const CACHES: [&str; 4] = ["age", "x-from-cache", "x-cache", "cf-cache-status"];

/// Whether one of these headers says that the answer was stored before: then its `Date` is old, and what it says about
/// a limit too.
pub fn says_cached(name: &str, value: &HeaderValue) -> bool {
    let Some(word) = text(value) else { return false };
    match name {
        "age" => word.parse::<u64>().is_ok_and(|age| age > 0),
        // It has no more meaning than that it is there.
        "x-from-cache" => !matches!(word, "" | "0" | "false"),
        _ => word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("hit")),
    }
}

/// An answer and the time at which it came. What only few answers need is looked up when it is needed.
pub struct Base<'a> {
    headers: &'a HeaderMap,
    now: SystemTime,
    pub is_cached: bool,
    from: OnceCell<SystemTime>,
}

impl<'a> Base<'a> {
    pub fn new(headers: &'a HeaderMap, now: SystemTime, is_cached: bool) -> Self {
        Self { headers, now, is_cached, from: OnceCell::new() }
    }

    /// From when on dates and epochs count: the answer's own `Date`, because the provider's clock may be far from
    /// ours. Ours, if it has none or comes from a cache.
    pub fn time(&self) -> SystemTime {
        *self.from.get_or_init(|| {
            let date = self.headers.get(DATE).and_then(text).and_then(|text| date::http(text, self.now));
            date.filter(|_| !self.is_cached).unwrap_or(self.now)
        })
    }

    /// How long until then, up to a whole microsecond; zero if it has passed, `None` if that is beyond all bounds.
    pub fn until(&self, at: SystemTime) -> Option<Duration> {
        round_up(at.duration_since(self.time()).unwrap_or_default())
    }

    /// The same for a time since 1970.
    pub fn until_epoch(&self, since: Duration) -> Option<Duration> {
        self.until(SystemTime::UNIX_EPOCH.checked_add(since)?)
    }
}

/// `None` for anything but visible ASCII, spaces and tabs.
pub fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(str::trim_ascii)
}
