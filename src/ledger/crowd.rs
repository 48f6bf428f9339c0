//! Who uses a limit, and who of them waits.

use std::collections::HashMap;

use super::Micros;

/// A member heard of within this time shares what is free.
const LIVE: Micros = 1_500_000;

/// The members of one limit, each until when it counts as live. One that has callers queued until some moment counts
/// as if it had been heard of then: that is how who waits is told from who was only seen.
#[derive(Clone, Debug, Default)]
pub struct Crowd(HashMap<u64, Micros>);

impl Crowd {
    /// How many are live beside the one who asks.
    pub fn live(&self, now: Micros, asking: u64) -> i64 {
        self.others(asking).filter(|until| *until > now).count() as i64
    }

    /// Whether somebody else waits.
    pub fn is_waiting(&self, now: Micros, asking: u64) -> bool {
        self.others(asking).any(|until| until > now + LIVE)
    }

    /// A member was heard of, and has callers queued until then, or leaves.
    pub fn tell(&mut self, now: Micros, member: u64, waits: Micros, leaves: bool) {
        self.forget(now);
        if leaves {
            self.0.remove(&member);
        } else {
            self.0.insert(member, waits.max(now) + LIVE);
        }
    }

    pub fn forget(&mut self, now: Micros) {
        self.0.retain(|_, until| *until > now);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn others(&self, asking: u64) -> impl Iterator<Item = Micros> + '_ {
        self.0.iter().filter(move |(member, _)| **member != asking).map(|(_, until)| *until)
    }
}
