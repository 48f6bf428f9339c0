//! The gates of a provider: one for each set of limits that are booked together.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::Clock,
    error::Error,
    gate::{Common, Gate, Plan},
    ledger::{Micros, SECOND},
    limit::Limit,
    scope::{Routes, Scope, ScopeId, State, Target},
    store::{Agreed, Counted, Quota, Store, StoreError, state_name},
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
    pub limits: Vec<Limited>,
    pub scopes: Routes,
    pub queue: usize,
    pub ageing: Micros,
    pub headroom: u8,
    pub warn_after: Duration,
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub common: Common,
}

/// A limit of the provider.
pub struct Limited {
    agreed: Arc<Agreed>,
    /// The name of its state, where there is one for the whole limit.
    name: String,
}

impl Limited {
    pub fn new(provider: &Arc<str>, limit: Limit, scope: Scope) -> Self {
        let name = state_name(&limit);
        // Whatever values the keys of the scope have.
        let known_as = if scope.is_all() { name.clone() } else { format!("{name}:{scope}") };
        Self { agreed: Agreed::new(provider.clone(), known_as, scope, limit).into(), name }
    }
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
        self.outline.limits.iter().map(|limit| limit.agreed.configured())
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

    /// The limits of a scope, as long as nobody waits there: without a gate.
    pub fn quota(&self, scope: &ScopeId) -> Quota {
        self.outline.quota(scope)
    }

    pub fn count(&self) -> usize {
        1 + self.scoped().gates.len()
    }

    pub fn all(&self) -> Vec<Arc<Gate>> {
        let scoped = self.scoped();
        std::iter::once(&self.usual).chain(scoped.gates.values()).cloned().collect()
    }

    /// Nothing is handed out before `until`, of the monotonic clock. Needs no store.
    fn hold(&self, part: Option<&Arc<str>>, until: Micros) {
        if part.is_none() {
            // Also at gates that are made meanwhile.
            self.common().hold(until);
        }
        let stops = |gate: &&Arc<Gate>| part.is_none_or(|part| gate.quota.parts.contains(part));
        self.all().iter().filter(stops).for_each(|gate| gate.hold(until));
    }

    /// Nobody sends for `time` from now, or nobody in a part of the provider: here at once, elsewhere as soon as the
    /// store knows. Tells what is left of it there. A caller who goes away meanwhile stops nothing: the pause is on its
    /// way.
    pub async fn pause(self: &Arc<Self>, part: Option<Arc<str>>, time: Micros) -> Result<Micros, StoreError> {
        let heard = self.clock().now().mono;
        self.hold(part.as_ref(), heard.saturating_add(time));
        let gates = self.clone();
        let stored = tokio::spawn(async move {
            let left = gates.store().pause(gates.provider(), part.as_ref(), time).await;
            if let Ok(left) = left {
                // Somebody else's may be longer.
                gates.hold(part.as_ref(), heard.saturating_add(left));
            }
            // Without an answer it may be stored all the same.
            gates.all().iter().for_each(|gate| gate.doubt());
            left
        });
        stored
            .await
            .unwrap_or_else(|_| Err(StoreError::answer("the runtime ended before the pause was stored")))
    }

    /// A limit is set anew, for all replicas.
    pub async fn set_limit(&self, scope: &Scope, limit: Limit) -> Result<(), Error> {
        let provider = self.provider();
        let limits = &self.outline.limits;
        let same = |known: &&Limited| known.agreed.scope() == scope && known.agreed.is_like(&limit);
        let Some(known) = limits.iter().find(same) else {
            let wanted = scope.shown_with(&limit);
            let shown = |known: &Limited| known.agreed.scope().shown_with(known.agreed.configured());
            let known: Vec<_> = limits.iter().map(shown).collect();
            return Err(Error::no_such_limit(provider, &wanted, &known));
        };
        let limit = known.agreed.fit(limit).map_err(|error| Error::unfit(provider, &error))?;
        self.store()
            .change(&known.agreed, &limit.to_string(), None)
            .await
            .map_err(|error| Error::store(provider, error))?;
        // Those who wait here need not hear of it by the bell.
        self.all().iter().for_each(Gate::hello);
        Ok(())
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
    /// The limits of a scope, each with its state.
    fn quota(&self, scope: &ScopeId) -> Quota {
        let mut states = self.scopes.states(scope);
        let counted = self.limits.iter().zip(states.by_ref()).filter_map(|(limit, state)| {
            let name = match state {
                State::Elsewhere => return None,
                State::Whole => limit.name.clone(),
                State::Part(suffix) => format!("{}:{suffix}", limit.name),
            };
            let (agreed, watched) = (limit.agreed.clone(), !limit.agreed.scope().is_keyed());
            Some(Counted { agreed, name, watched, headroom: self.headroom })
        });
        let limits = counted.collect();
        // Behind the scopes of the limits come those of pauses.
        let parts = states.filter_map(|state| if let State::Part(name) = state { Some(name) } else { None });
        Quota { provider: self.provider.clone(), limits, parts: parts.collect() }
    }

    fn gate(&self, scope: &ScopeId) -> Arc<Gate> {
        let plan = Plan {
            quota: self.quota(scope),
            queue: self.queue,
            ageing: self.ageing,
            warn_after: self.warn_after,
            common: self.common.clone(),
        };
        Gate::new(plan, self.store.clone(), self.clock.clone())
    }
}
