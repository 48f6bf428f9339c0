//! Calls in flight, as the upstream counts them: from the arrival of a request to the end of its answer. Pure:
//! time is an argument.

use serde::Serialize;

use crate::quota::Nanos;

pub struct Flights {
    max: usize,
    now: usize,
    most: usize,
    refused: usize,
    latest: Nanos,
    /// All calls' time in flight so far.
    busy: u128,
    first: Option<Nanos>,
    /// The last arrival, and the calls' time until then.
    last: (Nanos, u128),
}

/// What it came to, as JSON shows it.
#[derive(Debug, PartialEq, Serialize)]
pub struct InFlight {
    pub max: usize,
    /// The most at one moment; what was refused is not among them.
    pub most: usize,
    pub refused: usize,
    /// The calls' time in flight, of what so many places allow from the first arrival to the last.
    pub used: f64,
}

impl Flights {
    pub fn new(max: usize) -> Self {
        Self { max, now: 0, most: 0, refused: 0, latest: 0, busy: 0, first: None, last: (0, 0) }
    }

    /// A request arrives. Whether there is a place; it is taken by [`begin`](Self::begin).
    pub fn arrive(&mut self, now: Nanos) -> bool {
        self.pass(now);
        self.first.get_or_insert(self.latest);
        self.last = (self.latest, self.busy);
        let free = self.now < self.max;
        self.refused += usize::from(!free);
        free
    }

    pub fn begin(&mut self) {
        self.now += 1;
        self.most = self.most.max(self.now);
    }

    /// An answer has ended.
    pub fn end(&mut self, now: Nanos) {
        self.pass(now);
        self.now -= 1;
    }

    pub fn outcome(&self) -> InFlight {
        let (last, busy) = self.last;
        let offered = self.max as f64 * (last - self.first.unwrap_or(last)) as f64;
        let used = if offered > 0.0 { busy as f64 / offered } else { 0.0 };
        InFlight { max: self.max, most: self.most, refused: self.refused, used }
    }

    /// A clock that steps back stands still.
    fn pass(&mut self, now: Nanos) {
        let now = now.max(self.latest);
        if self.now > 0 {
            self.busy += self.now as u128 * u128::from(now - self.latest);
        }
        self.latest = now;
    }
}
