//! The ranges, in one place for text and builders alike. A `Limit` outside of them does not leave this
//! module.

use super::grain::{self, MOST};
use super::text::{guard_text, window_text};
use super::{DAY, HOUR, Limit, LimitError, MILLI, SECOND, Shape, WHOLE};

const SHORTEST: u64 = MILLI;
const LONGEST: u64 = 366 * DAY;

/// The largest count, as a number and in what is said about it.
macro_rules! largest {
    ($largest:literal) => {
        const LARGEST: u64 = $largest;
        pub(super) const COUNT: &str =
            concat!("the count must be from 1 to ", stringify!($largest), r#", e.g. "100/min""#);
        pub(super) const BURST: &str =
            concat!("the burst must be from 1 to ", stringify!($largest), r#", e.g. "10/s burst 20""#);
    };
}
// A double holds it exactly, for whoever reads it as one.
largest!(1_000_000_000_000_000);

/// How long a process that has died keeps its places, unless the limit says so.
pub(super) const LEASE: u64 = 30 * SECOND;
pub(super) const LEASES: &str =
    r#"the lease must be a whole number of ms, s or min, from 1s to 60min, e.g. "20 in flight lease 10s""#;
pub(super) const WINDOW: &str = r#"the window must be from 1 ms to 366 days, e.g. "100/min""#;

impl Limit {
    /// The limit, if it is one; else an error that shows it.
    pub(super) fn checked(mut self) -> Result<Limit, LimitError> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(problem) => Err(LimitError::limit(self.to_string(), problem)),
        }
    }

    /// What is wrong with the numbers; else they get their grain.
    pub(super) fn check(&mut self) -> Result<(), String> {
        require(1, self.max, LARGEST, COUNT)?;
        match self.shape {
            Shape::InFlight => require(SECOND, self.window, HOUR, LEASES)?,
            _ => require(SHORTEST, self.window, LONGEST, WINDOW)?,
        }
        if self.max() == 0 {
            return Err(format!("the share leaves less than 1 of {}: use a larger share", self.max));
        }
        if let Shape::Bucket { burst } = self.shape {
            require(1, burst, LARGEST, BURST)?;
        }
        self.grain = self.find_grain()?;
        match self.guard {
            Some(_) if self.shape == Shape::InFlight => {
                Err(r#"calls in flight have no guard: leave it out, e.g. "20 in flight""#.to_owned())
            }
            Some(guard) if guard >= self.window => {
                Err(format!("the guard must be shorter than the window ({})", guard_text(self.window)))
            }
            Some(guard) if guard > HOUR => {
                Err(r#"the guard must be at most 60min, e.g. "guard 10ms""#.to_owned())
            }
            _ => Ok(()),
        }
    }

    /// What to do about a burst that has no grain.
    pub(super) fn misfit(&self, burst: u64) -> String {
        let rate = format!("{}{}/{}", self.max, self.counted, window_text(self.window));
        if self.max <= MOST && burst <= MOST {
            let before = grain::largest_burst(self.max, self.window);
            // The largest whose shared part, rounded down, is still within.
            let after = grain::largest_burst(self.max(), self.window);
            let after = (u128::from(after + 1) * u128::from(WHOLE) - 1) / u128::from(self.share);
            let largest = u128::from(before).min(after);
            return format!("the burst does not fit {rate}: the largest that does is {largest}");
        }
        let (least, most) = grain::bursts_beside(self.max);
        if burst > most {
            format!("the burst is too large beside {rate}: use at most {most}")
        } else if burst < least {
            format!("the burst is too small beside {rate}: use at least {least}")
        } else {
            format!("the burst does not fit {rate}: use a smaller one, or rounder numbers")
        }
    }
}

fn require(least: u64, value: u64, most: u64, expected: &str) -> Result<(), String> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(expected.to_owned()) }
}
