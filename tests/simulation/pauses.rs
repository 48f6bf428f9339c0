//! Knows who heard of which pause when, and holds every send against that.

use std::collections::VecDeque;

use tollgate::ledger::Micros;

use crate::world::{MILLI, Sent, World};

/// Which pauses a fleet gets.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    /// When, which replica hears the 429, and for how long.
    pub heard: Vec<(Micros, usize, Micros)>,
    /// Of a hundred bells so many are lost.
    pub unheard: u32,
}

/// A pause as it went.
pub struct Paused {
    /// Who heard the 429.
    pub replica: usize,
    pub time: Micros,
    /// Until when that one sends nothing, by its own clock alone.
    until: Micros,
    /// What had been sent before that.
    before: usize,
    /// When it was stored, and its end in the store.
    pub stored: Option<(Micros, Micros)>,
    /// Who learned that it is stored, and what had been sent before.
    pub told: Vec<(usize, usize)>,
}

impl Paused {
    pub fn heard(replica: usize, until: Micros, time: Micros, before: usize) -> Self {
        Self { replica, time, until, before, stored: None, told: Vec::new() }
    }
}

/// What a replica has made of its way to the store, from the smallest of its last 32 round trips, `m`: here the
/// largest that has ever been.
///
/// *How long it trusts the store.* A permit flies at most `horizon + m` after its call was sent, however near its
/// slot is (`Link::trusted_for`), with `horizon = max(50 ms, 2 m)`. The call was sent before it was decided, and was
/// decided before the pause was stored if its slot lies before the end of that. So nothing flies later than
/// `horizon + m` after the pause was stored.
///
/// *How well it knows the store's clock.* It takes each way for at least `m / 2`. If the faster one took less, its
/// moments are too early by as much, at most by what `m` is too long: that is what the guard is for.
#[derive(Default)]
pub struct Trust {
    trips: VecDeque<Micros>,
    smallest: Micros,
}

impl Trust {
    pub fn heard(&mut self, trip: Micros) {
        self.trips.push_back(trip);
        if self.trips.len() > 32 {
            self.trips.pop_front();
        }
        self.smallest = self.smallest.max(self.trips.iter().copied().min().unwrap_or(0));
    }

    pub fn lasts(&self) -> Micros {
        (50 * MILLI).max(2 * self.smallest) + self.smallest
    }

    /// `trip`: the shortest that there could have been.
    pub fn early(&self, trip: Micros) -> Micros {
        ((self.smallest + 1) / 2 - trip / 2).max(0)
    }
}

/// The first send that a pause should have stopped.
pub fn broken(world: &World) -> Option<String> {
    world.paused.iter().find_map(|pause| {
        let first = pause.replica;
        let by = |replica: usize, before: usize| {
            world.sent[before..].iter().filter(move |sent| sent.replica == replica)
        };
        // Who heard the 429 has stopped at once.
        if let Some(sent) = by(first, pause.before).find(|sent| sent.at < pause.until) {
            return Some(format!("replica {first} sent at {}, in its own pause until {}", sent.at, pause.until));
        }
        let (stored, end) = pause.stored?;
        let before_its_end = |sent: &Sent| sent.at + world.early(sent.replica) < end;
        // Who was told has stopped then, but for the hand-off: what its callers already have.
        for &(replica, before) in &pause.told {
            if let Some(sent) = by(replica, before).find(|sent| before_its_end(sent)) {
                return Some(format!("replica {replica} sent at {}, told of a pause until {end}", sent.at));
            }
        }
        // Who was not told has stopped as soon as it may not trust the store's word any more.
        let late = world
            .sent
            .iter()
            .find(|sent| stored + world.trust(sent.replica) < sent.at && before_its_end(sent))?;
        let trust = world.trust(late.replica);
        Some(format!(
            "replica {} sent at {}, though a pause until {end} was stored at {stored} and it trusts for {trust}",
            late.replica, late.at
        ))
    })
}

/// Sends while a pause was stored: what was in the hands of those who did not know yet.
pub fn strays(world: &World) -> usize {
    let stored = |at: Micros| {
        let mut pauses = world.paused.iter().filter_map(|pause| pause.stored);
        pauses.any(|(stored, end)| stored < at && at < end)
    };
    world.sent.iter().filter(|sent| stored(sent.at)).count()
}
