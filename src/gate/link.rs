//! What the way to the store has shown of itself, and what follows for the slots.

use std::collections::VecDeque;

use crate::{clock::Moment, ledger::Micros};

const TRIPS: usize = 32;
/// The shortest horizon: how long a pause may take to be heard.
const HORIZON: Micros = 50_000;
/// How late a timer may fire without that being anybody's fault.
const GRAIN: Micros = 2_000;
const MILLI: Micros = 1_000;
/// One part in so many is what two clocks may drift apart.
const DRIFT: Micros = 5_000;

/// Recent round trips, what they say of the store's clock, and the guard that lateness may use half of.
#[derive(Debug)]
pub struct Link {
    guard: Micros,
    trips: VecDeque<Micros>,
    /// The smallest of them, which is what distance costs, and the usual one on a bad day. Nothing is guessed
    /// before the first reply.
    smallest: Micros,
    p90: Micros,
    ahead: Option<Ahead>,
}

/// How far the store's clock is ahead of our monotonic one: between these, as of a moment.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    least: Micros,
    most: Micros,
    as_of: Micros,
}

impl Link {
    pub fn new(guard: Micros) -> Self {
        Self { guard, trips: VecDeque::with_capacity(TRIPS), smallest: 0, p90: 0, ahead: None }
    }

    /// A call sent at `sent` was answered at `store_now` and heard of `now`.
    pub fn heard(&mut self, sent: Moment, now: Moment, store_now: Micros) {
        if self.trips.len() == TRIPS {
            self.trips.pop_front();
        }
        self.trips.push_back((now.mono - sent.mono).max(0));
        let mut sorted: Vec<_> = self.trips.iter().copied().collect();
        sorted.sort_unstable();
        self.smallest = sorted[0];
        // Not the largest: one stall must not count for the next 32 calls.
        self.p90 = sorted[sorted.len() * 9 / 10];
        // Each way took at least half of the smallest round trip. What earlier replies said still holds, but
        // for drift: a slow reply leaves the slots it tells of as exact as a fast one.
        let half = self.half();
        let (least, most) = (store_now - now.mono + half, store_now - sent.mono - half);
        let known = self.ahead.map(|ahead| {
            let drift = (now.mono - ahead.as_of) / DRIFT;
            (least.max(ahead.least - drift), most.min(ahead.most + drift))
        });
        // Without an overlap one of the clocks has been set, or the way is not what it seemed: begin anew.
        let (least, most) = known.filter(|(least, most)| least <= most).unwrap_or((least, most.max(least)));
        self.ahead = Some(Ahead { least, most, as_of: now.mono });
    }

    /// The moment of a slot on our monotonic clock: not before the first, not after the second.
    pub fn local(&self, slot: Micros) -> (Micros, Micros) {
        self.ahead.map_or((slot, slot), |ahead| (slot - ahead.most, slot - ahead.least))
    }

    /// How long before a slot its confirmation sets out.
    pub fn confirm_lead(&self) -> Micros {
        (self.p90 + MILLI).min(self.horizon())
    }

    pub fn horizon(&self) -> Micros {
        HORIZON.max(2 * self.smallest)
    }

    /// When the last held slot is nearer than this, the next call goes out.
    pub fn refill(&self) -> Micros {
        (self.horizon() / 2).max(self.smallest + 5 * MILLI)
    }

    /// Just enough that the fastest reply is a quarter of the guard late, and nearly all are late by no more
    /// than half: every bit more would be a hole in a stream that others book up to now.
    pub fn lead(&self) -> Micros {
        let fastest = self.half() - self.guard / 4;
        fastest.max(self.forgiven()).clamp(0, self.horizon() / 2)
    }

    /// How much before that a slot may lie if it was booked already: nearly all replies are then still in time.
    pub fn late(&self) -> Micros {
        (self.lead() - self.forgiven()).max(0)
    }

    /// From the store's now on, the earliest slot of which nearly all replies let a permit fly.
    fn forgiven(&self) -> Micros {
        self.p90 - self.half() - self.lateness() + MILLI
    }

    /// Half the way: how long ago the store answered, at least.
    pub fn half(&self) -> Micros {
        self.smallest / 2
    }

    /// How much later than its slot a permit may fly: half of the guard, the other half is the wire's.
    pub fn lateness(&self) -> Micros {
        (self.guard / 2).max(GRAIN)
    }

    /// How long after its call was sent a permit needs the store's word anew: a pause may have come.
    pub fn trusted_for(&self) -> Micros {
        self.horizon() + self.smallest
    }
}
