use std::{future::IntoFuture, pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    clock::{duration, micros},
    error::Error,
    gate::{Ask, Priority},
    lane::{Lane, Mode},
    limit::Limit,
    look::Look,
    permit::Permit,
    scope::{Scope, Target},
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

/// A question for a permit: `.await` it. By default it waits, at most the provider's `max_wait`.
///
/// Dropped while it waits, it leaves nothing behind: its place is free and nothing stays charged.
#[must_use = "nothing is asked until it is awaited"]
pub struct Acquire {
    limiter: Limiter,
    terms: Terms,
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
    /// let heavy = acme.acquire().cost("requests", 5).wait_at_most(Duration::from_secs(2)).await?;
    /// match acme.acquire().or_reject().await {
    ///     Ok(permit) => println!("{:?} left of {:?}", permit.remaining(), permit.limit()),
    ///     Err(refused) => println!("again in {:?}", refused.retry_after()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire(&self) -> Acquire {
        Acquire { limiter: self.clone(), terms: Terms::default() }
    }

    /// Looks at the shared state; books and changes nothing. By default at the limits of requests that go to no
    /// route and have no value for any key; `key` and `route` look at others.
    ///
    /// ```
    /// # use tollgate::{Provider, Scope, Tollgate};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let acme = Provider::new("acme")
    ///     .limit("1000/min".parse()?)
    ///     .limit_in(Scope::all().each("tenant"), "100/min".parse()?);
    /// let acme = Tollgate::builder().provider(acme).build()?.provider("acme")?;
    /// acme.acquire().key("tenant", "t1").await?;
    /// let look = acme.peek().key("tenant", "t1").await?;
    /// assert_eq!((look.limits[0].left, look.limits[1].left), (999, 99));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the store does not answer, or a key or route is named that no scope has.
    pub fn peek(&self) -> Look {
        Look::new(self.lane.clone())
    }

    /// Stops every replica for `time` from now: this one at once, the others when they hear the bell. One
    /// that does not hear it sends what it holds for at most 50 ms (two round trips, if that is more) and a
    /// round trip longer. A pause only ever gets longer; afterwards the fleet resumes paced. Tells what is
    /// left of it. Dropped meanwhile, it is stored all the same.
    ///
    /// # Errors
    /// When the store does not answer. This replica stops all the same.
    pub async fn pause(&self, time: Duration) -> Result<Duration, Error> {
        let left = self.lane.gates.pause(None, micros(time)).await;
        left.map(duration).map_err(|error| Error::store(self.lane.provider(), error))
    }

    /// Sets a limit anew for all replicas, in the place of that with the same unit, window and kind: its count, burst,
    /// guard, pace, lease or share.
    ///
    /// What was used counts on: from then on nothing is granted into a window that has as much as the new one allows.
    /// Each replica goes by it when it hears the bell, or else with its next question to the store, and sends before
    /// that what it holds for at most 50 ms (two round trips, if that is more) and a round trip longer. Who waits for
    /// more than there is at once any more is refused.
    ///
    /// It is in force as long as replicas run, or ask again within 7 days, that are configured as some were when it was
    /// set; so a deploy with another configuration ends it, once none of the old ones was heard for a minute. It
    /// outlives the loss of the store's state. Replicas that are configured differently keep to the smaller numbers
    /// until they agree.
    ///
    /// ```
    /// # use tollgate::{Provider, Tollgate};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let acme = Provider::new("acme").limit("100/min".parse()?);
    /// let acme = Tollgate::builder().provider(acme).build()?.provider("acme")?;
    /// acme.set_limit("50/min".parse()?).await?;
    /// let limit = &acme.peek().await?.limits[0];
    /// assert_eq!((limit.limit.max(), limit.in_force.max(), limit.left), (100, 50, 50));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The provider has no limit in whose place it could stand, it cannot be counted there, or the store does not
    /// answer.
    pub async fn set_limit(&self, limit: Limit) -> Result<(), Error> {
        self.set_limit_in(Scope::all(), limit).await
    }

    /// [`set_limit`](Self::set_limit) for a limit of a scope, written as where it was added: for all values that its
    /// keys have.
    ///
    /// # Errors
    /// As there.
    pub async fn set_limit_in(&self, scope: Scope, limit: Limit) -> Result<(), Error> {
        match self.lane.mode {
            Mode::Off => Ok(()),
            _ => self.lane.gates.set_limit(&scope, limit).await,
        }
    }

    /// What has happened in this replica so far.
    pub fn counts(&self) -> Counts {
        self.lane.counts()
    }

    /// Sets of limits that are in use in this process, or were lately.
    #[doc(hidden)]
    pub fn gates(&self) -> usize {
        self.lane.gates.count()
    }
}

impl Acquire {
    /// What the request takes of the limits that count this unit. Default: one of `requests`, of others nothing;
    /// 0 is allowed. A unit that no limit counts is an error of the call.
    pub fn cost(mut self, unit: &str, amount: u64) -> Self {
        self.terms.price.set(unit, amount);
        self
    }

    /// Whose call it is: the value of a key that a [`Scope`](crate::Scope) of the provider has. Without one it
    /// counts together with all others that have none. A key that no scope has is an error of the call.
    ///
    /// The value may be a secret: only a keyed hash of it leaves the process.
    pub fn key(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.terms.set_key(key, value.as_ref());
        self
    }

    /// Counts in the limits of this route, which must be one of the provider's scopes, written as there. What is
    /// not HTTP has no path to tell.
    pub fn route(mut self, route: &str) -> Self {
        self.terms.routes.push(route.into());
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
            lane.check(&terms)?;
            let fare = lane.fare(&terms.price, Target::Named(&terms.routes), |key| terms.key(key));
            let clock = lane.clock();
            let patience = terms.patience(clock, clock.instant_now(), lane.longest_wait);
            let ask = Ask { priority: terms.priority, ..Ask::new(fare.costs.clone(), patience) };
            lane.permit(fare, ask).await
        })
    }
}

impl std::fmt::Debug for Limiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").field("provider", &self.lane.provider()).finish_non_exhaustive()
    }
}
