//! A permit as its gate holds it.

use super::{link::Link, queue::Ticket};
use crate::{
    clock::Moment,
    ledger::{Answer, Booked, Costs, Generation, Micros, Rule, tightest},
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
    /// It has its places in flight, if it needs any. One whose slot was far when it was booked gets them when it is
    /// confirmed and near.
    pub seated: bool,
    /// The slot on our monotonic clock, at the latest.
    pub due: Micros,
    /// When the call that told of it was sent, and how long after that it may still fly.
    pub(super) sent: Moment,
    pub(super) fresh_for: Micros,
    /// How often the store had been doubted when it was handed out.
    pub doubts: u32,
    /// The place of the caller that it went to.
    pub ticket: Ticket,
    /// How long its caller waited.
    pub waited: Micros,
    /// The limit with the least left, and how much.
    pub tightest: u16,
    pub remaining: i64,
}

impl Permit {
    pub fn new(
        booked: Booked,
        now: Moment,
        sent: Moment,
        answer: &Answer,
        link: &Link,
        rules: &[Rule],
    ) -> Self {
        let (first, last) = link.local(booked.slot);
        let tightest = tightest(&answer.left, rules.iter());
        Self {
            booked,
            generation: answer.generation,
            stage: Stage::Ready,
            seated: true,
            due: now.mono.max(last),
            sent,
            fresh_for: (first + link.lateness() - sent.mono).min(link.trusted_for()),
            doubts: 0,
            ticket: Ticket::default(),
            waited: 0,
            tightest: tightest as u16,
            remaining: answer.left.get(tightest).copied().unwrap_or(0),
        }
    }

    /// One that a store in this process has given for now.
    pub fn at_once(costs: Costs, taken: &Taken, now: Moment, lateness: Micros) -> Self {
        Self {
            booked: Booked::new(taken.at, costs),
            generation: taken.generation,
            stage: Stage::Ready,
            seated: true,
            due: now.mono,
            sent: now,
            fresh_for: lateness,
            doubts: 0,
            ticket: Ticket::default(),
            waited: 0,
            tightest: taken.tightest as u16,
            remaining: taken.remaining,
        }
    }

    /// Takes a part of its costs out of it, as a permit of its own with the same slot.
    pub fn split(&mut self, costs: Costs) -> Self {
        self.booked.costs = self.booked.costs.minus(&costs);
        Self { booked: Booked { costs, ..self.booked.clone() }, ..self.clone() }
    }

    /// Whether it may fly at `now`: not so late that the guard would not forgive it.
    pub fn is_fresh(&self, now: Moment) -> bool {
        !self.booked.far && now.since(self.sent) <= self.fresh_for
    }

    /// Its slot is so far ahead that a pause could come in between, or that it has no places yet: to be confirmed.
    pub fn is_far(&self) -> bool {
        !self.seated || self.due - self.sent.mono > self.fresh_for
    }

    /// It may have become another's by the time it is due, or a pause have come.
    pub fn must_be_confirmed(&self) -> bool {
        self.booked.far || self.is_far()
    }

    /// Whether it is time to ask the store about it: it is late, or far and soon due.
    pub fn needs_confirming(&self, now: Micros, lead: Micros) -> bool {
        match self.stage {
            Stage::Late => true,
            Stage::Ready => self.must_be_confirmed() && self.due - lead <= now,
            Stage::Asked => false,
        }
    }
}
