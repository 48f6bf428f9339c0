//! What a call costs, by unit.

use std::sync::Arc;

use crate::{ledger::Costs, limit::Limit};

/// The unit of a limit that names none.
pub const REQUESTS: &str = "requests";
/// What limits of calls in flight count.
pub const CALLS: &str = "calls";

/// So much of each unit that was named. Of requests and calls one unless said otherwise, of the others nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Price(Vec<(Arc<str>, u64)>);

impl Price {
    pub fn set(&mut self, unit: &str, amount: u64) {
        match self.0.iter_mut().find(|(named, _)| **named == *unit) {
            Some((_, named)) => *named = amount,
            None => self.0.push((unit.into(), amount)),
        }
    }

    pub fn is_usual(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, unit: &str) -> bool {
        self.0.iter().any(|(named, _)| **named == *unit)
    }

    pub fn of(&self, unit: &str) -> u64 {
        let named = self.0.iter().find(|(named, _)| **named == *unit);
        named.map_or(u64::from([REQUESTS, CALLS].contains(&unit)), |(_, amount)| *amount)
    }

    pub fn units(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(unit, _)| &**unit)
    }

    /// What it takes of each limit. More than can be counted is more than any limit has.
    pub fn costs<'a>(&self, limits: impl Iterator<Item = &'a Limit>) -> Costs {
        limits.map(|limit| grains(limit, self.of(limit.unit()))).collect()
    }
}

/// An amount as a limit counts it: against the caller if it counts in larger steps.
pub fn grains(limit: &Limit, amount: u64) -> i64 {
    i64::try_from(limit.to_grains(amount)).unwrap_or(i64::MAX / 4)
}
