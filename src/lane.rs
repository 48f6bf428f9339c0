//! A provider in operation: its gates, and what is done around them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::{
    clock::{Clock, duration, micros},
    error::Error,
    flight::Flight,
    gate::{self, Ask, Ceiling, Gate},
    gates::Gates,
    ledger::Costs,
    limit::Limit,
    limiter::Counts,
    permit::Permit,
    price::{Price, REQUESTS},
    scope::Target,
    terms::Terms,
};

pub struct Lane {
    pub gates: Arc<Gates>,
    /// What a call costs that says nothing about it.
    usual: Costs,
    ceiling: Option<Ceiling>,
    pub longest_wait: Duration,
    pub mode: Mode,
    counters: Counters,
    #[cfg(feature = "middleware")]
    pub upstream: crate::middleware::Upstream,
}

/// What a call pays, and at which gate.
#[derive(Clone)]
pub struct Fare {
    pub gate: Arc<Gate>,
    pub costs: Costs,
}

/// How seriously the limits are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Enforce,
    /// Decides and counts, but nobody waits for it.
    Observe,
    /// Lets everything pass.
    Off,
}

#[derive(Debug, Default)]
pub struct Counters {
    hops: AtomicU64,
    refusals: AtomicU64,
    would_wait: AtomicU64,
    would_refuse: AtomicU64,
}

impl Lane {
    pub fn new(
        gates: Arc<Gates>,
        ceiling: Option<Ceiling>,
        longest_wait: Duration,
        mode: Mode,
        #[cfg(feature = "middleware")] upstream: crate::middleware::Upstream,
    ) -> Self {
        Self {
            usual: Price::default().costs(gates.usual.quota.limits()),
            gates,
            ceiling,
            longest_wait,
            mode,
            counters: Counters::default(),
            #[cfg(feature = "middleware")]
            upstream,
        }
    }

    pub fn provider(&self) -> &Arc<str> {
        self.gates.provider()
    }

    pub fn clock(&self) -> &Clock {
        self.gates.clock()
    }

    /// What a call pays that names these units and goes there. `value`: of a key.
    pub fn fare<V: AsRef<[u8]>>(
        &self,
        price: &Price,
        target: Target<'_>,
        value: impl FnMut(&str) -> Option<V>,
    ) -> Fare {
        let scopes = self.gates.scopes();
        let gate = if scopes.is_plain() {
            self.gates.usual.clone()
        } else {
            self.gates.at(scopes.find(target, value))
        };
        let usual = price.is_usual() && Arc::ptr_eq(&gate, &self.gates.usual);
        let costs = if usual { self.usual.clone() } else { price.costs(gate.quota.limits()) };
        Fare { gate, costs }
    }

    /// Requests are known everywhere, other units where a limit counts them.
    pub fn check_unit(&self, unit: &str) -> Result<(), Error> {
        if unit == REQUESTS || self.gates.limits().any(|limit| limit.unit() == unit) {
            return Ok(());
        }
        let mut known = vec![REQUESTS];
        for unit in self.gates.limits().map(Limit::unit) {
            if !known.contains(&unit) {
                known.push(unit);
            }
        }
        self.unknown("unit", unit, &known)
    }

    /// What a call names by hand must exist.
    pub fn check(&self, terms: &Terms) -> Result<(), Error> {
        terms.price.units().try_for_each(|unit| self.check_unit(unit))?;
        let scopes = self.gates.scopes();
        for (key, _) in &terms.keys {
            if !scopes.keys().any(|known| known == &**key) {
                self.unknown("key", key, &scopes.keys().collect::<Vec<_>>())?;
            }
        }
        for route in &terms.routes {
            if !scopes.routes().any(|known| known == &**route) {
                self.unknown("route", route, &scopes.routes().collect::<Vec<_>>())?;
            }
        }
        Ok(())
    }

    /// A tollgate that is disabled knows every name.
    fn unknown(&self, kind: &str, name: &str, known: &[&str]) -> Result<(), Error> {
        if self.mode == Mode::Off {
            return Ok(());
        }
        Err(Error::unknown_in(self.provider(), kind, name, known))
    }

    /// A permit that is there without waiting, not even for a store.
    #[cfg(feature = "middleware")]
    pub fn permit_now(self: &Arc<Self>, fare: &Fare, priority: gate::Priority) -> Option<Permit> {
        let at_once = self.mode == Mode::Enforce && self.ceiling.is_none();
        let booked = at_once.then(|| fare.gate.take_now(&fare.costs, priority)).flatten()?;
        Some(Permit::booked(self.clone(), fare.gate.clone(), booked))
    }

    /// A permit, or an error if it cannot be had in time.
    pub async fn permit(self: &Arc<Self>, fare: Fare, ask: Ask) -> Result<Permit, Error> {
        match self.mode {
            Mode::Enforce => match self.acquire(&fare.gate, ask).await {
                Ok(booked) => Ok(Permit::booked(self.clone(), fare.gate, booked)),
                Err(verdict) => Err(self.refused(&fare.gate, verdict)),
            },
            Mode::Observe => {
                let costs = ask.costs.clone();
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(self.clone().observe(fare.gate.clone(), ask));
                }
                Ok(Permit::unbooked(self.clone(), fare.gate, costs))
            }
            Mode::Off => Ok(Permit::unbooked(self.clone(), fare.gate, ask.costs)),
        }
    }

    async fn acquire(&self, gate: &Arc<Gate>, ask: Ask) -> Result<gate::Permit, gate::Verdict> {
        if let Some(ceiling) = &self.ceiling {
            // Boxed, as all that is seldom needed: it must not make every call's future larger.
            Box::pin(ceiling.pass(ask.patience)).await?;
        }
        gate.acquire(ask).await
    }

    /// Goes the way of a real call, to tell what would have become of it.
    async fn observe(self: Arc<Self>, gate: Arc<Gate>, ask: Ask) {
        let provider = &**self.provider();
        let verdict = self.acquire(&gate, ask).await;
        // A place in flight is only looked for: how long the call takes is not known here.
        let _landed = verdict.as_ref().ok().map(|permit| Flight::new(&gate, &permit.booked.costs));
        match verdict {
            Ok(permit) if permit.waited < micros(Duration::from_millis(1)) => {}
            Ok(permit) => {
                self.counters.would_wait.fetch_add(1, Relaxed);
                let waited = duration(permit.waited);
                tracing::info!(provider, ?waited, "observed only: this call would have waited");
            }
            // It says nothing about the quota.
            Err(gate::Verdict::Store(error)) => {
                tracing::warn!(provider, %error, "observed only: the store failed");
            }
            Err(verdict) => {
                self.counters.would_refuse.fetch_add(1, Relaxed);
                let error = self.refused(&gate, verdict);
                tracing::info!(provider, %error, "observed only: this call would have been refused");
            }
        }
    }

    pub fn refused(&self, gate: &Gate, verdict: gate::Verdict) -> Error {
        Error::from_verdict(&gate.quota, verdict)
    }

    #[cfg(feature = "middleware")]
    pub fn count_hop(&self) {
        self.counters.hops.fetch_add(1, Relaxed);
    }

    #[cfg(feature = "middleware")]
    pub fn count_refusal(&self) {
        self.counters.refusals.fetch_add(1, Relaxed);
    }

    pub fn counts(&self) -> Counts {
        let Counters { hops, refusals, would_wait, would_refuse } = &self.counters;
        Counts {
            late: self.gates.common().late(),
            hops: hops.load(Relaxed),
            refusals: refusals.load(Relaxed),
            would_wait: would_wait.load(Relaxed),
            would_refuse: would_refuse.load(Relaxed),
        }
    }
}
