//! Outbound API client throttle.
#[doc(hidden)]
pub mod clock;
mod error;
#[doc(hidden)]
pub mod gate;
#[doc(hidden)]
pub mod ledger;
mod limit;
mod limiter;
mod provider;
#[doc(hidden)]
pub mod store;
mod tollgate;

#[cfg(feature = "redis")]
pub use store::RedisStore;
pub use {
    error::{ConfigError, Error, Reason, Refusal},
    limit::{Kind as LimitKind, Limit, LimitError, Reset, Weekday},
    limiter::{Acquire, LimitPeek, Limiter, Peek, Permit},
    provider::Provider,
    store::{MemoryStore, StoreError},
    tollgate::{Builder, Tollgate},
};
