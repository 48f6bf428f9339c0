use std::{future::IntoFuture, pin::Pin, sync::Arc, time::Duration};

use crate::{
    clock::{duration, micros},
    error::Error,
    gate::{self, Gate},
    limit::Limit,
    tollgate::Shared,
};

/// One provider of a [`Tollgate`](crate::Tollgate): gives permits. Cheap to clone.
#[derive(Clone)]
pub struct Limiter {
    gate: Arc<Gate>,
    longest_wait: Duration,
    /// The limiter lives as long as somebody may ask it.
    _shared: Arc<Shared>,
}

/// The right to put ONE request on the wire, now. Dropping it does not give it back: a request may have
/// been sent.
pub struct Permit {
    gate: Arc<Gate>,
    inner: gate::Permit,
}

/// A question for a permit: `.await` it. By default it waits, at most the provider's `max_wait`.
///
/// Dropped while it waits, it leaves nothing behind: its place is free and nothing stays charged.
#[must_use = "nothing is asked until it is awaited"]
pub struct Acquire {
    limiter: Limiter,
    cost: u64,
    wait: Option<Duration>,
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

impl Limiter {
    pub(crate) fn new(gate: Arc<Gate>, longest_wait: Duration, shared: Arc<Shared>) -> Self {
        Self { gate, longest_wait, _shared: shared }
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
    ///     Ok(permit) => println!("{} left of {}", permit.remaining(), permit.limit()),
    ///     Err(refused) => println!("again in {:?}", refused.retry_after()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire(&self) -> Acquire {
        Acquire { limiter: self.clone(), cost: 1, wait: Some(self.longest_wait) }
    }

    /// Looks at the shared state; books and changes nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn peek(&self) -> Result<Peek, Error> {
        let quota = &self.gate.quota;
        let look =
            self.gate.store().peek(quota).await.map_err(|error| Error::store(&quota.provider, error))?;
        let limits = quota.limits.iter().zip(look.limits).map(|(limit, (left, next))| LimitPeek {
            limit: limit.clone(),
            left: left.max(0) as u64,
            next_free: duration(next - look.now),
        });
        let paused = (look.pause > look.now).then(|| duration(look.pause - look.now));
        Ok(Peek { paused, limits: limits.collect(), queued: self.gate.queued() })
    }

    /// Stops every replica: no permit flies for `time` from now, those held ready for at most a horizon
    /// (50 ms) excepted. A pause only ever gets longer; afterwards the fleet resumes paced. Tells what is
    /// left of it.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn pause(&self, time: Duration) -> Result<Duration, Error> {
        let quota = &self.gate.quota;
        let left = self.gate.store().pause(quota, micros(time)).await;
        left.map(duration).map_err(|error| Error::store(&quota.provider, error))
    }

    /// How often a permit came to hand too late to fly, because the process or the way to the store had
    /// stalled, and was exchanged for another.
    pub fn late(&self) -> u64 {
        self.gate.late()
    }
}

impl Acquire {
    /// What the request takes of each limit. Default 1.
    pub fn cost(mut self, cost: u64) -> Self {
        self.cost = cost;
        self
    }

    /// Waits at most so long, and never longer than the provider's `max_wait`. Refused as soon as it is
    /// certain to miss it.
    pub fn wait_at_most(mut self, time: Duration) -> Self {
        self.wait = Some(time.min(self.limiter.longest_wait));
        self
    }

    /// Now or not at all: an error with `retry_after` at once, which here means one trip to the store.
    pub fn or_reject(mut self) -> Self {
        self.wait = None;
        self
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Permit, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let gate = self.limiter.gate;
            let quota = &gate.quota;
            let cost = match i64::try_from(self.cost) {
                Ok(0) => return Err(Error::impossible(&quota.provider, None)),
                Ok(cost) => cost,
                Err(_) => return Err(Error::impossible(&quota.provider, quota.limits.first().cloned())),
            };
            let now = gate.clock.now().mono;
            let deadline = self.wait.map(|wait| now.saturating_add(micros(wait)));
            match gate.acquire(cost, deadline).await {
                Ok(inner) => Ok(Permit { gate, inner }),
                Err(verdict) => Err(Error::from_verdict(&quota.provider, &quota.limits, verdict)),
            }
        })
    }
}

impl Permit {
    /// From the question to the permit.
    pub fn waited(&self) -> Duration {
        duration(self.inner.waited)
    }

    /// What it is charged with.
    pub fn cost(&self) -> u64 {
        self.inner.booked.cost.unsigned_abs()
    }

    /// The limit that has the least left.
    pub fn limit(&self) -> &Limit {
        &self.gate.quota.limits[self.inner.tightest]
    }

    /// What that limit had left, for all replicas, when this permit was booked.
    pub fn remaining(&self) -> u64 {
        self.inner.remaining.max(0) as u64
    }

    /// The request was not sent: the permit goes to the next caller, or back to the store.
    pub fn give_back(self) {
        self.gate.give_back(self.inner);
    }
}

impl std::fmt::Debug for Limiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").field("provider", &self.gate.quota.provider).finish_non_exhaustive()
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
