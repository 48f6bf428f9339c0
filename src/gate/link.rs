//! What the way to the store has shown of itself, and what follows for the slots.

use std::collections::VecDeque;

use crate::ledger::Micros;

const TRIPS: usize = 32;
/// The shortest horizon: how long a pause may take to be heard.
const HORIZON: Micros = 50_000;
/// How late a timer may fire without that being anybody's fault.
const GRAIN: Micros = 2_000;
const MILLI: Micros = 1_000;

/// Recent round trips, and the guard that lateness may use half of.
#[derive(Debug)]
pub struct Link {
    guard: Micros,
    trips: VecDeque<Micros>,
}

impl Link {
    pub fn new(guard: Micros) -> Self {
        Self { guard, trips: VecDeque::with_capacity(TRIPS) }
    }

    pub fn heard(&mut self, trip: Micros) {
        if self.trips.len() == TRIPS {
            self.trips.pop_front();
        }
        self.trips.push_back(trip.max(0));
    }

    /// The smallest round trip: what distance costs. Nothing is guessed before the first reply.
    pub fn smallest(&self) -> Micros {
        self.trips.iter().copied().min().unwrap_or(0)
    }

    /// How long before a slot its confirmation sets out. The p90, not the largest: one stall must not
    /// buy a bigger share for the next 32 calls.
    pub fn confirm_lead(&self) -> Micros {
        let mut sorted: Vec<_> = self.trips.iter().copied().collect();
        sorted.sort_unstable();
        let p90 = sorted.get(sorted.len() * 9 / 10).copied().unwrap_or(MILLI);
        (p90 + MILLI).min(self.horizon())
    }

    pub fn horizon(&self) -> Micros {
        HORIZON.max(2 * self.smallest())
    }

    /// When the last held slot is nearer than this, the next call goes out.
    pub fn refill(&self) -> Micros {
        (self.horizon() / 2).max(self.smallest() + 5 * MILLI)
    }

    /// Just enough that a usual reply is at most a quarter of the guard late.
    pub fn lead(&self) -> Micros {
        (self.smallest() / 2 - self.guard / 4).max(0)
    }

    /// Half the way: how long ago the store answered.
    pub fn half(&self) -> Micros {
        self.smallest() / 2
    }

    /// How long after its call was sent a permit with this delay may still fly: no later than the guard
    /// forgives, and no later than a pause may take to be heard.
    pub fn fresh_for(&self, delay: Micros) -> Micros {
        let late = self.half() + delay + (self.guard / 2).max(GRAIN);
        late.min(self.horizon() + self.smallest())
    }
}
