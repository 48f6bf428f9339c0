//! How a tollgate gets into a client.

use std::pin::Pin;

use http::Extensions;
use reqwest::{ClientBuilder, Request, Response, redirect::Policy};
use reqwest_middleware::{ClientWithMiddleware, Next, Result};

use super::hops::noting;
use crate::tollgate::Tollgate;

/// A tollgate as a layer of reqwest-middleware. See [`Tollgate::middleware`].
#[derive(Clone, Debug)]
pub struct Middleware(Tollgate);

/// Clients (feature `middleware`).
impl Tollgate {
    /// A client of which every request on the wire is charged, redirect hops included. reqwest's own retries
    /// are switched off; redirects are followed as by default, at most 10.
    ///
    /// **A redirect policy set on the builder is replaced**, which reqwest does not let us see: give it to
    /// [`client_with`](Self::client_with).
    ///
    /// ```
    /// use tollgate::{Provider, Tollgate, reqwest};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tollgate = Tollgate::builder()
    ///     .provider(Provider::new("acme").hosts(["api.acme.com"]).limit("100/min".parse()?))
    ///     .build()?;
    /// let http = tollgate.client(reqwest::Client::builder().user_agent("mine/1.0"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// reqwest's own, from building the client.
    pub fn client(&self, builder: ClientBuilder) -> reqwest::Result<ClientWithMiddleware> {
        self.client_with(builder, Policy::default())
    }

    /// The same with a redirect policy of the caller's; `Policy::none()` stays none.
    ///
    /// # Errors
    ///
    /// reqwest's own, from building the client.
    pub fn client_with(
        &self,
        builder: ClientBuilder,
        policy: Policy,
    ) -> reqwest::Result<ClientWithMiddleware> {
        let client = builder.redirect(self.redirect(policy)).retry(reqwest::retry::never()).build()?;
        Ok(reqwest_middleware::ClientBuilder::new(client).with(self.middleware()).build())
    }

    /// The layer alone, for an existing stack. Layers before it (outside) see a call once, however often it is
    /// sent; layers after it (inside) see each attempt, after its permit. A layer that retries belongs outside,
    /// so that each of its attempts is charged; one that caches, too. Attached twice, it acts once; what a layer
    /// inside asks for on its own account, such as a token, is a call of its own.
    ///
    /// The client inside must not send by itself what nobody charges: build it with
    /// [`redirect`](Self::redirect) and `reqwest::retry::never()`, and without a layer inside that retries or
    /// moves the request to another task.
    pub fn middleware(&self) -> Middleware {
        if self.is_nameless() {
            tracing::warn!("no provider has hosts: only calls that name their provider are limited");
        }
        Middleware(self.clone())
    }

    /// A redirect policy that decides like `policy` and has each hop charged, for a client with the
    /// [`middleware`](Self::middleware) that is not built by [`client`](Self::client).
    pub fn redirect(&self, policy: Policy) -> Policy {
        noting(self, policy)
    }
}

/// Written out what `async_trait` makes of it, to hand over the request without a future around a future.
impl reqwest_middleware::Middleware for Middleware {
    fn handle<'a, 'b, 'c, 'd>(
        &'a self,
        request: Request,
        extensions: &'b mut Extensions,
        next: Next<'c>,
    ) -> Pin<Box<dyn Future<Output = Result<Response>> + Send + 'd>>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        Self: 'd,
    {
        let Self(tollgate) = self;
        if tollgate.is_disabled() {
            return next.run(request, extensions);
        }

        Box::pin(tollgate.pass(Box::new(request), extensions, next))
    }
}
