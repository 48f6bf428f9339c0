//! The four kinds of limit behind one set of questions.

use super::{Micros, bucket, calendar, call::Class, flight, rolling};

/// One limit as numbers; how it reads is the business of [`crate::Limit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    Rolling(rolling::Rule),
    Bucket(bucket::Rule),
    Calendar(calendar::Rule),
    Flight(flight::Rule),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Rolling(rolling::State),
    Bucket(bucket::State),
    Calendar(calendar::State),
    /// Its places are not slots: who has one is decided beside them.
    Flight(flight::State),
}

/// How a slot came about, as one limit sees it.
#[derive(Clone, Copy, Debug)]
pub struct Taking {
    /// When it is booked.
    pub now: Micros,
    pub class: Class,
    /// Whether this limit made it wait.
    pub waited: bool,
    /// Whether it moves this limit's pace.
    pub paces: bool,
}

impl Rule {
    pub fn fresh(&self) -> State {
        match self {
            Self::Rolling(_) => State::Rolling(rolling::State::default()),
            Self::Bucket(_) => State::Bucket(bucket::State::default()),
            Self::Calendar(_) => State::Calendar(calendar::State::default()),
            Self::Flight(_) => State::Flight(flight::State::default()),
        }
    }

    /// The largest cost that can ever be had.
    pub fn max(&self) -> i64 {
        match self {
            Self::Rolling(rule) => rule.max,
            Self::Bucket(rule) => rule.capacity,
            Self::Calendar(rule) => rule.max,
            Self::Flight(rule) => rule.max,
        }
    }

    /// What `cost` takes of a saturated stream, in time.
    pub fn spacing(&self, cost: i64) -> Micros {
        match self {
            Self::Rolling(rule) => rolling::spacing(cost, rule.span, rule.max, 0).0,
            Self::Bucket(rule) => rule.spacing(cost),
            Self::Calendar(_) | Self::Flight(_) => 0,
        }
    }

    /// Whether the resets handed in allow a decision at `now`.
    pub fn covers(&self, now: Micros) -> bool {
        !matches!(self, Self::Calendar(rule) if !rule.covers(now))
    }

    pub fn beyond(&self, t: Micros) -> bool {
        matches!(self, Self::Calendar(rule) if t >= rule.end())
    }
}

impl State {
    /// Time passes. `resume` is the end of the last pause.
    pub fn prune(&mut self, rule: &Rule, now: Micros, resume: Micros) {
        match (self, rule) {
            (Self::Rolling(state), Rule::Rolling(rule)) => state.prune(rule, now),
            (Self::Bucket(state), Rule::Bucket(rule)) => state.pass(rule, now, resume),
            (Self::Calendar(state), Rule::Calendar(rule)) => state.prune(rule, now),
            (Self::Flight(state), Rule::Flight(_)) => state.prune(now),
            _ => {}
        }
    }

    /// The earliest slot from `t` on, in the order of its class and paced.
    pub fn earliest(&self, rule: &Rule, t: Micros, class: Class, cost: i64, resume: Micros) -> Micros {
        match (self, rule) {
            (Self::Rolling(state), Rule::Rolling(rule)) => state.earliest(rule, t, class, cost, resume),
            _ => self.room(rule, t, cost, resume),
        }
    }

    /// The earliest room from `t` on, out of order.
    pub fn room(&self, rule: &Rule, t: Micros, cost: i64, resume: Micros) -> Micros {
        match (self, rule) {
            (Self::Rolling(state), Rule::Rolling(rule)) => state.room(rule, t, cost),
            (Self::Bucket(state), Rule::Bucket(rule)) => state.earliest(rule, t, cost, resume),
            (Self::Calendar(state), Rule::Calendar(rule)) => state.room(rule, t, cost),
            _ => t,
        }
    }

    pub fn take(&mut self, rule: &Rule, slot: Micros, cost: i64, how: Taking, resume: Micros) {
        match (self, rule) {
            (Self::Rolling(state), Rule::Rolling(rule)) => state.take(rule, slot, cost, how, resume),
            (Self::Bucket(state), Rule::Bucket(rule)) => state.take(rule, how.now, slot, cost, resume),
            (Self::Calendar(state), Rule::Calendar(rule)) => state.take(rule, slot, cost),
            _ => {}
        }
    }

    /// A permit turned out to cost more. That may be more than there is: a debt, which later permits wait for, but
    /// never above the limit once more. Tells whether it was charged.
    pub fn charge(&mut self, rule: &Rule, now: Micros, slot: Micros, extra: i64, resume: Micros) -> bool {
        match (self, rule) {
            (Self::Rolling(state), Rule::Rolling(rule)) => state.charge(rule, now, slot, extra, resume),
            (Self::Bucket(state), Rule::Bucket(rule)) => state.charge(rule, extra),
            (Self::Calendar(state), Rule::Calendar(rule)) => state.charge(rule, slot, extra),
            _ => false,
        }
    }

    /// Tells whether there was something to give back.
    pub fn give(&mut self, rule: &Rule, now: Micros, slot: Micros, cost: i64) -> bool {
        match (self, rule) {
            (Self::Rolling(state), Rule::Rolling(rule)) => state.give(rule, now, slot, cost),
            (Self::Bucket(state), Rule::Bucket(rule)) => state.give(rule, now, slot, cost),
            (Self::Calendar(state), Rule::Calendar(rule)) => state.give(rule, slot, cost),
            _ => false,
        }
    }

    /// The place in the pace of what was given back is free again.
    pub fn ease(&mut self, rule: &Rule, now: Micros, cost: i64) {
        if let (Self::Rolling(state), Rule::Rolling(rule)) = (self, rule) {
            state.ease(rule, now, cost);
        }
    }

    /// What is free now, in whole permits.
    pub fn left(&self, rule: &Rule, now: Micros, resume: Micros) -> i64 {
        match (self, rule) {
            (Self::Rolling(state), Rule::Rolling(rule)) => state.left(rule),
            (Self::Bucket(state), Rule::Bucket(rule)) => state.left(rule, now, resume),
            (Self::Calendar(state), Rule::Calendar(rule)) => state.left(rule, now),
            (Self::Flight(state), Rule::Flight(rule)) => state.free(rule).max(0),
            _ => 0,
        }
    }

    /// From when on it equals a fresh one.
    pub fn idle_at(&self, rule: &Rule) -> Micros {
        match (self, rule) {
            (Self::Rolling(state), Rule::Rolling(rule)) => state.idle_at(rule),
            (Self::Bucket(state), Rule::Bucket(rule)) => state.idle_at(rule),
            (Self::Calendar(state), Rule::Calendar(rule)) => state.idle_at(rule),
            (Self::Flight(state), Rule::Flight(_)) => state.idle_at(),
            _ => 0,
        }
    }
}
