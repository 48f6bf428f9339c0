use std::sync::Arc;

use crate::{
    clock::{Clock, micros},
    error::ConfigError,
    gate::{Ceiling, Common},
    gates::{Gates, Limited, Outline},
    lane::{Lane, Mode},
    limiter::Limiter,
    provider::Provider,
    store::{MemoryStore, Store},
};

/// The shared limiter of a process: its providers and the store of their state. Cheap to clone.
///
/// When the last clone is dropped inside a tokio runtime, permits booked and not used go back as with
/// [`shutdown`](Self::shutdown), but nobody waits for it.
#[derive(Clone)]
pub struct Tollgate(Arc<Shared>);

/// Providers in operation.
pub struct Shared {
    clock: Clock,
    /// In the order in which they were added.
    lanes: Vec<Arc<Lane>>,
    disabled: bool,
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

    /// A tollgate that lets everything pass, whatever the provider: for tests and switches in which limits do
    /// not matter. Its limiters give every permit at once and book nothing.
    pub fn disabled() -> Self {
        Self(Arc::new(Shared { clock: Clock::new(), lanes: Vec::new(), disabled: true }))
    }

    /// The limiter of a provider.
    ///
    /// # Errors
    /// Names the providers there are, if it is none of them.
    pub fn provider(&self, name: &str) -> Result<Limiter, ConfigError> {
        if self.0.disabled {
            let store = Arc::new(MemoryStore::new());
            let lane = open(Provider::unlimited(name), Mode::Off, &self.0.clock, store)?;
            return Ok(Limiter::new(Arc::new(lane), self.0.clone()));
        }
        let Some(lane) = self.lane(name) else {
            let known: Vec<_> = self.0.lanes.iter().map(|lane| &**lane.provider()).collect();
            return Err(ConfigError(format!("no provider \"{name}\": there are {}", known.join(", "))));
        };
        Ok(Limiter::new(lane, self.0.clone()))
    }

    pub(crate) fn lane(&self, name: &str) -> Option<Arc<Lane>> {
        self.0.lanes.iter().find(|lane| &**lane.provider() == name).cloned()
    }

    /// Refuses every caller from now on, gives booked permits back and says goodbye to the store. Returns
    /// when that is done, or when the store does not answer within its timeout.
    pub async fn shutdown(&self) {
        for lane in &self.0.lanes {
            lane.gates.close();
        }
        for lane in &self.0.lanes {
            lane.gates.closed().await;
        }
    }
}

/// What the middleware asks.
#[cfg(feature = "middleware")]
impl Tollgate {
    /// Tells this tollgate from others as long as it lives.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.0.disabled
    }

    /// No URL leads to any provider.
    pub(crate) fn is_nameless(&self) -> bool {
        !self.0.disabled && self.0.lanes.iter().all(|lane| lane.upstream.matcher.is_empty())
    }

    /// The first provider that wants this URL.
    pub(crate) fn lane_at(&self, url: &reqwest::Url) -> Option<Arc<Lane>> {
        self.0.lanes.iter().find(|lane| lane.upstream.matcher.matches(url)).cloned()
    }
}

impl std::fmt::Debug for Tollgate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.0.lanes.iter().map(|lane| lane.provider()).collect();
        f.debug_struct("Tollgate").field("providers", &names).finish()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for lane in &self.lanes {
            lane.gates.close();
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
    /// When a provider has no limit, two of one kind and window, a name that is taken or unfit for a key, or a
    /// host that is none or another's.
    pub fn build(self) -> Result<Tollgate, ConfigError> {
        if self.providers.is_empty() {
            return Err(ConfigError("no provider: add one with `.provider(..)`".into()));
        }
        let clock = Clock::new();
        let mut lanes: Vec<Arc<Lane>> = Vec::new();
        for provider in self.providers {
            let mode = if provider.observe { Mode::Observe } else { Mode::Enforce };
            let lane = open(provider, mode, &clock, self.store.clone())?;
            lanes.iter().try_for_each(|other| clash(other, &lane))?;
            lanes.push(Arc::new(lane));
        }
        for lane in &lanes {
            lane.gates.usual.hello();
        }
        Ok(Tollgate(Arc::new(Shared { clock, lanes, disabled: false })))
    }
}

fn open(provider: Provider, mode: Mode, clock: &Clock, store: Arc<dyn Store>) -> Result<Lane, ConfigError> {
    provider.check()?;
    let longest_wait = provider.longest_wait();
    let scopes = provider.scopes()?;
    let name: Arc<str> = provider.name.as_str().into();
    let limits = provider.limits.into_iter().map(|(limit, scope)| Limited::new(&name, limit, scope));
    let outline = Outline {
        limits: limits.collect(),
        provider: name.clone(),
        queue: provider.queue,
        ageing: micros(provider.ageing),
        headroom: provider.headroom,
        warn_after: provider.warn_after,
        store,
        clock: clock.clone(),
        common: Common::default(),
        scopes,
    };
    let gates = Gates::new(outline);
    let ceiling = provider.ceiling.map(|most| Ceiling::new(most, clock.clone()));
    #[cfg(feature = "middleware")]
    let lane = Lane::new(gates, ceiling, longest_wait, mode, provider.requests.open()?);
    #[cfg(not(feature = "middleware"))]
    let lane = Lane::new(gates, ceiling, longest_wait, mode);
    Ok(lane)
}

/// What two providers cannot have in common.
fn clash(one: &Lane, other: &Lane) -> Result<(), ConfigError> {
    let (name, taken) = (other.provider(), one.provider());
    if name == taken {
        return Err(ConfigError(format!("two providers are named \"{name}\": give each its own")));
    }
    #[cfg(feature = "middleware")]
    if let Some(host) = crate::middleware::overlap(&one.upstream.matcher, &other.upstream.matcher) {
        return Err(ConfigError(format!(
            "providers \"{taken}\" and \"{name}\" both have the host {host}: give it to one, with both limits, or \
             tell their requests apart with `.matching(..)`"
        )));
    }
    Ok(())
}
