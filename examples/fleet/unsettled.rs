//! By how much a window may be over because estimates were too low: what requests take beyond what was booked for
//! them, as long as nobody knows. Pure.

use serde::Serialize;

use crate::quota::Nanos;

/// A slot is booked before it is due: by less than this, unless the store is slow. (The one slot that each
/// replica books further ahead is left out.)
const AHEAD: Nanos = 50_000_000;
/// What an answer has told is in the store by then.
const AFTER: Nanos = 50_000_000;

/// A request whose real amount was told by its answer.
#[derive(Clone, Copy)]
pub struct Guess {
    pub granted: Nanos,
    pub sent: Nanos,
    /// When the answer had been read; `None`: not in this run.
    pub ended: Option<Nanos>,
    pub booked: u64,
    pub real: u64,
}

/// Of one unit, as JSON shows it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Unsettled {
    pub unit: String,
    /// The largest sum of real less booked of all requests in flight at one moment.
    pub in_flight: u64,
    /// The same with those that were too low from 50 ms before they were granted until 50 ms after their end: a
    /// window may be over by so much, since a decision can rest on any of these.
    pub bound: u64,
    /// The sums of all that was booked and of all that it really was.
    pub booked: u64,
    pub real: u64,
}

impl Unsettled {
    pub fn new(unit: &str, guesses: &[Guess]) -> Self {
        let off = |one: &Guess| one.real as i64 - one.booked as i64;
        let flown = guesses.iter().map(|one| (one.sent, one.ended, off(one)));
        let wide = guesses.iter().map(|one| match off(one) {
            low @ 1.. => (one.granted.saturating_sub(AHEAD), one.ended.map(|end| end + AFTER), low),
            high => (one.sent, one.ended, high),
        });
        Self {
            unit: unit.to_owned(),
            in_flight: largest_sum(flown),
            bound: largest_sum(wide),
            booked: guesses.iter().map(|one| one.booked).sum(),
            real: guesses.iter().map(|one| one.real).sum(),
        }
    }
}

/// Of amounts that hold from one moment until another, which is no longer in it.
fn largest_sum(spans: impl Iterator<Item = (Nanos, Option<Nanos>, i64)>) -> u64 {
    let ends = |(from, until, amount): (Nanos, Option<Nanos>, i64)| {
        [Some((from, amount)), until.map(|until| (until, -amount))]
    };
    let mut changes: Vec<_> = spans.flat_map(ends).flatten().collect();
    changes.sort_by_key(|(at, _)| *at);
    let (mut sum, mut most) = (0, 0);
    for at_once in changes.chunk_by(|one, other| one.0 == other.0) {
        sum += at_once.iter().map(|(_, amount)| amount).sum::<i64>();
        most = most.max(sum);
    }
    most.unsigned_abs()
}
