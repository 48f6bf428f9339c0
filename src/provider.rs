use std::{num::NonZeroU32, time::Duration};

use crate::{error::ConfigError, ledger::Rule, limit::Limit, store::rule};

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
    pub(crate) limits: Vec<Limit>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) queue: usize,
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
            max_wait: None,
            queue: 1_000,
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
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limits.push(limit);
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
        for (at, limit) in self.limits.iter().enumerate() {
            if let Rule::Bucket(bucket) = rule(limit, 0)
                && !bucket.is_exact()
            {
                return Err(ConfigError(format!(
                    "provider \"{name}\": {limit} cannot be counted exactly: use a smaller guard or rounder numbers"
                )));
            }
            if let Some(other) = self.limits[..at].iter().find(|other| other.name() == limit.name()) {
                return Err(ConfigError(format!(
                    "provider \"{name}\" has two limits of one kind and window, {other} and {limit}: keep the smaller"
                )));
            }
        }
        #[cfg(feature = "middleware")]
        self.check_requests()?;
        Ok(())
    }

    pub(crate) fn longest_wait(&self) -> Duration {
        let windows = self.limits.iter().map(|limit| 2 * (limit.window() + limit.guard()));
        self.max_wait.unwrap_or_else(|| windows.max().unwrap_or_default().max(Duration::from_secs(60)))
    }
}
