//! Where the state of a provider lives: in memory, for one process, or in Redis, for all.

mod bell;
mod error;
mod memory;
#[cfg(feature = "redis")]
mod redis;

use std::{pin::Pin, sync::Arc};

#[cfg(feature = "redis")]
pub use self::redis::RedisStore;
pub use self::{
    bell::Bell,
    error::StoreError,
    memory::{MemoryStore, Taken},
};
use crate::{
    ledger::{Answer, Call, Micros, Named, Peek, Rule},
    limit::{Kind, Limit},
};

/// A provider and the limits that are booked together.
#[derive(Clone, Debug)]
pub struct Quota {
    pub provider: Arc<str>,
    pub limits: Vec<Limit>,
}

/// What a store promises when it answers.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Shared state, judged by one clock. Every store passes `tests/store_contract`.
pub trait Store: Send + Sync + 'static {
    /// Decides and charges in one step. A repeated number books nothing and gets the first answer.
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Answer>;
    /// Nobody sends for `time` from now; a longer pause stays. Tells what is left of it.
    fn pause<'a>(&'a self, quota: &'a Quota, time: Micros) -> Pending<'a, Micros>;
    /// A store in this very process answers at once.
    fn local(&self) -> Option<&MemoryStore> {
        None
    }
    /// Looks and changes nothing.
    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek>;
    /// A bell that rings when a pause of this provider has moved: what was booked before must be confirmed. It
    /// may ring for nothing or not at all.
    fn listen(&self, quota: &Quota) -> Option<Bell>;
}

impl<S: Store> Store for Arc<S> {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Answer> {
        (**self).book(quota, call)
    }

    fn pause<'a>(&'a self, quota: &'a Quota, time: Micros) -> Pending<'a, Micros> {
        (**self).pause(quota, time)
    }

    fn local(&self) -> Option<&MemoryStore> {
        (**self).local()
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        (**self).peek(quota)
    }

    fn listen(&self, quota: &Quota) -> Option<Bell> {
        (**self).listen(quota)
    }
}

impl Quota {
    /// The limits as numbers; calendars as they stand around `now`.
    pub fn rules(&self, now: Micros) -> Vec<Named> {
        self.limits.iter().map(|limit| Named { name: limit.name(), rule: rule(limit, now) }).collect()
    }

    /// The limits as text, in the same order.
    pub fn texts(&self) -> impl Iterator<Item = String> + '_ {
        self.limits.iter().map(Limit::to_string)
    }
}

/// A limit as numbers; a calendar as it stands around `now`.
pub fn rule(limit: &Limit, now: Micros) -> Rule {
    let micros = |time: std::time::Duration| Micros::try_from(time.as_micros()).unwrap_or(Micros::MAX);
    let (max, window, guard) = (limit.max() as i64, micros(limit.window()), micros(limit.guard()));
    match limit.kind() {
        Kind::Rolling { paced } => Rule::rolling(max, window, guard, paced),
        Kind::Bucket { burst } => Rule::bucket(max, window, burst as i64, guard),
        Kind::Aligned | Kind::Calendar => Rule::calendar(max, guard, limit.boundaries(now)),
    }
}
