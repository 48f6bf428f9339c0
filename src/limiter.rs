use std::{future::IntoFuture, pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    clock::{duration, micros},
    error::Error,
    gate::{self, Ask, Priority},
    lane::Lane,
    limit::Limit,
    terms::{Terms, Wait},
    tollgate::Shared,
};

/// One provider of a [`Tollgate`](crate::Tollgate): gives permits. Cheap to clone.
#[derive(Clone)]
pub struct Limiter {
    lane: Arc<Lane>,
    /// The limiter lives as long as somebody may ask it.
    _shared: Arc<Shared>,
}

/// The right to put ONE request on the wire, now. Dropping it does not give it back: a request may have
/// been sent.
pub struct Permit {
    lane: Arc<Lane>,
    cost: i64,
    /// `None`: the provider is only observed, or the tollgate disabled.
    booked: Option<gate::Permit>,
}

/// A question for a permit: `.await` it. By default it waits, at most the provider's `max_wait`.
///
/// Dropped while it waits, it leaves nothing behind: its place is free and nothing stays charged.
#[must_use = "nothing is asked until it is awaited"]
pub struct Acquire {
    limiter: Limiter,
    terms: Terms,
}

/// How a provider stands. See [`Limiter::peek`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peek {
    /// Nobody sends for so long; `None`: not paused.
    pub paused: Option<Duration>,
    /// In the order in which they were given to the provider.
    pub limits: Vec<LimitPeek>,
    /// Callers that wait in this replica.
    pub queued: usize,
}

/// How a limit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitPeek {
    /// Which one.
    pub limit: Limit,
    /// Permits of cost 1 that the window still has, slots booked ahead deducted.
    pub left: u64,
    /// When the next permit of cost 1 could fly if it were booked now; zero: at once.
    pub next_free: Duration,
}

/// What has happened in this replica so far. See [`Limiter::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Permits that came to hand too late to fly, because the process or the way to the store had stalled,
    /// and were exchanged for others.
    pub late: u64,
    /// Redirect hops that were charged.
    pub hops: u64,
    /// Answers by which the provider refused a request.
    pub refusals: u64,
    /// While only observed: calls that would have waited, each counted when its wait would have been over.
    pub would_wait: u64,
    /// While only observed: calls that would have been refused.
    pub would_refuse: u64,
}

impl Limiter {
    pub(crate) fn new(lane: Arc<Lane>, shared: Arc<Shared>) -> Self {
        Self { lane, _shared: shared }
    }

    /// Asks for a permit.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Provider, Tollgate};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let tollgate = Tollgate::builder().provider(Provider::new("acme").limit("100/min".parse()?)).build()?;
    /// let acme = tollgate.provider("acme")?;
    /// let permit = acme.acquire().await?;
    /// let heavy = acme.acquire().cost(5).wait_at_most(Duration::from_secs(2)).await?;
    /// match acme.acquire().or_reject().await {
    ///     Ok(permit) => println!("{:?} left of {}", permit.remaining(), permit.limit()),
    ///     Err(refused) => println!("again in {:?}", refused.retry_after()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire(&self) -> Acquire {
        Acquire { limiter: self.clone(), terms: Terms::default() }
    }

    /// Looks at the shared state; books and changes nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn peek(&self) -> Result<Peek, Error> {
        let gate = &self.lane.gate;
        let quota = &gate.quota;
        let look = gate.store().peek(quota).await.map_err(|error| Error::store(&quota.provider, error))?;
        let limits = quota.limits.iter().zip(look.limits).map(|(limit, (left, next))| LimitPeek {
            limit: limit.clone(),
            left: left.max(0) as u64,
            next_free: duration(next - look.now),
        });
        let paused = (look.pause > look.now).then(|| duration(look.pause - look.now));
        Ok(Peek { paused, limits: limits.collect(), queued: gate.queued() })
    }

    /// Stops every replica for `time` from now: this one at once, the others when they hear the bell. One
    /// that does not hear it sends what it holds for at most 50 ms (two round trips, if that is more) and a
    /// round trip longer. A pause only ever gets longer; afterwards the fleet resumes paced. Tells what is
    /// left of it. Dropped meanwhile, it is stored all the same.
    ///
    /// # Errors
    /// When the store does not answer. This replica stops all the same.
    pub async fn pause(&self, time: Duration) -> Result<Duration, Error> {
        let left = self.lane.gate.pause(micros(time)).await;
        left.map(duration).map_err(|error| Error::store(&self.lane.quota().provider, error))
    }

    /// What has happened in this replica so far.
    pub fn counts(&self) -> Counts {
        self.lane.counts()
    }
}

impl Acquire {
    /// What the request takes of each limit. Default 1.
    pub fn cost(mut self, cost: u64) -> Self {
        self.terms.cost = cost;
        self
    }

    /// Waits at most so long, and never longer than the provider's `max_wait`. Refused as soon as it is
    /// certain to miss it.
    pub fn wait_at_most(mut self, time: Duration) -> Self {
        self.terms.wait = Wait::AtMost(time);
        self
    }

    /// Waits until then, and never longer than the provider's `max_wait`. Takes a standard or a tokio instant.
    pub fn deadline(mut self, end: impl Into<Instant>) -> Self {
        self.terms.wait = Wait::Until(end.into());
        self
    }

    /// Now or not at all: an error with `retry_after` at once, which here means one trip to the store.
    pub fn or_reject(mut self) -> Self {
        self.terms.wait = Wait::Reject;
        self
    }

    /// Who is served first within this replica. Default: [`Priority::Normal`].
    pub fn priority(mut self, priority: Priority) -> Self {
        self.terms.priority = priority;
        self
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Permit, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (lane, terms) = (self.limiter.lane, self.terms);
            let cost = lane.cost(terms.cost)?;
            let clock = &lane.gate.clock;
            let patience = terms.patience(clock, clock.instant_now(), lane.longest_wait);
            lane.permit(Ask { priority: terms.priority, ..Ask::new(cost, patience) }).await
        })
    }
}

impl Permit {
    pub(crate) fn booked(lane: Arc<Lane>, booked: gate::Permit) -> Self {
        Self { lane, cost: booked.booked.cost, booked: Some(booked) }
    }

    pub(crate) fn unbooked(lane: Arc<Lane>, cost: i64) -> Self {
        Self { lane, cost, booked: None }
    }

    /// From the question to the permit.
    pub fn waited(&self) -> Duration {
        duration(self.booked.as_ref().map_or(0, |booked| booked.waited))
    }

    /// What it is charged with.
    pub fn cost(&self) -> u64 {
        self.cost.unsigned_abs()
    }

    /// The limit that has the least left; the provider's first if it is only observed.
    pub fn limit(&self) -> &Limit {
        self.lane.limit(self.booked.as_ref().map_or(0, |booked| booked.tightest))
    }

    /// What that limit had left, for all replicas, when this permit was booked; `None`: nothing was booked,
    /// because the provider is only observed or the tollgate disabled.
    pub fn remaining(&self) -> Option<u64> {
        self.booked.as_ref().map(|booked| booked.remaining.max(0) as u64)
    }

    /// The request was not sent: the permit goes to the next caller, or back to the store.
    pub fn give_back(self) {
        if let Some(booked) = self.booked {
            self.lane.gate.give_back(booked);
        }
    }

    #[cfg(feature = "middleware")]
    pub(crate) fn is_of(&self, lane: &Arc<Lane>) -> bool {
        Arc::ptr_eq(&self.lane, lane)
    }

    /// Where its caller stands in the gate's queue, to come back to.
    #[cfg(feature = "middleware")]
    pub(crate) fn place(&self) -> Option<gate::Ticket> {
        self.booked.as_ref().map(|booked| booked.ticket)
    }

    /// Takes a part of its cost out of it, as a permit of its own.
    #[cfg(feature = "middleware")]
    pub(crate) fn split(&mut self, cost: i64) -> Self {
        self.cost -= cost;
        let booked = self.booked.as_mut().map(|booked| booked.split(cost));
        Self { lane: self.lane.clone(), cost, booked }
    }

    /// One that was kept for later is wanted now: exchanged if its time is over.
    #[cfg(feature = "middleware")]
    pub(crate) async fn renew(self, ask: Ask) -> Result<Self, Error> {
        let Some(booked) = self.booked else { return Ok(self) };
        match self.lane.gate.renew(booked, ask).await {
            Ok(booked) => Ok(Self::booked(self.lane, booked)),
            Err(verdict) => Err(self.lane.refused(verdict)),
        }
    }
}

impl std::fmt::Debug for Limiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").field("provider", &self.lane.quota().provider).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit")
            .field("cost", &self.cost())
            .field("waited", &self.waited())
            .finish_non_exhaustive()
    }
}
