//! One constraint of a provider: `100/min`, as text and as a value.
//!
//! A limit is data. It knows its numbers, its name and its next resets; it reads no clock and counts nothing.

mod build;
mod calendar;
mod check;
mod counted;
mod error;
mod every;
mod grain;
mod parse;
mod reset;
mod scan;
mod stricter;
#[cfg(test)]
mod tests;
mod text;
mod zone;

use std::time::Duration;

pub use error::LimitError;
pub use every::Weekday;
pub use reset::Reset;

use counted::Counted;

const MILLI: u64 = 1_000;
const SECOND: u64 = 1_000 * MILLI;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// A share is kept in whole parts of this many, so that no float is ever stored or compared.
const WHOLE: u64 = 10_000;

/// One constraint of a provider: how many units it accepts in which window.
///
/// A unit is whatever the provider counts: a request, a token, a point, a byte. As text, a limit is a count per
/// window with modifiers after it, in any order; words are case-insensitive and white space is free, but for
/// the blank between a count and its unit:
///
/// | text | meaning |
/// |---|---|
/// | `100/min`, `17 per 30 seconds`, `10/100ms` | at most so many in *any* window of that length |
/// | `200000 tokens/min`, `200000 tokens per minute` | units other than requests; `20 requests/s` is `20/s` |
/// | `100/min unpaced` | the same, and a saturated window is spent in one burst |
/// | `10/s burst 20`, `90 points/s burst 200` | a token bucket: at most 20 + 10 t in any t seconds |
/// | `100/min aligned` | windows counted from the epoch: the count starts afresh at each full minute, UTC |
/// | `10000/day resets 00:00 America/Los_Angeles` | calendar days of that zone |
/// | `10000 input_tokens/day resets 00:00 UTC` | the same in UTC, of another unit |
/// | `5000/week resets mon 00:00 UTC` | calendar weeks; the weekday is Monday unless given |
/// | `9000/month resets 1 00:00 UTC` | calendar months; the day is 1 unless given, at most 28 |
/// | `100/min guard 10ms` | each window is stretched by the guard, for late sends and jitter on the wire |
/// | `20 in flight` | at most so many calls at once |
/// | `20 in flight lease 10s` | the same; a process that dies keeps its places that long, else 30 s |
/// | `100/min share 80%` | only that part is used, of a key that others hold too |
///
/// A unit is a word of letters, digits and underscores that begins with a letter, at most 32 long and kept in
/// lower case. It cannot be a word of the grammar (`per`, also before digits or an underscore; `in`, `a`, `an`,
/// `any`, `each`, `every`, `of`; `unpaced`, `burst`, `aligned`, `resets`, `guard`, `share`) or a multiplier
/// (`k`, `m`, `g`, `thousand`, `million`, `billion`). `request`, `reqs` and `req` are `requests`. No other words
/// are taken together: `token` and `tokens` are two units.
///
/// The units of a window are `us`, `ms`, `s` (`sec`, `second`), `min` (`minute`), `h` (`hour`), `d` (`day`)
/// and `week`, those of a guard `us`, `ms`, `s` and `min`. Numbers are whole and may carry underscores.
///
/// The ranges: a count and a burst are 1 to 10^15, a window is 1 ms to 366 days, a guard 0 to 1 hour and
/// shorter than the window, a lease 1 s to 1 hour. Numbers above 90 000 000, whose squares a double does not
/// hold exactly (Redis' Lua decides in doubles), are counted in *grains* of as few units as it takes to have
/// no more grains than that. What a call takes is rounded up to whole grains, the count and the burst are
/// rounded down: `150000000 tokens/min` is counted in twos. The price is less than one grain a call, and a
/// single call cannot take what rounding cut off. Buckets may have up to four times that grain, where it
/// keeps their refill exact.
///
/// [`Display`](std::fmt::Display) writes the canonical text, which parses back to an equal limit; serde uses
/// the same text.
///
/// ```
/// use tollgate::{Limit, LimitKind};
///
/// let limit: Limit = "2_000_000 per 60 seconds share 80%".parse()?;
/// assert_eq!(limit.max(), 1_600_000);
/// assert_eq!(limit.kind(), LimitKind::Rolling { paced: true });
/// assert_eq!(limit.to_string(), "2000000/min share 80%");
///
/// let error = "0/min".parse::<Limit>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"invalid limit "0/min": the count must be from 1 to 1_000_000_000_000_000, e.g. "100/min""#
/// );
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    /// As given, before the share.
    max: u64,
    /// In microseconds.
    window: u64,
    shape: Shape,
    /// In microseconds; `None` is the default, which depends on the window.
    guard: Option<u64>,
    /// Parts of [`WHOLE`]; all of them when no share was given.
    share: u64,
    counted: Counted,
    /// Follows from the other numbers; see [`Limit::grain`].
    grain: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Shape {
    Rolling {
        paced: bool,
    },
    Bucket {
        burst: u64,
    },
    Aligned,
    Calendar(Reset),
    /// The window is the lease.
    InFlight,
}

/// How a [`Limit`] counts.
///
/// ```
/// use tollgate::{Limit, LimitKind};
///
/// let limit: Limit = "10/s burst 20 share 50%".parse()?;
/// assert_eq!(limit.kind(), LimitKind::Bucket { burst: 10 });
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// At most `max` in any window, wherever it begins.
    Rolling {
        /// Whether a saturated window is spread out evenly. `unpaced` turns that off.
        paced: bool,
    },
    /// Refilled evenly by `max` per window, and never above the burst.
    Bucket {
        /// The most units that can be spent at once, after the share.
        burst: u64,
    },
    /// Windows of fixed length, counted from the epoch in UTC.
    Aligned,
    /// Days, weeks or months of a time zone.
    Calendar,
    /// Calls from when they are sent until the end of the answer's body, at most `max` at once.
    InFlight {
        /// For how long a process that has died keeps its places.
        lease: Duration,
    },
}

impl Limit {
    /// The most units in one window, after the share: 1 to 10^15. For a bucket, the units refilled in
    /// one window.
    ///
    /// ```
    /// let limit: tollgate::Limit = "17/30s share 50%".parse()?;
    /// assert_eq!(limit.max(), 8);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn max(&self) -> u64 {
        self.shared(self.max)
    }

    /// What the limit counts: `requests`, or the unit that it was given, in lower case.
    ///
    /// ```
    /// let limit: tollgate::Limit = "200000 Tokens per minute".parse()?;
    /// assert_eq!(limit.unit(), "tokens");
    /// assert_eq!(tollgate::Limit::per_minute(100)?.unit(), "requests");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn unit(&self) -> &str {
        self.counted.name()
    }

    /// The length of the window, 1 ms to 366 days in whole microseconds. Of a calendar day, week or month it
    /// is the nominal 1, 7 or 31 days; of calls in flight it is the lease.
    ///
    /// ```
    /// let limit: tollgate::Limit = "100/min".parse()?;
    /// assert_eq!(limit.window().as_secs(), 60);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn window(&self) -> Duration {
        Duration::from_micros(self.window)
    }

    /// The time by which a window is stretched, in whole microseconds.
    ///
    /// The one that was set; else a hundredth of the window, at least the smaller of 50 ms and a tenth of the
    /// window, at most 1 s. Windows with a reset have a larger default, the smaller of 1 s and a tenth of the
    /// window: a late send there falls into the next period, whatever the length of this one. Calls in flight have
    /// none.
    ///
    /// ```
    /// use std::time::Duration;
    /// let limit: tollgate::Limit = "100/min".parse()?;
    /// assert_eq!(limit.guard(), Duration::from_millis(600));
    /// assert_eq!(limit.with_guard(Duration::ZERO)?.guard(), Duration::ZERO);
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn guard(&self) -> Duration {
        let tenth = self.window / 10;
        let default = match self.shape {
            Shape::Rolling { .. } | Shape::Bucket { .. } => {
                (self.window / 100).max(tenth.min(50 * MILLI)).min(SECOND)
            }
            Shape::Aligned | Shape::Calendar(_) => tenth.min(SECOND),
            Shape::InFlight => 0,
        };
        Duration::from_micros(self.guard.unwrap_or(default))
    }

    /// How the limit counts; see [`Kind`].
    ///
    /// ```
    /// use tollgate::{Limit, LimitKind};
    /// let limit: Limit = "100/min unpaced".parse()?;
    /// assert_eq!(limit.kind(), LimitKind::Rolling { paced: false });
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn kind(&self) -> Kind {
        match self.shape {
            Shape::Rolling { paced } => Kind::Rolling { paced },
            Shape::Bucket { burst } => Kind::Bucket { burst: self.shared(burst).max(1) },
            Shape::Aligned => Kind::Aligned,
            Shape::Calendar(_) => Kind::Calendar,
            Shape::InFlight => Kind::InFlight { lease: self.window() },
        }
    }

    /// The burst of a bucket, after the share.
    fn shared_burst(&self) -> Option<u64> {
        match self.kind() {
            Kind::Bucket { burst } => Some(burst),
            _ => None,
        }
    }

    /// The part of `units` that the share leaves, rounded down. Wide, because it is also asked about
    /// unchecked numbers.
    fn shared(&self, units: u64) -> u64 {
        let part = u128::from(units) * u128::from(self.share) / u128::from(WHOLE);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}
