use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::{
    clock::Clock,
    error::ConfigError,
    gate::{Ceiling, Gate, Plan},
    limiter::Limiter,
    provider::Provider,
    store::{MemoryStore, Quota, Store},
};

/// The shared limiter of a process: its providers and the store of their state. Cheap to clone.
///
/// When the last clone is dropped inside a tokio runtime, permits booked and not used go back as with
/// [`shutdown`](Self::shutdown), but nobody waits for it.
#[derive(Clone)]
pub struct Tollgate(Arc<Shared>);

/// Providers under their names.
pub struct Shared {
    gates: BTreeMap<String, (Arc<Gate>, Duration)>,
}

/// Builds a [`Tollgate`].
#[must_use]
pub struct Builder {
    store: Arc<dyn Store>,
    providers: Vec<Provider>,
}

impl Tollgate {
    /// Starts with the memory store and no provider.
    pub fn builder() -> Builder {
        Builder { store: Arc::new(MemoryStore::new()), providers: Vec::new() }
    }

    /// The limiter of a provider.
    ///
    /// # Errors
    /// Names the providers there are, if it is none of them.
    pub fn provider(&self, name: &str) -> Result<Limiter, ConfigError> {
        let Some((gate, longest_wait)) = self.0.gates.get(name) else {
            let known = self.0.gates.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(ConfigError(format!("no provider \"{name}\": there are {known}")));
        };
        Ok(Limiter::new(gate.clone(), *longest_wait, self.0.clone()))
    }

    /// Refuses every caller from now on, gives booked permits back and says goodbye to the store. Returns
    /// when that is done, or when the store does not answer within its timeout.
    pub async fn shutdown(&self) {
        for (gate, _) in self.0.gates.values() {
            gate.close();
        }
        for (gate, _) in self.0.gates.values() {
            gate.closed().await;
        }
    }
}

impl std::fmt::Debug for Tollgate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tollgate").field("providers", &self.0.gates.keys()).finish()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for (gate, _) in self.gates.values() {
            gate.close();
        }
    }
}

impl Builder {
    /// Where the state lives. Default: in memory, for this process alone.
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Adds a provider.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// Builds it. Nothing waits for the store; inside a tokio runtime this replica is announced to it in the
    /// background, so that shares are fair from the first call on.
    ///
    /// # Errors
    /// When a provider has no limit, two of one kind and window, or a name that is taken or unfit for a key.
    pub fn build(self) -> Result<Tollgate, ConfigError> {
        if self.providers.is_empty() {
            return Err(ConfigError("no provider: add one with `.provider(..)`".into()));
        }
        let mut gates = BTreeMap::new();
        for provider in self.providers {
            provider.check()?;
            let clock = Clock::new();
            let longest_wait = provider.longest_wait();
            let plan = Plan {
                quota: Quota { provider: provider.name.as_str().into(), limits: provider.limits },
                queue: provider.queue,
                ceiling: provider.ceiling.map(|most| Ceiling::new(most, clock.clone())),
                warn_after: provider.warn_after,
            };
            let gate = Gate::new(plan, self.store.clone(), clock);
            if gates.insert(provider.name.clone(), (gate, longest_wait)).is_some() {
                return Err(ConfigError(format!(
                    "two providers are named \"{}\": give each its own",
                    provider.name
                )));
            }
        }
        for (gate, _) in gates.values() {
            gate.hello();
        }
        Ok(Tollgate(Arc::new(Shared { gates })))
    }
}
