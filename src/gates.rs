//! The gates of a provider: one for each set of limits that are booked together.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::Clock,
    gate::{Common, Gate, Plan},
    ledger::{Micros, SECOND},
    limit::Limit,
    scope::{Routes, Scope, ScopeId, State, Target},
    store::{Counted, Quota, Store, StoreError},
};

/// So many gates are kept in any case.
const FEW: usize = 1_024;
const MINUTE: Micros = 60 * SECOND;

/// Gates come with the first call of their scope, and go when they are idle and there are many.
pub struct Gates {
    outline: Outline,
    /// Of calls without a route and a value for any key.
    pub usual: Arc<Gate>,
    usual_scope: ScopeId,
    scoped: Mutex<Scoped>,
}

/// What all gates of a provider are made from.
pub struct Outline {
    pub provider: Arc<str>,
    pub limits: Vec<(Limit, Scope)>,
    pub scopes: Routes,
    pub queue: usize,
    pub ageing: Micros,
    pub headroom: u8,
    pub warn_after: Duration,
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub common: Common,
}

struct Scoped {
    gates: HashMap<ScopeId, Arc<Gate>>,
    /// With as many the idle ones are dropped.
    crowded: usize,
    /// When that was done last.
    swept: Micros,
    closed: bool,
}

impl Gates {
    pub fn new(outline: Outline) -> Arc<Self> {
        let usual_scope = outline.scopes.find(Target::Named(&[]), |_| None::<&[u8]>);
        let scoped = Scoped { gates: HashMap::new(), crowded: FEW, swept: 0, closed: false };
        let usual = outline.gate(&usual_scope);
        Arc::new(Self { usual, usual_scope, outline, scoped: Mutex::new(scoped) })
    }

    pub fn provider(&self) -> &Arc<str> {
        &self.outline.provider
    }

    /// All limits, in the order in which they were added.
    pub fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.outline.limits.iter().map(|(limit, _)| limit)
    }

    pub fn scopes(&self) -> &Routes {
        &self.outline.scopes
    }

    pub fn common(&self) -> &Common {
        &self.outline.common
    }

    pub fn clock(&self) -> &Clock {
        &self.outline.clock
    }

    pub fn store(&self) -> &dyn Store {
        &*self.outline.store
    }

    /// The gate of a scope.
    pub fn at(&self, scope: ScopeId) -> Arc<Gate> {
        if scope == self.usual_scope {
            return self.usual.clone();
        }
        let mut scoped = self.scoped();
        if let Some(gate) = scoped.gates.get(&scope) {
            return gate.clone();
        }
        let gate = self.outline.gate(&scope);
        if scoped.closed {
            gate.close();
        }
        scoped.forget_the_idle(self.clock().mono());
        scoped.gates.insert(scope, gate.clone());
        gate
    }

    pub fn count(&self) -> usize {
        1 + self.scoped().gates.len()
    }

    pub fn all(&self) -> Vec<Arc<Gate>> {
        let scoped = self.scoped();
        std::iter::once(&self.usual).chain(scoped.gates.values()).cloned().collect()
    }

    /// Nothing is handed out before `until`, of the monotonic clock. Needs no store.
    fn hold(&self, until: Micros) {
        // Also at gates that are made meanwhile.
        self.common().hold(until);
        self.all().iter().for_each(|gate| gate.hold(until));
    }

    /// Nobody sends for `time` from now: here at once, elsewhere as soon as the store knows. Tells what is left of
    /// it there. A caller who goes away meanwhile stops nothing: the pause is on its way.
    pub async fn pause(self: &Arc<Self>, time: Micros) -> Result<Micros, StoreError> {
        let heard = self.clock().now().mono;
        self.hold(heard.saturating_add(time));
        let gates = self.clone();
        let stored = tokio::spawn(async move {
            let left = gates.store().pause(&gates.usual.quota, time).await;
            if let Ok(left) = left {
                // Somebody else's may be longer.
                gates.hold(heard.saturating_add(left));
            }
            // Without an answer it may be stored all the same.
            gates.all().iter().for_each(|gate| gate.doubt());
            left
        });
        stored
            .await
            .unwrap_or_else(|_| Err(StoreError::answer("the runtime ended before the pause was stored")))
    }

    /// Gives booked permits back and says goodbye, without waiting for it.
    pub fn close(&self) {
        self.scoped().closed = true;
        self.all().iter().for_each(|gate| gate.close());
    }

    /// Waits until the goodbyes are said or have failed.
    pub async fn closed(&self) {
        for gate in self.all() {
            gate.closed().await;
        }
    }

    fn scoped(&self) -> MutexGuard<'_, Scoped> {
        self.scoped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scoped {
    /// Whenever there are twice as many gates as were left the last time; and if there are many, from time to time.
    fn forget_the_idle(&mut self, now: Micros) {
        let kept = self.gates.len();
        if kept < self.crowded && (kept < FEW || now < self.swept + MINUTE) {
            return;
        }
        self.swept = now;
        self.gates.retain(|_, gate| {
            // One that somebody waits at, or holds a permit of, is not alone with the map.
            let (used, idle) = (Arc::strong_count(gate) > 1, gate.is_idle());
            if !used && !idle {
                // What it owes the store, and could not say for want of a runtime or an answer, it says now.
                gate.hello();
            }
            used || !idle
        });
        self.crowded = FEW.max(2 * self.gates.len());
    }
}

impl Outline {
    fn gate(&self, scope: &ScopeId) -> Arc<Gate> {
        let states = self.limits.iter().zip(self.scopes.states(scope));
        let counted = states.filter_map(|((limit, scope), state)| {
            let counted = Counted { headroom: self.headroom, ..Counted::from(limit.clone()) };
            match state {
                State::Elsewhere => None,
                State::Whole => Some(counted),
                State::Part(suffix) => {
                    let name = format!("{}:{suffix}", counted.name);
                    Some(Counted { name, watched: !scope.is_keyed(), ..counted })
                }
            }
        });
        let plan = Plan {
            quota: Quota { provider: self.provider.clone(), limits: counted.collect() },
            queue: self.queue,
            ageing: self.ageing,
            warn_after: self.warn_after,
            common: self.common.clone(),
        };
        Gate::new(plan, self.store.clone(), self.clock.clone())
    }
}
