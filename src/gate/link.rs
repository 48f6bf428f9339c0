//! What the way to the store has shown of itself, and what follows for the slots.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{clock::Moment, ledger::Micros};

const TRIPS: usize = 32;
/// The shortest horizon: how long a pause may take to be heard.
const HORIZON: Micros = 50_000;
/// How late a timer may fire without that being anybody's fault.
const GRAIN: Micros = 2_000;
const MILLI: Micros = 1_000;
/// One part in so many is what two clocks may drift apart.
const DRIFT: Micros = 5_000;

/// The way to the store of a provider, as all gates of it know it, and the guard of one gate, that lateness may use
/// half of.
#[derive(Debug)]
pub struct Link {
    guard: Micros,
    way: Way,
}

/// Recent round trips and what they say. Nothing is guessed before the first reply.
#[derive(Clone, Debug, Default)]
pub struct Way(Arc<Mutex<Trips>>);

#[derive(Debug, Default)]
struct Trips {
    recent: VecDeque<Micros>,
    known: Known,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// The smallest round trip, which is what distance costs.
    smallest: Micros,
    /// The usual one on a bad day.
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

impl Way {
    fn with<T>(&self, look: impl FnOnce(&mut Trips) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Trips {
    fn heard(&mut self, sent: Moment, now: Moment, store_now: Micros) {
        if self.recent.len() == TRIPS {
            self.recent.pop_front();
        }
        self.recent.push_back((now.mono - sent.mono).max(0));
        let mut sorted: Vec<_> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        let smallest = sorted[0];
        // Each way took at least half of the smallest round trip. What earlier replies said still holds, but
        // for drift: a slow reply leaves the slots it tells of as exact as a fast one.
        let half = smallest / 2;
        let (least, most) = (store_now - now.mono + half, store_now - sent.mono - half);
        let known = self.known.ahead.map(|ahead| {
            // Gates that share the way hear in any order.
            let drift = (now.mono - ahead.as_of).max(0) / DRIFT;
            (least.max(ahead.least - drift), most.min(ahead.most + drift))
        });
        // Without an overlap one of the clocks has been set, or the way is not what it seemed: begin anew.
        let (least, most) = known.filter(|(least, most)| least <= most).unwrap_or((least, most.max(least)));
        self.known = Known {
            smallest,
            // Not the largest: one stall must not count for the next 32 calls.
            p90: sorted[sorted.len() * 9 / 10],
            ahead: Some(Ahead { least, most, as_of: now.mono }),
        };
    }
}

impl Link {
    pub fn new(guard: Micros, way: Way) -> Self {
        Self { guard, way }
    }

    pub fn set_guard(&mut self, guard: Micros) {
        self.guard = guard;
    }

    /// A call sent at `sent` was answered at `store_now` and heard of `now`.
    pub fn heard(&mut self, sent: Moment, now: Moment, store_now: Micros) {
        self.way.with(|trips| trips.heard(sent, now, store_now));
    }

    fn known(&self) -> Known {
        self.way.with(|trips| trips.known)
    }

    /// The moment of a slot on our monotonic clock: not before the first, not after the second.
    pub fn local(&self, slot: Micros) -> (Micros, Micros) {
        self.known().ahead.map_or((slot, slot), |ahead| (slot - ahead.most, slot - ahead.least))
    }

    /// How long before a slot its confirmation sets out.
    pub fn confirm_lead(&self) -> Micros {
        (self.known().p90 + MILLI).min(self.horizon())
    }

    pub fn horizon(&self) -> Micros {
        HORIZON.max(2 * self.known().smallest)
    }

    /// When the last held slot is nearer than this, the next call goes out.
    pub fn refill(&self) -> Micros {
        (self.horizon() / 2).max(self.known().smallest + 5 * MILLI)
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
        self.known().p90 - self.half() - self.lateness() + MILLI
    }

    /// Half the way: how long ago the store answered, at least.
    pub fn half(&self) -> Micros {
        self.known().smallest / 2
    }

    /// How much later than its slot a permit may fly: half of the guard, the other half is the wire's.
    pub fn lateness(&self) -> Micros {
        (self.guard / 2).max(GRAIN)
    }

    /// How long after its call was sent a permit needs the store's word anew: a pause may have come.
    pub fn trusted_for(&self) -> Micros {
        self.horizon() + self.known().smallest
    }
}
