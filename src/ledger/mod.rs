//! The decision: `(state, now, call) -> (answer, state)`. No clock, no lock, no I/O.
//!
//! `lua/` holds the same under the same names in the same order; `tests/rust_and_lua_disagree.rs` plays the
//! same histories to both.

mod book;
mod bucket;
mod calendar;
mod call;
mod cells;
mod desk;
mod limits;
mod rolling;

pub use self::{
    book::{Ledger, Named, Peek},
    call::{Answer, Booked, Call, Generation, Outcome, Refused, Reply, Want},
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
}
