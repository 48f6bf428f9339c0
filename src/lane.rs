//! A provider in operation: its gate, and what is done around it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use crate::{
    clock::{duration, micros},
    error::Error,
    gate::{self, Ask, Gate},
    limit::Limit,
    limiter::{Counts, Permit},
    store::Quota,
};

pub struct Lane {
    pub gate: Arc<Gate>,
    pub longest_wait: Duration,
    pub mode: Mode,
    counters: Counters,
    #[cfg(feature = "middleware")]
    pub upstream: crate::middleware::Upstream,
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
        gate: Arc<Gate>,
        longest_wait: Duration,
        mode: Mode,
        #[cfg(feature = "middleware")] upstream: crate::middleware::Upstream,
    ) -> Self {
        Self {
            gate,
            longest_wait,
            mode,
            counters: Counters::default(),
            #[cfg(feature = "middleware")]
            upstream,
        }
    }

    pub fn quota(&self) -> &Quota {
        &self.gate.quota
    }

    /// A permit that is there without waiting, not even for a store.
    #[cfg(feature = "middleware")]
    pub fn permit_now(self: &Arc<Self>, cost: i64, priority: gate::Priority) -> Option<Permit> {
        let enforced = self.mode == Mode::Enforce;
        let booked = enforced.then(|| self.gate.acquire_now(cost, priority)).flatten()?;
        Some(Permit::booked(self.clone(), booked))
    }

    /// A permit for `cost`, or an error if it cannot be had in time.
    pub async fn permit(self: &Arc<Self>, ask: Ask) -> Result<Permit, Error> {
        match self.mode {
            Mode::Enforce => match self.gate.acquire(ask).await {
                Ok(booked) => Ok(Permit::booked(self.clone(), booked)),
                Err(verdict) => Err(self.refused(verdict)),
            },
            Mode::Observe => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(self.clone().observe(ask));
                }
                Ok(Permit::unbooked(self.clone(), ask.cost))
            }
            Mode::Off => Ok(Permit::unbooked(self.clone(), ask.cost)),
        }
    }

    /// Goes the way of a real call, to tell what would have become of it.
    async fn observe(self: Arc<Self>, ask: Ask) {
        let provider = &*self.quota().provider;
        match self.gate.acquire(ask).await {
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
                let error = self.refused(verdict);
                tracing::info!(provider, %error, "observed only: this call would have been refused");
            }
        }
    }

    pub fn refused(&self, verdict: gate::Verdict) -> Error {
        Error::from_verdict(&self.quota().provider, &self.quota().limits, verdict)
    }

    /// The cost as the gate counts it. Zero and what no limit could hold are impossible.
    pub fn cost(&self, cost: u64) -> Result<i64, Error> {
        let Quota { provider, limits } = self.quota();
        match i64::try_from(cost) {
            Ok(0) => Err(Error::impossible(provider, None)),
            Ok(cost) => Ok(cost),
            Err(_) => Err(Error::impossible(provider, limits.first().cloned())),
        }
    }

    pub fn limit(&self, at: usize) -> &Limit {
        &self.quota().limits[at]
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
            late: self.gate.late(),
            hops: hops.load(Relaxed),
            refusals: refusals.load(Relaxed),
            would_wait: would_wait.load(Relaxed),
            would_refuse: would_refuse.load(Relaxed),
        }
    }
}
