use std::{num::NonZeroU32, time::Duration};

use crate::{
    error::ConfigError,
    ledger::Rule,
    limit::Limit,
    scope::{Hasher, Routes, Scope},
    store::{is_in_flight, rule},
    terms::Hidden,
};

/// A third-party API whose quota is shared: its name, its limits and the requests that they cover.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Provider;
///
/// # fn main() -> Result<(), tollgate::LimitError> {
/// let acme = Provider::new("acme")
///     .limit("10/s".parse()?)
///     .limit("10000/day resets 00:00 UTC".parse()?)
///     .max_wait(Duration::from_secs(30));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Provider {
    pub(crate) name: String,
    pub(crate) limits: Vec<(Limit, Scope)>,
    pub(crate) pauses: Vec<Scope>,
    pub(crate) secret: Option<Hidden>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) queue: usize,
    pub(crate) ageing: Duration,
    pub(crate) headroom: u8,
    pub(crate) ceiling: Option<NonZeroU32>,
    pub(crate) warn_after: Duration,
    pub(crate) observe: bool,
    #[cfg(feature = "middleware")]
    pub(crate) requests: crate::middleware::Requests,
}

impl Provider {
    /// A provider without limits; at least one must follow. The name stands in Redis keys and in errors.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            limits: Vec::new(),
            pauses: Vec::new(),
            secret: None,
            max_wait: None,
            queue: 1_000,
            ageing: Duration::from_secs(60),
            headroom: 0,
            ceiling: None,
            warn_after: Duration::from_secs(10),
            observe: false,
            #[cfg(feature = "middleware")]
            requests: crate::middleware::Requests::default(),
        }
    }

    /// For a tollgate that is disabled.
    pub(crate) fn unlimited(name: &str) -> Self {
        let limit = Limit::rolling(90_000_000, Duration::from_millis(1));
        limit.into_iter().fold(Self::new(name), Self::limit)
    }

    /// Adds a limit. A call must find room in all of them, and is charged to all or none.
    pub fn limit(self, limit: Limit) -> Self {
        self.limit_in(Scope::all(), limit)
    }

    /// Adds a limit for some of the requests: a route, each value of a key, or both.
    ///
    /// A key's value is, in this order: what the call names (`key("tenant", "t1")`), what the closure given to
    /// [`key`](Self::key) tells, or the request's header of that name. So `each("authorization")` has a state for
    /// each credential. Headers that the client sets by itself (`default_headers`) are not seen.
    ///
    /// A state that is not used expires, in the store and here.
    ///
    /// ```
    /// use tollgate::{Provider, Scope};
    ///
    /// # fn main() -> Result<(), tollgate::LimitError> {
    /// let acme = Provider::new("acme")
    ///     .limit("1000/min".parse()?)
    ///     .limit_in(Scope::route("POST /v1/search/{index}"), "10/s".parse()?)
    ///     .limit_in(Scope::all().each("authorization"), "100/min".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit_in(mut self, scope: Scope, limit: Limit) -> Self {
        self.limits.push((limit, scope));
        self
    }

    /// A refusal of a request in this scope stops only the requests that share it: those to the route, those with the
    /// same value of the key, or both. By default, and where no such scope matches, it stops all of the provider: right
    /// where the limit is on the account or the address. If several match, it is the first that was added.
    ///
    /// ```
    /// use tollgate::{Provider, Scope};
    ///
    /// // One token that is throttled leaves the others alone.
    /// let acme = Provider::new("acme").pause_in(Scope::all().each("authorization"));
    /// ```
    pub fn pause_in(mut self, scope: Scope) -> Self {
        self.pauses.push(scope);
        self
    }

    /// Under which secret the values of keys are hashed, at least 16 bytes, the same in every replica. The store
    /// never gets the values; but without a secret whoever reads the store can tell whether a value he guesses is
    /// there. Default: derived from the provider's name, which hides long values such as API keys.
    pub fn secret(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.secret = Some(Hidden::new(secret.as_ref()));
        self
    }

    /// The longest that any call waits. Default: the larger of 60 s and twice the longest window with its
    /// guard, since of a burst into an idle quota the last flies two windows later.
    pub fn max_wait(mut self, time: Duration) -> Self {
        self.max_wait = Some(time);
        self
    }

    /// How many callers may wait in one replica; the next is refused. Default 1,000.
    pub fn queue(mut self, callers: usize) -> Self {
        self.queue = callers;
        self
    }

    /// Who has waited so long is not overtaken any more, within a replica, by who comes with the next higher priority;
    /// a low one after twice that time by nobody. Default 60 s.
    pub fn ageing(mut self, wait: Duration) -> Self {
        self.ageing = wait;
        self
    }

    /// So many percent of each window or bucket are left to others by calls of low priority, while a high one was seen
    /// within a minute by any replica: a burst of high calls then finds room. From 0, the default, to 90. Without high
    /// ones a batch has the full rate.
    pub fn headroom(mut self, percent: u8) -> Self {
        self.headroom = percent;
        self
    }

    /// The most that one replica asks for, in permits (by cost) a second, and at once. It stands before the
    /// shared quota, so that a runaway loop takes neither all of it nor the store's time. Default: none.
    pub fn ceiling(mut self, per_second: NonZeroU32) -> Self {
        self.ceiling = Some(per_second);
        self
    }

    /// A wait from which on one warning is logged, until waits are short again. Default 10 s.
    pub fn warn_after(mut self, wait: Duration) -> Self {
        self.warn_after = wait;
        self
    }

    /// Only looks: every call goes the usual way, is decided and counted ([`Limiter::counts`]) and logged at
    /// `info` if it would have waited or been refused, but is delayed or refused by nothing. To see what a
    /// limit would do before it does it. Default: false.
    ///
    /// [`Limiter::counts`]: crate::Limiter::counts
    pub fn observe(mut self, only: bool) -> Self {
        self.observe = only;
        self
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let name = &self.name;
        if name.is_empty() || name.chars().any(|letter| "{}".contains(letter) || letter.is_control()) {
            return Err(ConfigError(format!(
                "the provider name {name:?} cannot stand in a key: use letters, digits, '.', '-' or '_'"
            )));
        }
        if self.limits.is_empty() {
            return Err(ConfigError(format!("provider \"{name}\" has no limit: add one with `.limit(..)`")));
        }
        if self.headroom > 90 {
            return Err(ConfigError(format!(
                "provider \"{name}\": a headroom of {} % leaves too little to low priorities: use 0 to 90",
                self.headroom
            )));
        }
        for (at, (limit, scope)) in self.limits.iter().enumerate() {
            if let Rule::Bucket(bucket) = rule(limit, 0)
                && !bucket.is_exact()
            {
                return Err(ConfigError(format!(
                    "provider \"{name}\": {limit} cannot be counted exactly: use a smaller guard or rounder numbers"
                )));
            }
            let same = |other: &&(Limit, Scope)| other.0.name() == limit.name() && other.1 == *scope;
            if let Some((other, _)) = self.limits[..at].iter().find(same) {
                return Err(ConfigError(format!(
                    "provider \"{name}\" has two limits of one kind and window in one scope ({scope}), {other} and \
                     {limit}: keep the smaller"
                )));
            }
        }
        #[cfg(feature = "middleware")]
        self.check_requests()?;
        Ok(())
    }

    pub(crate) fn scopes(&self) -> Result<Routes, ConfigError> {
        let hasher = match &self.secret {
            Some(secret) => Hasher::with_secret(secret.as_ref(), &self.name),
            None => Ok(Hasher::of(&self.name)),
        };
        let limits = self.limits.iter().map(|(_, scope)| scope);
        let scopes: Vec<_> = limits.chain(&self.pauses).cloned().collect();
        let named = |error| ConfigError(format!("provider \"{}\": {error}", self.name));
        Routes::new(&scopes, hasher?).map_err(named)
    }

    pub(crate) fn longest_wait(&self) -> Duration {
        let timed = self.limits.iter().filter(|(limit, _)| !is_in_flight(limit));
        let windows = timed.map(|(limit, _)| 2 * (limit.window() + limit.guard()));
        self.max_wait.unwrap_or_else(|| windows.max().unwrap_or_default().max(Duration::from_secs(60)))
    }
}
