use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Agreed, Bell, Pending, Quota, Store, StoreError, bell::Bells};
use crate::{
    clock::Clock,
    ledger::{Answer, Call, Class, Costs, Generation, Ledger, Micros, Named, Peek, Reply, Undecided},
};

/// A century: longer pauses would leave the numbers that stay exact.
const LONGEST: Micros = 100 * 366 * 86_400 * 1_000_000;

/// A permit of the moment `at`; the limit with the least left, and how much.
pub struct Taken {
    pub at: Micros,
    pub generation: Generation,
    pub tightest: usize,
    pub remaining: i64,
}

/// State in this process, for this process: the default. It keeps every promise but that of sharing.
///
/// Time is tokio's, so tests on a paused clock need not wait.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Clock,
    ledgers: Mutex<BTreeMap<Arc<str>, Ledger>>,
    /// For gates that share this store.
    bells: Bells,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self { clock: Clock::new(), ledgers: Mutex::default(), bells: Bells::default() }
    }

    /// Limits with a state, and members that are remembered.
    #[doc(hidden)]
    pub fn kept(&self) -> (usize, usize) {
        let ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        ledgers
            .values()
            .map(Ledger::kept)
            .fold((0, 0), |(limits, members), (more, others)| (limits + more, members + others))
    }

    /// A permit now, if it can be had; else what `decide` says.
    pub(crate) fn take_now(
        &self,
        quota: &Quota,
        limits: Option<&[Named]>,
        costs: &Costs,
        class: Class,
    ) -> Option<Taken> {
        self.with(&quota.provider, |ledger, now| {
            let (tightest, remaining) = match limits {
                Some(limits) => ledger.take_now(now, limits, costs, class, &quota.parts)?,
                None => ledger.take_now(now, &quota.rules(now), costs, class, &quota.parts)?,
            };
            Some(Taken { at: now, generation: ledger.generation(), tightest, remaining })
        })
    }

    /// `None`: nothing was decided, because limits have changed; the quota knows them now.
    pub(crate) fn decide(&self, quota: &Quota, call: &Call) -> Result<Option<Answer>, StoreError> {
        let (reply, woken) = self.with(&quota.provider, |ledger, now| {
            let reply = ledger.book(now, &quota.rules(now), call);
            (reply, ledger.take_woken())
        });
        woken.into_iter().for_each(|member| self.bells.call_up(&quota.provider, member));
        match reply {
            Reply::Booked(answer) => Ok(Some(answer)),
            Reply::Undecided(undecided) => self.learn(quota, undecided).map(|()| None),
        }
    }

    fn learn(&self, quota: &Quota, undecided: Undecided) -> Result<(), StoreError> {
        match undecided {
            Undecided::Stale(_) => Err(StoreError::answer("the resets of a calendar limit cannot be told")),
            Undecided::Changed(_, accords) => {
                let lost = quota.learn(&accords);
                lost.into_iter()
                    .for_each(|(limit, change)| self.set(limit, &change.text, Some(change.number)));
                Ok(())
            }
        }
    }

    fn set(&self, limit: &Agreed, text: &str, number: Option<i64>) {
        let claim = limit.claim().0;
        let (accord, changed) =
            self.with(limit.provider(), |ledger, now| ledger.set(now, &claim, text, number));
        let _ = limit.learn(&accord);
        if changed {
            self.bells.ring(limit.provider());
        }
    }

    fn with<T>(&self, provider: &Arc<str>, decide: impl FnOnce(&mut Ledger, Micros) -> T) -> T {
        // A panic in a decision cannot leave half a state behind that matters more than going on.
        let mut ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.steady();
        if let Some(ledger) = ledgers.get_mut(provider) {
            return decide(ledger, now);
        }
        decide(ledgers.entry(provider.clone()).or_insert(Ledger::new(now)), now)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Store for MemoryStore {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        Box::pin(async move { self.decide(quota, call) })
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        Box::pin(async move {
            self.set(limit, text, number);
            Ok(())
        })
    }

    fn local(&self) -> Option<&MemoryStore> {
        Some(self)
    }

    fn pause<'a>(
        &'a self,
        provider: &'a Arc<str>,
        part: Option<&'a Arc<str>>,
        time: Micros,
    ) -> Pending<'a, Micros> {
        Box::pin(async move {
            let (left, moved) = self.with(provider, |ledger, now| {
                let mut pause = |until| match part {
                    Some(part) => ledger.pause_part(now, part, until),
                    None => ledger.pause(until),
                };
                let before = pause(0);
                let until = pause(now + time.clamp(0, LONGEST));
                (until - now, until > before)
            });
            if moved {
                self.bells.ring(provider);
            }
            Ok(left)
        })
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        Box::pin(async move {
            loop {
                let look = self.with(&quota.provider, |ledger, now| {
                    ledger.peek_in(now, &quota.rules(now), &quota.parts)
                });
                match look {
                    Ok(look) => return Ok(look),
                    Err(undecided) => self.learn(quota, undecided)?,
                }
            }
        })
    }

    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell> {
        Some(self.bells.listen(&quota.provider, member))
    }
}
