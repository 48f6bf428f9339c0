use std::{future::IntoFuture, pin::Pin, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    clock::{duration, micros},
    error::Error,
    flight::Flight,
    gate::{self, Ask, Gate, Priority},
    lane::Lane,
    ledger::Costs,
    limit::Limit,
    price::{Price, grains},
    scope::Target,
    store::is_in_flight,
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
/// been sent. Under limits of calls in flight it is the call: keep it until that has ended.
pub struct Permit {
    lane: Arc<Lane>,
    gate: Arc<Gate>,
    costs: Costs,
    /// `None`: the provider is only observed, or the tollgate disabled.
    booked: Option<gate::Permit>,
    flight: Flight,
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

    /// Looks at the shared state; books and changes nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn peek(&self) -> Result<Peek, Error> {
        let gates = &self.lane.gates;
        let quota = &gates.usual.quota;
        let look = gates.store().peek(quota).await.map_err(|error| Error::store(&quota.provider, error))?;
        let limits = quota.limits().zip(look.limits).map(|(limit, (left, next))| LimitPeek {
            limit: limit.clone(),
            left: limit.in_units(left),
            next_free: duration(next - look.now),
        });
        let paused = (look.pause > look.now).then(|| duration(look.pause - look.now));
        Ok(Peek { paused, limits: limits.collect(), queued: gates.common().queued() })
    }

    /// Stops every replica for `time` from now: this one at once, the others when they hear the bell. One
    /// that does not hear it sends what it holds for at most 50 ms (two round trips, if that is more) and a
    /// round trip longer. A pause only ever gets longer; afterwards the fleet resumes paced. Tells what is
    /// left of it. Dropped meanwhile, it is stored all the same.
    ///
    /// # Errors
    /// When the store does not answer. This replica stops all the same.
    pub async fn pause(&self, time: Duration) -> Result<Duration, Error> {
        let left = self.lane.gates.pause(micros(time)).await;
        left.map(duration).map_err(|error| Error::store(self.lane.provider(), error))
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

impl Permit {
    pub(crate) fn booked(lane: Arc<Lane>, gate: Arc<Gate>, booked: gate::Permit) -> Self {
        let costs = booked.booked.costs.clone();
        Self { lane, flight: Flight::new(&gate, &costs), gate, costs, booked: Some(booked) }
    }

    pub(crate) fn unbooked(lane: Arc<Lane>, gate: Arc<Gate>, costs: Costs) -> Self {
        Self { lane, gate, costs, booked: None, flight: Flight::none() }
    }

    /// From the question to the permit.
    pub fn waited(&self) -> Duration {
        duration(self.booked.as_ref().map_or(0, |booked| booked.waited))
    }

    /// What it is charged with of this unit; 0 if no limit counts it.
    pub fn cost(&self, unit: &str) -> u64 {
        let mut counted = self.gate.quota.limits().zip(self.costs.iter());
        counted.find(|(limit, _)| limit.unit() == unit).map_or(0, |(limit, cost)| limit.in_units(cost))
    }

    /// The limit that has the least left, of what it admits; the first if the provider is only observed. `None`:
    /// the call counts in none.
    pub fn limit(&self) -> Option<&Limit> {
        let tightest = self.booked.as_ref().map_or(0, |booked| booked.tightest);
        self.gate.quota.limits.get(usize::from(tightest)).map(|counted| &counted.limit)
    }

    /// What that limit had left, for all replicas, when this permit was booked; `None`: nothing was booked,
    /// because the provider is only observed, the tollgate disabled, or the call counts in no limit.
    pub fn remaining(&self) -> Option<u64> {
        let booked = self.booked.as_ref()?;
        self.limit().map(|limit| limit.in_units(booked.remaining))
    }

    /// The request was not sent: the permit goes to the next caller, or back to the store.
    pub fn give_back(self) {
        if let Some(booked) = self.booked {
            self.flight.call_off();
            self.gate.give_back(booked);
        }
    }

    /// What the request really cost is known: the difference to what was booked is charged or given back. Units
    /// that are not named stay as they were booked. More than was left of a limit is a debt, which later calls wait
    /// for; it is never above the limit once more, what is beyond that is let off. A window that is over by now is
    /// not changed. A permit that is never settled stays as it was booked.
    ///
    /// # Errors
    /// When no limit counts one of the units; nothing is changed then.
    ///
    /// ```
    /// # use tollgate::{Provider, Tollgate};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let llm = Provider::new("llm").limit("200000 tokens/min".parse()?);
    /// let llm = Tollgate::builder().provider(llm).build()?.provider("llm")?;
    /// let permit = llm.acquire().cost("tokens", 3_000).await?;
    /// // .. the call, which tells that it took 1,234
    /// permit.settle([("tokens", 1_234)])?;
    /// assert_eq!(llm.peek().await?.limits[0].left, 200_000 - 1_234);
    /// # Ok(())
    /// # }
    /// ```
    pub fn settle<'a>(self, real: impl IntoIterator<Item = (&'a str, u64)>) -> Result<(), Error> {
        let mut price = Price::default();
        for (unit, amount) in real {
            self.lane.check_unit(unit)?;
            price.set(unit, amount);
        }
        if let Some(booked) = &self.booked {
            let counted = self.gate.quota.limits().zip(booked.booked.costs.iter());
            // A place in flight is held or not, whatever the call has cost.
            let told = |limit: &Limit| price.has(limit.unit()) && !is_in_flight(limit);
            let change = counted.map(|(limit, booked)| match told(limit) {
                true => grains(limit, price.of(limit.unit())) - booked,
                false => 0,
            });
            self.gate.settle(booked, change.collect());
        }
        Ok(())
    }

    #[cfg(feature = "middleware")]
    pub(crate) fn lane(&self) -> &Arc<Lane> {
        &self.lane
    }

    #[cfg(feature = "middleware")]
    pub(crate) fn is_of(&self, gate: &Arc<Gate>) -> bool {
        Arc::ptr_eq(&self.gate, gate)
    }

    /// Where its caller stands in the gate's queue, to come back to.
    #[cfg(feature = "middleware")]
    pub(crate) fn place(&self) -> Option<gate::Ticket> {
        self.booked.as_ref().map(|booked| booked.ticket)
    }

    #[cfg(feature = "middleware")]
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    #[cfg(feature = "middleware")]
    pub(crate) fn is_empty(&self) -> bool {
        self.costs.is_nothing()
    }

    /// Whether there is so much in it.
    #[cfg(feature = "middleware")]
    pub(crate) fn holds(&self, costs: &Costs) -> bool {
        !self.costs.is_nothing() && self.costs.covers(costs)
    }

    /// Takes a part of its costs out of it, as a permit of its own.
    #[cfg(feature = "middleware")]
    pub(crate) fn split(&mut self, costs: Costs) -> Self {
        self.costs = self.costs.minus(&costs);
        let booked = self.booked.as_mut().map(|booked| booked.split(costs.clone()));
        Self { lane: self.lane.clone(), gate: self.gate.clone(), costs, booked, flight: Flight::none() }
    }

    /// Whoever has it says when the call has ended.
    #[cfg(feature = "middleware")]
    pub(crate) fn take_flight(&mut self) -> Flight {
        std::mem::replace(&mut self.flight, Flight::none())
    }

    /// One that was kept for later is wanted now: exchanged if its time is over.
    #[cfg(feature = "middleware")]
    pub(crate) async fn renew(self, ask: Ask) -> Result<Self, Error> {
        let Some(booked) = self.booked else { return Ok(self) };
        self.flight.call_off();
        match self.gate.renew(booked, ask).await {
            Ok(booked) => Ok(Self::booked(self.lane, self.gate, booked)),
            Err(verdict) => Err(self.lane.refused(&self.gate, verdict)),
        }
    }
}

impl std::fmt::Debug for Limiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").field("provider", &self.lane.provider()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit")
            .field("limit", &self.limit().map(ToString::to_string))
            .field("waited", &self.waited())
            .finish_non_exhaustive()
    }
}
