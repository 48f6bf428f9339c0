//! A permit as its gate holds it.

use super::{link::Link, queue::Ticket};
use crate::{
    clock::Moment,
    ledger::{Answer, Booked, Generation, Micros},
    store::Taken,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// May fly at its slot.
    Ready,
    /// Its slot has passed, or the store may have changed its mind: it must be exchanged or confirmed.
    Late,
    /// In a call that confirms or exchanges it.
    Asked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    pub booked: Booked,
    pub generation: Generation,
    pub stage: Stage,
    /// The slot on our monotonic clock, at the latest.
    pub due: Micros,
    /// When the call that told of it was sent, and how long after that it may still fly.
    pub(super) sent: Moment,
    pub(super) fresh_for: Micros,
    /// How often the store had been doubted when it was handed out.
    pub doubts: u64,
    /// The place of the caller that it went to.
    pub ticket: Ticket,
    /// How long its caller waited.
    pub waited: Micros,
    /// The limit with the least left, and how much.
    pub tightest: usize,
    pub remaining: i64,
}

impl Permit {
    pub fn new(cost: i64, slot: Micros, now: Moment, sent: Moment, answer: &Answer, link: &Link) -> Self {
        let (first, last) = link.local(slot);
        let (tightest, remaining) =
            answer.left.iter().copied().enumerate().min_by_key(|(_, left)| *left).unwrap_or((0, 0));
        Self {
            booked: Booked { slot, cost },
            generation: answer.generation,
            stage: Stage::Ready,
            due: now.mono.max(last),
            sent,
            fresh_for: (first + link.lateness() - sent.mono).min(link.trusted_for()),
            doubts: 0,
            ticket: Ticket::default(),
            waited: 0,
            tightest,
            remaining,
        }
    }

    /// One that a store in this process has given for now.
    pub fn at_once(cost: i64, taken: &Taken, now: Moment, lateness: Micros) -> Self {
        Self {
            booked: Booked { slot: taken.at, cost },
            generation: taken.generation,
            stage: Stage::Ready,
            due: now.mono,
            sent: now,
            fresh_for: lateness,
            doubts: 0,
            ticket: Ticket::default(),
            waited: 0,
            tightest: taken.tightest,
            remaining: taken.remaining,
        }
    }

    /// Takes a part of its cost out of it, as a permit of its own with the same slot.
    pub fn split(&mut self, cost: i64) -> Self {
        self.booked.cost -= cost;
        Self { booked: Booked { cost, ..self.booked }, ..self.clone() }
    }

    /// Whether it may fly at `now`: not so late that the guard would not forgive it.
    pub fn is_fresh(&self, now: Moment) -> bool {
        now.since(self.sent) <= self.fresh_for
    }

    /// Its slot is so far ahead that a pause could come in between: to be confirmed.
    pub fn is_far(&self) -> bool {
        self.due - self.sent.mono > self.fresh_for
    }

    /// Whether it is time to ask the store about it: it is late, or far and soon due.
    pub fn needs_confirming(&self, now: Micros, lead: Micros) -> bool {
        match self.stage {
            Stage::Late => true,
            Stage::Ready => self.is_far() && self.due - lead <= now,
            Stage::Asked => false,
        }
    }
}
