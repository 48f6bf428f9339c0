use std::{sync::Arc, time::Duration};

use crate::{
    clock::duration,
    error::Error,
    flight::Flight,
    gate::{self, Gate},
    lane::Lane,
    ledger::Costs,
    limit::Limit,
    price::{Price, grains},
    scope::Scope,
    store::{Counted, is_in_flight},
};

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

    /// The limit that has the least left, of what it admits, as it is configured here; the first if the provider is
    /// only observed. `None`: the call counts in none.
    pub fn limit(&self) -> Option<&Limit> {
        let tightest = self.booked.as_ref().map_or(0, |booked| booked.tightest);
        self.gate.quota.limits.get(usize::from(tightest)).map(Counted::limit)
    }

    /// Which requests that limit is for.
    pub fn scope(&self) -> Option<&Scope> {
        let tightest = self.booked.as_ref().map_or(0, |booked| booked.tightest);
        self.gate.quota.limits.get(usize::from(tightest)).map(|counted| counted.agreed.scope())
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

    /// What the request really cost is known: the difference to what was booked is charged or given back.
    /// Units that are not named stay as they were booked. More than was left of a limit is a debt, which
    /// later calls wait for; it is never above the limit once more, what is beyond that is let off. A window
    /// that is over by now is not changed; a bucket takes a debt whenever it is told, and gives back only
    /// what nothing was charged after. A permit that is never settled stays as it was booked.
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
        let price = self.price(real)?;
        self.settle_at(&price);
        Ok(())
    }

    /// What was told, if its units are known.
    pub(crate) fn price<'a>(&self, real: impl IntoIterator<Item = (&'a str, u64)>) -> Result<Price, Error> {
        let mut price = Price::default();
        for (unit, amount) in real {
            self.lane.check_unit(unit)?;
            price.set(unit, amount);
        }
        Ok(price)
    }

    pub(crate) fn settle_at(self, price: &Price) {
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
    pub(crate) async fn renew(self, ask: gate::Ask) -> Result<Self, Error> {
        let Some(booked) = self.booked else { return Ok(self) };
        self.flight.call_off();
        match self.gate.renew(booked, ask).await {
            Ok(booked) => Ok(Self::booked(self.lane, self.gate, booked)),
            Err(verdict) => Err(self.lane.refused(&self.gate, verdict)),
        }
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
