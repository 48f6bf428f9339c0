//! One external quota, shared by every replica of a service, never exceeded.
//!
//! A paid API allows so many requests a minute; you run many processes. Each request takes a permit from a quota
//! that they share in Redis, waits for its turn or is refused, as it chose, and then goes on the wire. Together
//! they stay below the limit in *any* window, also under load, retries, redirects and cold starts.
//!
#![cfg_attr(feature = "middleware", doc = "```no_run")]
#![cfg_attr(not(feature = "middleware"), doc = "```ignore")]
//! use std::time::Duration;
//! use tollgate::{Priority, Provider, RequestBuilderExt, Tollgate, reqwest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tollgate = Tollgate::builder() // in memory; `.store(RedisStore::new(url)?)` shares it
//!     .provider(Provider::new("acme").hosts(["api.acme.com"]).limit("100/min".parse()?))
//!     .build()?;
//! let http = tollgate.client(reqwest::Client::builder())?;
//!
//! let url = "http://api.acme.com/things";
//! http.get(url).send().await?; // waits its turn
//! http.get(url).wait_at_most(Duration::from_secs(2)).priority(Priority::High).send().await?;
//! http.get(url).or_reject().cost("requests", 5).send().await?; // or an error with `retry_after`, at once
//! let permit = tollgate.provider("acme")?.acquire().await?; // the same queue, for what is not HTTP
//! tollgate.shutdown().await; // gives back what is booked and not used
//! # Ok(())
//! # }
//! ```
//!
//! # Contents
//!
//! - [`Tollgate`]: the providers of a process and their store, [`MemoryStore`] or [`RedisStore`]. It makes clients.
//! - [`Provider`]: the name, limits and hosts of an API, and what is done when it refuses. [`Limit`]: one limit, in
//!   requests or another unit. [`Scope`]: which requests it counts. [`Answer`]: what a request has really cost.
//!   [`Dialect`]: how it refuses.
//! - [`RequestBuilderExt`], [`Call`]: what one request chooses. [`Toll`]: what it took to get through.
//! - [`Limiter`], [`Permit`]: the same without HTTP.
//! - [`Error`], [`Refusal`]: later, never, or a store that does not answer. [`Error::find`] takes it out of others.
//!
//! # How it decides
//!
//! A [`Limit`] is a rolling window (a token returns a window after it was spent), a token bucket, a calendar
//! window, or a number of calls in flight. All limits of a provider are decided together by one atomic
//! booking, which gives a permit its *slot*: the moment from which it may fly. Waits are computed, never
//! polled; callers that arrive while a booking is under way share the next one. Once a quota is used up its
//! stream is paced; `unpaced` is there for those who prefer bursts. The shared clock is the store's.
//!
//! A 429, or a 503 with `Retry-After`, or what else a provider's [`Dialect`] calls a refusal, stops every replica for as
//! long as it says, and the refused request is sent again if that can be done.
//!
//! # The order of layers
//!
//! [`Tollgate::client`] is all that a new client needs. In a stack that is there already, what retries or caches is
//! *outside*, added before the tollgate; and the client inside sends nothing that nobody charges:
//!
#![cfg_attr(feature = "middleware", doc = "```no_run")]
#![cfg_attr(not(feature = "middleware"), doc = "```ignore")]
//! # use tollgate::{Tollgate, reqwest, reqwest_middleware::{ClientBuilder, Middleware}};
//! # fn example(tollgate: Tollgate, retries: impl Middleware, tracing: impl Middleware) -> reqwest::Result<()> {
//! let inside = reqwest::Client::builder()
//!     .redirect(tollgate.redirect(reqwest::redirect::Policy::default())) // each hop takes a permit
//!     .retry(reqwest::retry::never())
//!     .build()?;
//! let right = ClientBuilder::new(inside).with(retries).with(tollgate.middleware()).with(tracing).build();
//! # Ok(())
//! # }
//! ```
//!
//! Wrong: `.with(tollgate.middleware()).with(retries)`. One permit then covers every attempt, and the quota is
//! exceeded just when the upstream is in trouble.
//!
//! # What is not promised
//!
//! That a network delivers in the order and at the distance in which requests left: the guard covers lateness up
//! to half of it. That a Redis which lost its state remembers what was used. That a request is charged which
//! somebody sends beside the client, or a layer inside the tollgate by itself.
#![cfg_attr(
    not(all(feature = "middleware", feature = "redis")),
    allow(rustdoc::broken_intra_doc_links, reason = "the contents name what is left out")
)]

#[doc(hidden)]
pub mod clock;
mod error;
mod flight;
#[doc(hidden)]
pub mod gate;
mod gates;
mod lane;
#[doc(hidden)]
pub mod ledger;
mod limit;
mod limiter;
mod look;
#[cfg(feature = "middleware")]
mod middleware;
mod permit;
mod price;
mod provider;
mod scope;
#[cfg(feature = "middleware")]
#[doc(hidden)]
pub mod signal;
#[doc(hidden)]
pub mod store;
mod terms;
mod tollgate;

#[cfg(feature = "middleware")]
pub use middleware::{Answer, Call, Middleware, RequestBuilderExt, Toll};
#[cfg(feature = "redis")]
pub use redis;
#[cfg(feature = "middleware")]
pub use signal::Dialect;
#[cfg(feature = "redis")]
pub use store::RedisStore;
pub use {
    error::{ConfigError, Error, Reason, Refusal},
    gate::Priority,
    limit::{Kind as LimitKind, Limit, LimitError, Reset, Weekday},
    limiter::{Acquire, Counts, Limiter},
    look::{LimitPeek, Look, Peek},
    permit::Permit,
    provider::Provider,
    scope::Scope,
    store::{MemoryStore, StoreError},
    tollgate::{Builder, Tollgate},
};

#[cfg(feature = "middleware")]
pub use {http, reqwest, reqwest_middleware};

#[cfg(all(doctest, feature = "middleware", feature = "redis"))]
#[doc = include_str!("../README.md")]
struct Readme;
