//! One external quota, shared by every replica of a service, never exceeded.
//!
//! A paid API allows so many requests a minute; you run many processes. Each call takes a [`Permit`] from a quota
//! that they share in Redis, waits for its turn or is refused, as it chose, and puts one request on the wire.
//! Together they stay below the limit in *any* window, also under load, retries and cold starts.
//!
//! ```
//! use std::time::Duration;
//! use tollgate::{Provider, Tollgate};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tollgate = Tollgate::builder() // in memory; `.store(RedisStore::new(url)?)` shares it
//!     .provider(Provider::new("acme").limit("100/min".parse()?).limit("10/s burst 20".parse()?))
//!     .build()?;
//! let acme = tollgate.provider("acme")?;
//!
//! let permit = acme.acquire().wait_at_most(Duration::from_secs(2)).await?;
//! println!("waited {:?}, {} left of {}", permit.waited(), permit.remaining(), permit.limit());
//! tollgate.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # How it decides
//!
//! A [`Limit`] is a rolling window (a token returns a window after it was spent), a token bucket, or a calendar
//! window. All limits of a provider are decided together by one atomic booking, which gives a permit its *slot*:
//! the moment from which it may fly. Waits are computed, never polled; callers that arrive while a booking is
//! under way share the next one. Once a quota is used up its stream is paced; `unpaced` is there for those who
//! prefer bursts. The shared clock is the store's.
//!
//! # What a caller gets
//!
//! [`Limiter::acquire`] waits; `.wait_at_most(..)` bounds it, `.or_reject()` does not wait, `.cost(n)` takes more.
//! A refusal charges nothing, says when to come back, and tells "later" from "never" and from a store that does
//! not answer ([`Error`]). A dropped future frees its place and its permit.
//!
//! # What is not promised
//!
//! That a network delivers in the order and at the distance in which requests left: the guard covers lateness up
//! to half of it. That a Redis which lost its state remembers what was used.

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
pub mod signal;
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

#[cfg(all(doctest, feature = "redis"))]
#[doc = include_str!("../README.md")]
struct Readme;
