//! The ranges, in one place for text and builders alike. A `Limit` outside of them does not leave this
//! module.

use super::text::{guard_text, window_text};
use super::{DAY, HOUR, Limit, LimitError, MILLI, Shape, WHOLE};

/// The square of a larger count leaves the integers that a double holds exactly, and Redis' Lua decides with
/// doubles.
pub(super) const MOST: u64 = 90_000_000;
/// The last integer before doubles have gaps.
const EXACT: u64 = 1 << 53;

const SHORTEST: u64 = MILLI;
const LONGEST: u64 = 366 * DAY;

pub(super) const COUNT: &str = r#"the count must be from 1 to 90000000, e.g. "100/min""#;
pub(super) const WINDOW: &str = r#"the window must be from 1 ms to 366 days, e.g. "100/min""#;
pub(super) const BURST: &str = r#"the burst must be from 1 to 90000000, e.g. "10/s burst 20""#;

impl Limit {
    /// The limit, if it is one; else an error that shows it.
    pub(super) fn checked(self) -> Result<Limit, LimitError> {
        match self.check() {
            Ok(()) => Ok(self),
            Err(problem) => Err(LimitError::limit(self.to_string(), problem)),
        }
    }

    /// What is wrong with the numbers.
    pub(super) fn check(&self) -> Result<(), String> {
        require(1, self.max, MOST, COUNT)?;
        require(SHORTEST, self.window, LONGEST, WINDOW)?;
        if self.max() == 0 {
            return Err(format!("the share leaves less than 1 of {}: use a larger share", self.max));
        }
        if let Shape::Bucket { burst } = self.shape {
            require(1, burst, MOST, BURST)?;
            self.check_burst(burst)?;
        }
        match self.guard {
            Some(guard) if guard >= self.window => {
                Err(format!("the guard must be shorter than the window ({})", guard_text(self.window)))
            }
            Some(guard) if guard > HOUR => {
                Err(r#"the guard must be at most 60min, e.g. "guard 10ms""#.to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Lua counts a bucket in steps of one token per p microseconds, p being the window reduced by the count:
    /// burst * p must stay exact. Both before and after the share, since the share changes p, and an order of
    /// modifiers must not decide.
    fn check_burst(&self, burst: u64) -> Result<(), String> {
        let before = self.largest_burst(self.max);
        // The largest whose shared part, rounded down, is still within.
        let after = self.largest_burst(self.max());
        let after = (u128::from(after + 1) * u128::from(WHOLE) - 1) / u128::from(self.share);
        let largest = u128::from(before).min(after);
        if u128::from(burst) <= largest {
            return Ok(());
        }
        Err(format!(
            "the burst does not fit {}/{}: the largest that does is {largest}",
            self.max,
            window_text(self.window)
        ))
    }

    fn largest_burst(&self, rate: u64) -> u64 {
        EXACT / (self.window / gcd(rate, self.window))
    }
}

fn require(least: u64, value: u64, most: u64, expected: &str) -> Result<(), String> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(expected.to_owned()) }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
