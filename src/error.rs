use std::{fmt, sync::Arc, time::Duration};

use crate::{
    gate::Verdict,
    limit::Limit,
    scope::Scope,
    store::{Quota, StoreError, is_in_flight},
};

/// Why a permit was not given. Answers what a caller asks next: again later, never, or is the store ill?
#[derive(Clone, Debug)]
pub struct Error(Box<Kind>);

#[derive(Clone, Debug)]
enum Kind {
    Refused(Refusal),
    Store(StoreError),
}

/// The limiter has said no to a request, or to the next hop of one. Nothing was charged for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    provider: Arc<str>,
    limit: Option<(Limit, Scope)>,
    reason: Reason,
    retry_after: Option<Duration>,
    /// What is wrong with what was handed in, and what would not be.
    unknown: Option<Arc<str>>,
}

/// What a [`Refusal`] rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A limit has no room within the time the caller would wait.
    Limited,
    /// The provider is paused for longer than the caller would wait.
    Paused,
    /// This replica asks faster than its own ceiling.
    Ceiling,
    /// As many callers wait in this replica as may.
    QueueFull,
    /// The cost is above what a limit ever admits at once.
    Impossible,
    /// The limiter was shut down.
    Closed,
    /// The call names a provider, a unit, a key or a limit that does not exist, or cannot be counted.
    Unknown,
}

impl Refusal {
    /// The provider asked for.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// The limit that has no room, where it is one, as it is in force.
    pub fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref().map(|(limit, _)| limit)
    }

    /// Which requests that limit is for.
    pub fn scope(&self) -> Option<&Scope> {
        self.limit.as_ref().map(|(_, scope)| scope)
    }

    /// What it rests on.
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// How much later the same call could be granted, at the earliest; at least a microsecond. `None`: waiting
    /// does not help, or nobody knows how long, as with calls in flight.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl Error {
    /// Refused for now: try again after [`retry_after`](Self::retry_after), if that is known.
    pub fn is_rejected(&self) -> bool {
        let later = [Reason::Limited, Reason::Paused, Reason::Ceiling];
        self.refusal().is_some_and(|refusal| later.contains(&refusal.reason))
    }

    /// Too many callers wait in this replica already.
    pub fn is_queue_full(&self) -> bool {
        self.has(Reason::QueueFull)
    }

    /// The cost can never be had.
    pub fn is_impossible(&self) -> bool {
        self.has(Reason::Impossible)
    }

    /// The call names a provider, a unit or a key that does not exist.
    pub fn is_unknown(&self) -> bool {
        self.has(Reason::Unknown)
    }

    /// The limiter was shut down.
    pub fn is_closed(&self) -> bool {
        self.has(Reason::Closed)
    }

    /// The store did not answer, or with an error: it says nothing about the quota.
    pub fn is_store(&self) -> bool {
        matches!(*self.0, Kind::Store(_))
    }

    /// See [`Refusal::retry_after`].
    pub fn retry_after(&self) -> Option<Duration> {
        self.refusal().and_then(Refusal::retry_after)
    }

    /// The provider asked for.
    pub fn provider(&self) -> &str {
        match &*self.0 {
            Kind::Refused(refusal) => &refusal.provider,
            Kind::Store(error) => error.provider(),
        }
    }

    /// The refusal, unless the store failed.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.0 {
            Kind::Refused(refusal) => Some(refusal),
            Kind::Store(_) => None,
        }
    }

    /// The error of this crate in an error of another, such as reqwest-middleware's, also where layers between
    /// have wrapped it. `None`: it is not ours.
    ///
    /// ```no_run
    /// # async fn example(http: tollgate::reqwest_middleware::ClientWithMiddleware) {
    /// if let Err(error) = http.get("https://api.acme.com/").send().await {
    ///     match tollgate::Error::find(&error) {
    ///         Some(ours) if ours.is_rejected() => println!("again in {:?}", ours.retry_after()),
    ///         Some(ours) => println!("{ours}"),
    ///         None => println!("the request itself failed: {error}"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn find(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        // Layers that pass themselves off as what they wrap hide the error, but not its source.
        std::iter::successors(Some(error), |error| error.source()).find_map(|error| {
            let refusal = || Some(Self(Box::new(Kind::Refused(error.downcast_ref::<Refusal>()?.clone()))));
            let store = || Some(Self(Box::new(Kind::Store(error.downcast_ref::<StoreError>()?.clone()))));
            error.downcast_ref::<Self>().cloned().or_else(refusal).or_else(store)
        })
    }

    fn has(&self, reason: Reason) -> bool {
        self.refusal().is_some_and(|refusal| refusal.reason == reason)
    }

    pub(crate) fn store(provider: &Arc<str>, error: StoreError) -> Self {
        Self(Box::new(Kind::Store(error.of(provider))))
    }

    /// `kind`: what was named, such as a unit; `name`: how; `known`: those that there are.
    pub(crate) fn unknown_in(provider: &Arc<str>, kind: &str, name: &str, known: &[&str]) -> Self {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self::unfit(provider, &format!("has no {kind} \"{name}\": there are {known}"))
    }

    pub(crate) fn no_such_limit(provider: &Arc<str>, wanted: &str, known: &[String]) -> Self {
        let what = format!(
            "has no limit that {wanted} could take the place of: it must have the unit, window, kind and scope of {}",
            known.join(", ")
        );
        Self::unfit(provider, &what)
    }

    /// What was handed in for a provider is no use there.
    pub(crate) fn unfit(provider: &Arc<str>, problem: &dyn fmt::Display) -> Self {
        Self(Box::new(Kind::Refused(Refusal {
            provider: provider.clone(),
            limit: None,
            reason: Reason::Unknown,
            retry_after: None,
            unknown: Some(problem.to_string().into()),
        })))
    }

    #[cfg(feature = "middleware")]
    pub(crate) fn unknown(provider: &str) -> Self {
        Self::refused(&provider.into(), None, Reason::Unknown, None)
    }

    fn refused(
        provider: &Arc<str>,
        limit: Option<(Limit, Scope)>,
        reason: Reason,
        wait: Option<Duration>,
    ) -> Self {
        let provider = provider.clone();
        Self(Box::new(Kind::Refused(Refusal { provider, limit, reason, retry_after: wait, unknown: None })))
    }

    pub(crate) fn from_verdict(quota: &Quota, verdict: Verdict) -> Self {
        let Quota { provider, limits, .. } = quota;
        let limit = |at: usize| {
            let agreed = &limits.get(at)?.agreed;
            Some((agreed.in_force(), agreed.scope().clone()))
        };
        let later = |micros| Some(crate::clock::duration(micros));
        match verdict {
            Verdict::Later { retry_after, limit: Some(at) } => {
                let limit = limit(at);
                // A place in flight is free whenever a call ends.
                let known = !limit.as_ref().is_some_and(|(limit, _)| is_in_flight(limit));
                let wait = if known { later(retry_after) } else { None };
                Self::refused(provider, limit, Reason::Limited, wait)
            }
            Verdict::Later { retry_after, limit: None } => {
                Self::refused(provider, None, Reason::Paused, later(retry_after))
            }
            Verdict::Ceiling { retry_after } => {
                Self::refused(provider, None, Reason::Ceiling, later(retry_after))
            }
            Verdict::Never { limit: at } => Self::refused(provider, limit(at), Reason::Impossible, None),
            Verdict::QueueFull => Self::refused(provider, None, Reason::QueueFull, None),
            Verdict::Store(error) => Self::store(provider, error),
            // A permit is not an error; it cannot come here.
            Verdict::Closed | Verdict::Granted(_) => Self::refused(provider, None, Reason::Closed, None),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Refused(refusal) => refusal.fmt(f),
            Kind::Store(error) => {
                write!(f, "the store of provider \"{}\" failed; the request was not sent", error.provider())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Kind::Refused(refusal) => Some(refusal),
            Kind::Store(error) => Some(error),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let provider = &self.provider;
        match (self.reason, &self.limit) {
            (Reason::Limited, Some((limit, scope))) => {
                write!(f, "provider \"{provider}\": no room under {}", scope.shown_with(limit))?;
            }
            (Reason::Limited, None) => write!(f, "provider \"{provider}\": no room")?,
            (Reason::Paused, _) => write!(f, "provider \"{provider}\" is paused")?,
            (Reason::Ceiling, _) => write!(f, "provider \"{provider}\": this replica is at its ceiling")?,
            (Reason::QueueFull, _) => {
                write!(
                    f,
                    "provider \"{provider}\": too many callers wait; slow down or raise `Provider::queue`"
                )?;
            }
            (Reason::Impossible, Some((limit, scope))) => {
                let limit = scope.shown_with(limit);
                write!(
                    f,
                    "provider \"{provider}\": the cost is above what {limit} ever admits; split the call"
                )?;
            }
            (Reason::Impossible, None) => {
                write!(f, "provider \"{provider}\": the cost is above what there ever is")?;
            }
            (Reason::Unknown, _) => match &self.unknown {
                Some(what) => write!(f, "provider \"{provider}\" {what}")?,
                None => write!(f, "no provider \"{provider}\": add it to the tollgate or correct the call")?,
            },
            (Reason::Closed, _) => write!(f, "provider \"{provider}\": the limiter was shut down")?,
        }
        match self.retry_after {
            Some(wait) => write!(f, "; try again in {wait:?}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

/// A limiter that cannot be built as told, or a provider that it does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub(crate) String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
