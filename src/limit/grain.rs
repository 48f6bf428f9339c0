//! Counts that doubles cannot hold, in grains that they can.
//!
//! Redis' Lua decides with doubles, and multiplies counts with each other and with times. A limit with larger
//! numbers is counted in grains of several units. Each rounding is against the caller: the count and the burst
//! are rounded down, what a call takes is rounded up. So a call is counted at most one grain too high, and one
//! that asks for all of `max` may not fit: the most is [`Limit::grains`] times the grain.

use super::{Limit, Shape};

/// The square of a larger count leaves the integers that a double holds exactly.
pub(super) const MOST: u64 = 90_000_000;
/// Half of what doubles count without gaps: a bucket may be in debt for as much as it holds.
const EXACT: u64 = 1 << 52;
/// The fewest grains in the count or burst of a bucket, so that rounding takes at most a hundredth of either.
const FEWEST: u64 = 100;
/// A bucket is rather refused than counted in grains so many times as large as the size alone asks for. Round
/// numbers stay below twice.
const COARSEST: u64 = 4;
/// How many grains are tried for a bucket: milliseconds at most.
const TRIES: usize = 20_000;

impl Limit {
    /// Units per grain: the smallest whole number with which [`Limit::max`] and the burst are at most
    /// 90 000 000 grains, 1 for numbers that are so already. For a bucket the smallest with which it can be
    /// counted exactly as well, at most four times that: round numbers must not be refused because the grain
    /// makes them odd ones.
    pub(crate) fn grain(&self) -> u64 {
        self.grain
    }

    /// [`Limit::max`] and the burst of a bucket in grains, rounded down: 1 to 90 000 000.
    pub(crate) fn grains(&self) -> (u64, Option<u64>) {
        (self.max() / self.grain, self.shared_burst().map(|burst| burst / self.grain))
    }

    /// What a call of `cost` units takes, in grains, rounded up: less than one grain too much.
    pub(crate) fn to_grains(&self, cost: u64) -> u64 {
        cost.div_ceil(self.grain)
    }

    /// So many grains as units.
    pub(crate) fn in_units(&self, grains: i64) -> u64 {
        u64::try_from(grains).unwrap_or(0).saturating_mul(self.grain)
    }

    /// The grain of checked numbers, which has to be found only once. An error if there is none, which only
    /// happens to buckets.
    pub(super) fn find_grain(&self) -> Result<u64, String> {
        let (Shape::Bucket { burst }, Some(shared)) = (&self.shape, self.shared_burst()) else {
            return Ok(least(self.max()));
        };
        // Both before and after the share, since the share changes p, and an order of modifiers must not decide.
        match (exact(self.max, *burst, self.window), exact(self.max(), shared, self.window)) {
            (Some(_), Some(grain)) => Ok(grain),
            _ => Err(self.misfit(*burst)),
        }
    }
}

/// The smallest grain of which `units` have at most [`MOST`].
fn least(units: u64) -> u64 {
    units / (MOST + 1) + 1
}

/// The smallest grain in which a bucket is counted exactly.
fn exact(max: u64, burst: u64, window: u64) -> Option<u64> {
    let fits = |grain: &u64| burst / grain <= largest_burst(max / grain, window);
    match least(max.max(burst)) {
        1 => Some(1).filter(fits),
        least => {
            let most = (max.min(burst) / FEWEST).min(COARSEST * least);
            (least..=most).take(TRIES).find(fits)
        }
    }
}

/// Lua counts a bucket in steps of one token per p microseconds, p being the window reduced by the count:
/// burst * p must stay exact.
pub(super) fn largest_burst(max: u64, window: u64) -> u64 {
    EXACT / (window / gcd(max, window))
}

/// The least and the most that a burst can be beside a count, if one of them is above [`MOST`].
pub(super) fn bursts_beside(max: u64) -> (u64, u64) {
    // The grain that the count needs must be small for the burst, and the one that the burst needs for the count.
    (least(max) * FEWEST, (max / FEWEST).max(1).saturating_mul(MOST + 1) - 1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
