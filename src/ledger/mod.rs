//! The decision: `(state, now, call) -> (answer, state)`. No clock, no lock, no I/O.
//!
//! `lua/` holds the same under the same names in the same order; `tests/rust_and_lua_disagree.rs` plays the
//! same histories to both.

mod accord;
mod book;
mod bucket;
mod calendar;
mod call;
mod cells;
mod crowd;
mod desk;
mod far;
mod flight;
mod limits;
mod places;
mod rolling;

pub use self::{
    accord::{Accord, Change, Claim},
    book::{Ledger, Named, Peek},
    call::{
        Answer, Booked, CLASSES, Call, Class, Costs, Generation, Outcome, Refused, Reply, Undecided, Want,
    },
    limits::Rule,
};

/// Microseconds; as a moment: since the epoch, by the store's clock.
pub type Micros = i64;

/// A second of them.
pub const SECOND: Micros = 1_000_000;

impl Rule {
    /// `window` and `guard` in microseconds.
    pub fn rolling(max: i64, window: Micros, guard: Micros, paced: bool) -> Self {
        Self::Rolling(rolling::Rule::new(max, window, guard, paced))
    }

    pub fn bucket(max: i64, window: Micros, burst: i64, guard: Micros) -> Self {
        Self::Bucket(bucket::Rule::new(max, window, burst, guard))
    }

    /// `resets`: consecutive, the first not after now, at least three.
    pub fn calendar(max: i64, guard: Micros, resets: Vec<Micros>) -> Self {
        Self::Calendar(calendar::Rule { max, guard, resets })
    }

    /// `lease` in microseconds.
    pub fn in_flight(max: i64, lease: Micros) -> Self {
        Self::Flight(flight::Rule { max, lease })
    }
}

/// Which limit has the least left, of what it admits.
pub fn tightest<'a>(left: &[i64], rules: impl Iterator<Item = &'a Rule>) -> usize {
    let parts = left.iter().zip(rules).map(|(left, rule)| (i128::from(*left), i128::from(rule.max())));
    let least = parts.enumerate().reduce(|least, next| {
        let ((_, (left, max)), (_, (other, of))) = (least, next);
        if other * max < left * of { next } else { least }
    });
    least.map_or(0, |(at, _)| at)
}
