//! A look at the shared state.

use std::{future::IntoFuture, pin::Pin, sync::Arc, time::Duration};

use crate::{
    clock::duration,
    error::Error,
    lane::Lane,
    limit::Limit,
    scope::{Scope, Target},
    terms::Terms,
};

/// A question how a provider stands: `.await` it. See [`Limiter::peek`](crate::Limiter::peek).
#[must_use = "nothing is asked until it is awaited"]
pub struct Look {
    lane: Arc<Lane>,
    terms: Terms,
}

/// How a provider stands. See [`Limiter::peek`](crate::Limiter::peek).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peek {
    /// Nobody sends for so long; `None`: not paused.
    pub paused: Option<Duration>,
    /// In the order in which they were given to the provider; only those that count what was looked for.
    pub limits: Vec<LimitPeek>,
    /// Callers that wait in this replica.
    pub queued: usize,
}

/// How a limit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitPeek {
    /// Which one, as it is configured here.
    pub limit: Limit,
    /// Which requests it is for.
    pub scope: Scope,
    /// What all replicas keep to now: another one if they are configured differently, or it was set at run time.
    pub in_force: Limit,
    /// Permits of cost 1 that the window still has, slots booked ahead deducted.
    pub left: u64,
    /// When the next permit of cost 1 could fly if it were booked now; zero: at once.
    pub next_free: Duration,
}

impl Look {
    pub(crate) fn new(lane: Arc<Lane>) -> Self {
        Self { lane, terms: Terms::default() }
    }

    /// Whose limits: as [`Acquire::key`](crate::Acquire::key).
    pub fn key(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.terms.set_key(key, value.as_ref());
        self
    }

    /// Also those of this route: as [`Acquire::route`](crate::Acquire::route).
    pub fn route(mut self, route: &str) -> Self {
        self.terms.routes.push(route.into());
        self
    }
}

impl IntoFuture for Look {
    type Output = Result<Peek, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { lane, terms } = self;
            lane.check(&terms)?;
            let gates = &lane.gates;
            let scope = gates.scopes().find(Target::Named(&terms.routes), |key| terms.key(key));
            let quota = gates.quota(&scope);
            let look =
                gates.store().peek(&quota).await.map_err(|error| Error::store(&quota.provider, error))?;
            let limits = quota.limits.iter().zip(look.limits).map(|(counted, (left, next))| LimitPeek {
                limit: counted.limit().clone(),
                scope: counted.agreed.scope().clone(),
                in_force: counted.agreed.in_force(),
                left: counted.limit().in_units(left),
                next_free: duration(next - look.now),
            });
            let paused = (look.pause > look.now).then(|| duration(look.pause - look.now));
            Ok(Peek { paused, limits: limits.collect(), queued: gates.common().queued() })
        })
    }
}
