//! What one call chooses for itself.

use std::{sync::Arc, time::Duration};

use reqwest_middleware::RequestBuilder;
use tokio::time::Instant;

use crate::{
    gate::Priority,
    terms::{Terms, Wait},
};

/// The choices of one call, for places where [`RequestBuilderExt`] does not reach: as an extension of
/// `execute_with_extensions`, or as the default of a whole client. Calls with the same extensions are attempts at one
/// thing until one succeeds: they share its bound.
///
/// ```
/// use tollgate::{Call, reqwest_middleware::{ClientBuilder, Extension}};
///
/// # fn example(client: tollgate::reqwest_middleware::ClientWithMiddleware) {
/// let rejecting = ClientBuilder::from_client(client).with_init(Extension(Call::new().or_reject())).build();
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Call {
    pub(crate) terms: Terms,
    pub(crate) provider: Option<Arc<str>>,
    pub(crate) never_again: bool,
}

impl Call {
    /// Waits, costs one request, and goes to the provider of its URL.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits as long as the provider's `max_wait` allows: the default.
    pub fn wait(mut self) -> Self {
        self.terms.wait = Wait::Longest;
        self
    }

    /// Waits at most so long, counted from when it is sent. The time covers the queue, pauses and the waits
    /// between attempts, not the transfer. Never longer than the request's own timeout and the provider's
    /// `max_wait`. Refused as soon as it is certain to miss it.
    pub fn wait_at_most(mut self, time: Duration) -> Self {
        self.terms.wait = Wait::AtMost(time);
        self
    }

    /// The same, until a moment. Takes a standard or a tokio instant.
    pub fn deadline(mut self, end: impl Into<Instant>) -> Self {
        self.terms.wait = Wait::Until(end.into());
        self
    }

    /// Now or not at all: an error with `retry_after` at once, which means after one trip to the store.
    pub fn or_reject(mut self) -> Self {
        self.terms.wait = Wait::Reject;
        self
    }

    /// What the request takes of the limits that count this unit. Default: one of `requests`, of others nothing;
    /// 0 is allowed. Redirect hops cost one request each. A unit that no limit counts is an error of the call.
    pub fn cost(mut self, unit: &str, amount: u64) -> Self {
        self.terms.price.set(unit, amount);
        self
    }

    /// Whose call it is: the value of a key that a [`Scope`](crate::Scope) of the provider has. It goes before the
    /// provider's closure and the header of that name. A key that no scope has is an error of the call.
    ///
    /// The value may be a secret: only a keyed hash of it leaves the process.
    pub fn key(mut self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.terms.set_key(key, value.as_ref());
        self
    }

    /// Who is served first within this replica. Default: [`Priority::Normal`].
    pub fn priority(mut self, priority: Priority) -> Self {
        self.terms.priority = priority;
        self
    }

    /// The provider by its name, whatever the URL. One that does not exist is an error of the call.
    pub fn provider(mut self, name: impl AsRef<str>) -> Self {
        self.provider = Some(name.as_ref().into());
        self
    }

    /// A refusal by the upstream is returned as it is, and not waited out to send again.
    pub fn no_resend(mut self) -> Self {
        self.never_again = true;
        self
    }
}

/// What a call chooses, on reqwest-middleware's request builder. Without a choice it waits, at most the
/// provider's `max_wait`.
///
/// ```no_run
/// use std::time::Duration;
/// use tollgate::{Priority, RequestBuilderExt};
///
/// # async fn example(http: tollgate::reqwest_middleware::ClientWithMiddleware)
/// # -> Result<(), tollgate::reqwest_middleware::Error> {
/// let url = "https://api.acme.com/things";
/// http.get(url).send().await?;
/// http.get(url).wait_at_most(Duration::from_secs(2)).priority(Priority::High).send().await?;
/// http.get(url).or_reject().cost("requests", 5).send().await?;
/// # Ok(())
/// # }
/// ```
///
/// Choices merge, survive `try_clone()`, and are lost by `build()`, after which [`Call`] is the way.
pub trait RequestBuilderExt: sealed::Sealed + Sized {
    /// See [`Call::wait`].
    #[must_use]
    fn wait(self) -> Self {
        self.choose(Call::wait)
    }

    /// See [`Call::wait_at_most`].
    #[must_use]
    fn wait_at_most(self, time: Duration) -> Self {
        self.choose(|call| call.wait_at_most(time))
    }

    /// See [`Call::deadline`].
    #[must_use]
    fn deadline(self, end: impl Into<Instant>) -> Self {
        self.choose(|call| call.deadline(end))
    }

    /// See [`Call::or_reject`].
    #[must_use]
    fn or_reject(self) -> Self {
        self.choose(Call::or_reject)
    }

    /// See [`Call::cost`].
    #[must_use]
    fn cost(self, unit: &str, amount: u64) -> Self {
        self.choose(|call| call.cost(unit, amount))
    }

    /// See [`Call::key`].
    #[must_use]
    fn key(self, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.choose(|call| call.key(key, value))
    }

    /// See [`Call::priority`].
    #[must_use]
    fn priority(self, priority: Priority) -> Self {
        self.choose(|call| call.priority(priority))
    }

    /// See [`Call::provider`].
    #[must_use]
    fn provider(self, name: impl AsRef<str>) -> Self {
        self.choose(|call| call.provider(name))
    }

    /// See [`Call::no_resend`].
    #[must_use]
    fn no_resend(self) -> Self {
        self.choose(Call::no_resend)
    }
}

impl RequestBuilderExt for RequestBuilder {}

mod sealed {
    use super::{Call, RequestBuilder};

    pub trait Sealed {
        fn choose(self, choice: impl FnOnce(Call) -> Call) -> Self;
    }

    impl Sealed for RequestBuilder {
        fn choose(mut self, choice: impl FnOnce(Call) -> Call) -> Self {
            let call = self.extensions().get_or_insert_default::<Call>();
            *call = choice(std::mem::take(call));
            self
        }
    }
}
