//! Where the state of a provider lives: in memory, for one process, or in Redis, for all.

mod agreed;
mod bell;
mod error;
mod memory;
#[cfg(feature = "redis")]
mod redis;

use std::{pin::Pin, sync::Arc};

#[cfg(feature = "redis")]
pub use self::redis::RedisStore;
pub use self::{
    agreed::Agreed,
    bell::{Bell, Rung},
    error::StoreError,
    memory::{MemoryStore, Taken},
};
use crate::{
    clock::micros,
    ledger::{Answer, Call, Change, Micros, Named, Peek, Rule, SECOND},
    limit::{Kind, Limit},
    scope::Scope,
};

/// A provider and the limits that are booked together.
#[derive(Clone, Debug)]
pub struct Quota {
    pub provider: Arc<str>,
    pub limits: Vec<Counted>,
    /// Parts of the provider that its calls are in, by name: each can be paused alone.
    pub parts: Arc<[Arc<str>]>,
}

/// A limit and where its use is counted.
#[derive(Clone, Debug)]
pub struct Counted {
    pub agreed: Arc<Agreed>,
    /// The name of its state: what it counts, and in which scope.
    pub name: String,
    /// See [`Named::watched`].
    pub watched: bool,
    /// See [`Named::reserve`], in percent of what it admits.
    pub headroom: u8,
}

/// What a store promises when it answers.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Shared state, judged by one clock. Every store passes `tests/store_contract`.
pub trait Store: Send + Sync + 'static {
    /// Decides and charges in one step. A repeated number books nothing and gets the first answer. `None`: nothing was
    /// decided, because limits have changed; the quota knows them now.
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>>;
    /// Nobody sends for `time` from now, or nobody in a part of the provider; a longer pause stays. Tells what is left
    /// of it.
    fn pause<'a>(
        &'a self,
        provider: &'a Arc<str>,
        part: Option<&'a Arc<str>>,
        time: Micros,
    ) -> Pending<'a, Micros>;
    /// A limit is set anew, for all replicas, or told again.
    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()>;
    /// A store in this very process answers at once.
    fn local(&self) -> Option<&MemoryStore> {
        None
    }
    /// Looks and changes nothing.
    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek>;
    /// A bell that rings when a pause of this provider has moved or a limit has changed, so that what was booked before
    /// must be confirmed, and when this member has a place in flight coming. It may ring for nothing or not at all.
    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell>;
}

impl<S: Store> Store for Arc<S> {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        (**self).book(quota, call)
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        (**self).change(limit, text, number)
    }

    fn pause<'a>(
        &'a self,
        provider: &'a Arc<str>,
        part: Option<&'a Arc<str>>,
        time: Micros,
    ) -> Pending<'a, Micros> {
        (**self).pause(provider, part, time)
    }

    fn local(&self) -> Option<&MemoryStore> {
        (**self).local()
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        (**self).peek(quota)
    }

    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell> {
        (**self).listen(quota, member)
    }
}

impl Counted {
    /// For all requests.
    pub fn new(provider: Arc<str>, limit: Limit) -> Self {
        let name = state_name(&limit);
        let agreed = Agreed::new(provider, name.clone(), Scope::all(), limit).into();
        Self { agreed, name, watched: true, headroom: 0 }
    }

    /// As it was configured here.
    pub fn limit(&self) -> &Limit {
        self.agreed.configured()
    }
}

/// Other grains are another state: its numbers would mean something else.
pub fn state_name(limit: &Limit) -> String {
    match limit.grain() {
        1 => limit.name(),
        grain => format!("{}:x{grain}", limit.name()),
    }
}

impl Quota {
    /// Limits for all requests.
    pub fn new(provider: impl Into<Arc<str>>, limits: impl IntoIterator<Item = Limit>) -> Self {
        let provider = provider.into();
        let limits = limits.into_iter().map(|limit| Counted::new(provider.clone(), limit)).collect();
        Self { provider, limits, parts: Arc::default() }
    }

    /// The limits in force as numbers; calendars as they stand around `now`.
    pub fn rules(&self, now: Micros) -> Vec<Named> {
        let named = |counted: &Counted| {
            let (claim, limit) = counted.agreed.claim();
            let rule = rule(&limit, now);
            let reserve = rule.max() * i64::from(counted.headroom) / 100;
            Named { name: counted.name.clone(), claim, rule, watched: counted.watched, reserve }
        };
        self.limits.iter().map(named).collect()
    }

    /// As they were configured here.
    pub fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter().map(Counted::limit)
    }

    /// Another number: other limits are in force.
    pub fn version(&self) -> u64 {
        self.limits.iter().fold(0, |sum, counted| sum.wrapping_add(counted.agreed.version()))
    }

    /// The accords as the store has them; changes that it has lost and must be told again.
    fn learn(&self, accords: &[String]) -> Vec<(&Agreed, Change)> {
        let learned = self.limits.iter().zip(accords);
        learned.filter_map(|(counted, text)| Some((&*counted.agreed, counted.agreed.learn(text)?))).collect()
    }

    /// The smallest guard. For calls in flight it does not matter when they set out: without another limit no permit
    /// is late.
    pub fn guard(&self) -> Micros {
        let in_force = self.limits.iter().map(|counted| counted.agreed.in_force());
        let timed = in_force.filter(|limit| !is_in_flight(limit));
        timed.map(|limit| micros(limit.guard())).min().unwrap_or(SECOND)
    }
}

/// Whether a limit counts calls in flight, not what begins in a window.
pub fn is_in_flight(limit: &Limit) -> bool {
    matches!(limit.kind(), Kind::InFlight { .. })
}

/// A limit as numbers; a calendar as it stands around `now`.
pub fn rule(limit: &Limit, now: Micros) -> Rule {
    let (window, guard) = (micros(limit.window()), micros(limit.guard()));
    let (max, burst) = limit.grains();
    let (max, burst) = (max as i64, burst.unwrap_or(0) as i64);
    match limit.kind() {
        Kind::Rolling { paced } => Rule::rolling(max, window, guard, paced),
        Kind::Bucket { .. } => Rule::bucket(max, window, burst, guard),
        Kind::InFlight { lease } => Rule::in_flight(max, micros(lease)),
        Kind::Aligned | Kind::Calendar => Rule::calendar(max, guard, limit.boundaries(now)),
    }
}
