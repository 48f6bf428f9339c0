//! What a provider says about its requests and its answers.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::{Response, Url};

use super::{Judge, Matcher, meter::Meter};
use crate::{
    clock::{duration, micros},
    error::ConfigError,
    gate::Gate,
    lane::{Lane, Mode},
    ledger::Micros,
    price::REQUESTS,
    provider::Provider,
    signal::{self, Dialect, Refusal, Refusals, Schedule},
    store::rule,
};

/// As a provider is configured.
#[derive(Clone)]
pub struct Requests {
    hosts: Vec<String>,
    judge: Option<Judge>,
    redirects: u32,
    attempts: u32,
    schedule: Schedule,
    dialect: Dialect,
    pub(super) meter: Meter,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests")
            .field("hosts", &self.hosts)
            .field("judge", &self.judge.is_some())
            .field("redirects", &self.redirects)
            .field("attempts", &self.attempts)
            .field("schedule", &self.schedule)
            .field("dialect", &self.dialect)
            .field("meter", &self.meter)
            .finish()
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            judge: None,
            redirects: 0,
            attempts: 3,
            schedule: Schedule::default(),
            dialect: Dialect::default(),
            meter: Meter::default(),
        }
    }
}

/// The same in operation.
pub struct Upstream {
    pub matcher: Matcher,
    /// Hops that each call books ahead.
    pub redirects: u32,
    /// How often a request is sent at most.
    pub attempts: u32,
    pub meter: Meter,
    schedule: Schedule,
    dialect: Dialect,
    /// Never locked across an await.
    refusals: Mutex<Refusals>,
}

impl Requests {
    pub fn open(self) -> Result<Upstream, ConfigError> {
        Ok(Upstream {
            matcher: Matcher::new(&self.hosts, self.judge)?,
            redirects: self.redirects,
            attempts: self.attempts.max(1),
            schedule: self.schedule,
            dialect: self.dialect,
            meter: self.meter,
            refusals: Mutex::default(),
        })
    }
}

impl Upstream {
    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    /// Hops that a call books ahead. Who only observes could not give back what it does not use.
    pub fn hops_ahead(&self) -> u64 {
        if self.mode == Mode::Enforce { u64::from(self.upstream.redirects) } else { 0 }
    }

    /// Whether an answer refuses its request, which was sent at `sent`, so that it should be sent again after the
    /// pause; a refusal has stopped every replica before this returns. If its quota is used up, or the pause is
    /// longer than its dialect would have anybody sleep, the answer goes back to the caller. `gate`: where the request
    /// had its permit.
    pub async fn hear(&self, sent: Micros, response: &Response, gate: Option<&Gate>) -> bool {
        let (upstream, status) = (&self.upstream, response.status());
        // Bodies are not looked at, so that a success refuses nothing.
        let read = || signal::read(status, response.headers(), None, self.clock().wall(), &upstream.dialect);
        let seen = (!status.is_success()).then(read);
        let Some((signal, refusal)) = seen.and_then(|signal| Some((signal.believed(), signal.refusal?)))
        else {
            upstream.refusals().accepted(sent);
            return false;
        };
        self.count_refusal();
        let wait = match signal {
            Some(wait) => micros(wait),
            None => upstream.refusals().refused(sent, self.clock().mono(), &upstream.schedule),
        };
        let provider = &**self.provider();
        let status = status.as_u16();
        let pause = duration(wait);
        // Whoever else shares the scope in which it was refused.
        let part = gate.and_then(|gate| gate.quota.parts.first().cloned());
        tracing::warn!(
            provider,
            status,
            ?pause,
            in_part = part.is_some(),
            "the provider refused a request: it is paused for all replicas"
        );
        if wait > 0 {
            // Seldom needed: it must not make every call's future larger.
            if let Err(error) = Box::pin(self.gates.pause(part, wait)).await {
                tracing::warn!(provider, %error, "the pause is this replica's alone: the store failed");
            }
        }
        let longest = upstream.dialect.longest_sleep();
        refusal == Refusal::Rate && longest.is_none_or(|longest| pause <= longest)
    }
}

/// Which requests a provider gets, and what is done with its answers (feature `middleware`).
impl Provider {
    /// The hosts of its API: names or addresses, with a port if only that one is meant. Requests to them, on
    /// whatever path, are the provider's; also those that a redirect leads there.
    ///
    /// ```
    /// # use tollgate::Provider;
    /// let acme = Provider::new("acme").hosts(["api.acme.com", "eu.acme.com:8443"]);
    /// ```
    pub fn hosts<I>(mut self, hosts: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.requests.hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Decides by the URL which requests are the provider's, besides those to its hosts. It is called for each
    /// request and each redirect hop: keep it short. If several providers want a URL the first one added has it.
    /// A second closure replaces the first.
    ///
    /// ```
    /// # use tollgate::Provider;
    /// let search = Provider::new("acme search").matching(|url| url.path().starts_with("/v1/search"));
    /// ```
    pub fn matching(mut self, judge: impl Fn(&Url) -> bool + Send + Sync + 'static) -> Self {
        self.requests.judge = Some(Arc::new(judge));
        self
    }

    /// Redirect hops that each call books ahead, and gives back if it does not need them. Default 0: a hop then
    /// waits for its own permit in the middle of the chain, and a call that would not wait may be refused
    /// there. Hops beyond those booked wait as well.
    pub fn redirects(mut self, hops: u32) -> Self {
        self.requests.redirects = hops;
        self
    }

    /// How often a request is sent at most, if the upstream refuses it, it may be sent again and the call
    /// waits. Default 3; 1: never again. Each attempt is charged.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.requests.attempts = attempts;
        self
    }

    /// What its answers mean: which of them refuse a request, and where they say for how long. Default: `generic`, a
    /// 429, or a 503 with a `Retry-After`. So far only status and headers are looked at, and only of answers that are
    /// no success.
    ///
    /// ```
    /// use tollgate::{Dialect, Provider};
    ///
    /// let github = Provider::new("github").dialect(Dialect::named("github").expect("a preset"));
    /// ```
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.requests.dialect = dialect;
        self
    }

    /// How long all replicas stop after a 429 that does not say how long: first `least`, twice as long after
    /// each that follows, up to `most`; always a random bit longer, never shorter. Default: 1 s to 60 s.
    pub fn backoff(mut self, least: Duration, most: Duration) -> Self {
        self.requests.schedule = Schedule::exponential(least, most);
        self
    }

    /// The same by a schedule of the crate `backoff` (feature `backoff`).
    #[cfg(feature = "backoff")]
    pub fn backoff_schedule(mut self, schedule: backoff::ExponentialBackoff) -> Self {
        self.requests.schedule = Schedule::from(schedule);
        self
    }

    pub(crate) fn check_requests(&self) -> Result<(), ConfigError> {
        let Requests { redirects, meter, .. } = &self.requests;
        let failed = |problem: String| Err(ConfigError(format!("provider \"{}\": {problem}", self.name)));
        // Of a bucket, what it holds: more than that is never had at once.
        let of_requests = self.limits.iter().map(|(limit, _)| limit).filter(|limit| limit.unit() == REQUESTS);
        let mut tight = of_requests.filter(|limit| rule(limit, 0).max() <= i64::from(*redirects));
        if let Some(limit) = tight.next() {
            return failed(format!(
                "no call with {redirects} redirects fits under {limit}: book fewer ahead"
            ));
        }
        let counted = |unit: &&str| self.limits.iter().any(|(limit, _)| limit.unit() == *unit);
        if let Some(unit) = meter.units().find(|unit| *unit != REQUESTS && !counted(unit)) {
            return failed(format!("no limit counts \"{unit}\", for which it has a closure"));
        }
        let scopes = self.scopes()?;
        let used = |key: &&str| scopes.keys().any(|known| known == *key);
        if let Some(key) = meter.keys().find(|key| !used(key)) {
            return failed(format!("no limit has the key \"{key}\", for which it has a closure"));
        }
        Ok(())
    }
}
