use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Pending, Quota, Store, StoreError};
use crate::{
    clock::Clock,
    ledger::{Answer, Call, Ledger, Micros, Peek, Reply},
};

/// A century: longer pauses would leave the numbers that stay exact.
const LONGEST: Micros = 100 * 366 * 86_400 * 1_000_000;

/// State in this process, for this process: the default. It keeps every promise but that of sharing.
///
/// Time is tokio's, so tests on a paused clock need not wait.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    ledgers: Mutex<HashMap<Arc<str>, Ledger>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self { clock: Clock::new(), ledgers: Mutex::default() }
    }

    fn with<T>(&self, quota: &Quota, decide: impl FnOnce(&mut Ledger, Micros) -> T) -> T {
        // A panic in a decision cannot leave half a state behind that matters more than going on.
        let mut ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.steady();
        decide(ledgers.entry(quota.provider.clone()).or_insert_with(|| Ledger::new(now)), now)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Answer> {
        Box::pin(async move {
            match self.with(quota, |ledger, now| ledger.book(now, &quota.rules(now), call)) {
                Reply::Booked(answer) => Ok(answer),
                Reply::Stale(_) => Err(StoreError::answer("the resets of a calendar limit cannot be told")),
            }
        })
    }

    fn pause<'a>(&'a self, quota: &'a Quota, time: Micros) -> Pending<'a, Micros> {
        Box::pin(async move {
            Ok(self.with(quota, |ledger, now| ledger.pause(now + time.clamp(0, LONGEST)) - now))
        })
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        Box::pin(async move {
            self.with(quota, |ledger, now| ledger.peek(now, &quota.rules(now)))
                .ok_or_else(|| StoreError::answer("the resets of a calendar limit cannot be told"))
        })
    }
}
