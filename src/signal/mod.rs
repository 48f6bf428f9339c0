//! What an upstream says about our rate: which answers refuse a request, for how long, and what is left.
//!
//! Pure: an answer and the time go in, a signal comes out. Any bytes may come in; none panics, and none costs more
//! than its length.

mod backoff;
mod base;
mod body;
mod case;
mod date;
mod dialect;
mod form;
mod number;
mod raw;
mod read;
mod span;
#[cfg(test)]
mod tests;
mod verdict;

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};

pub use self::{
    backoff::{Refusals, Schedule},
    case::run_case,
    dialect::Dialect,
    raw::check_bytes,
};
use self::{
    base::Base,
    body::Body,
    read::{Hits, Seen},
    verdict::Facts,
};

/// A wait longer than this is an epoch, milliseconds or garbage: no quota we know returns later than a month.
/// It is not believed, rather than shortened: a number read wrongly says nothing about the wait. No schedule
/// has longer delays either.
const LONGEST: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// What an answer says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signal {
    /// Whether it refuses its request, and why. A success may ask for a wait, too.
    pub refusal: Option<Refusal>,
    /// How long to wait before the next call: the upstream's own word, kept whole, in whole microseconds, at most ten
    /// thousand years. Zero is a word too: "now". `None`: it gave none that can be read.
    pub wait: Option<Duration>,
    /// The windows of which it says something.
    pub windows: Vec<Window>,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too fast: the same request may be sent again.
    Rate,
    /// Something is used up, or the upstream wants no repetition: no short retry helps.
    Quota,
}

/// What an answer says of one window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// As the provider calls it; empty if it has but one.
    pub name: String,
    /// How many are granted in it, of whatever it counts.
    pub limit: Option<f64>,
    /// How many are left, never below zero.
    pub remaining: Option<f64>,
    /// How long until it begins anew, or is full again.
    pub reset: Option<Duration>,
    /// How long it keeps callers waiting while it is empty, as far as that is known.
    wait: Option<Duration>,
}

impl Signal {
    /// The wait, if it can be believed: at most 31 days.
    pub fn believed(&self) -> Option<Duration> {
        self.wait.filter(|wait| *wait <= LONGEST)
    }

    /// The window that binds: least is left in it, and of those it is the one with the latest reset.
    pub fn binding(&self) -> Option<&Window> {
        let left = |window: &Window| window.remaining.unwrap_or(f64::INFINITY);
        self.windows.iter().reduce(|binds, other| {
            let order = left(other).total_cmp(&left(binds)).then(binds.reset.cmp(&other.reset));
            if order.is_lt() { other } else { binds }
        })
    }
}

/// Reads an answer as its provider means it. Of a `body` the first 64 KiB count; `None` if nobody has looked.
///
/// `now` is when the answer came, for those whose `Date` cannot be read.
pub fn read(
    status: StatusCode,
    headers: &HeaderMap,
    body: Option<&[u8]>,
    now: SystemTime,
    dialect: &Dialect,
) -> Signal {
    let rules = dialect.rules();
    let hits = Hits::find(headers, rules);
    if hits.is_empty() && body.is_none() && !rules.judges(status, false) {
        // Most answers.
        return Signal::default();
    }
    let base = Base::new(headers, now, hits.cached);
    let mut seen = Seen::default();
    seen.read_all(rules, &hits, &base);
    let Seen { hint, windows } = &mut seen;
    if base.is_cached && (status.is_success() || status.is_redirection()) {
        // Old news, which must not stop anybody.
        windows.clear();
    }
    let body = Body::new(body);
    let refill = body.bucket(&rules.body, windows);
    let told = body.wait(&rules.body, &base);
    let (hint, pace) = (hint.map(|(_, wait)| wait), windows.pace());
    let windows = windows.finish(rules, &base);
    Facts { status, headers, body, hint, told, refill, pace, windows }.decide(rules, &base)
}

/// Of two waits the longer one, if that can be believed.
fn longer_of(one: Duration, other: Duration) -> Duration {
    let (less, more) = if one < other { (one, other) } else { (other, one) };
    if more > LONGEST && less <= LONGEST { less } else { more }
}
