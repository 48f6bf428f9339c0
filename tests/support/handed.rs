//! An upstream inside the client that answers with what the test hands it, for the paused clock.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{io, sync::Arc, time::Duration};

use http::{Extensions, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use tokio::sync::mpsc;
use tollgate::{
    Limiter, Provider, Tollgate,
    reqwest::{self, Body, Request},
    reqwest_middleware::{self},
};

use super::remote::Remote;

pub const URL: &str = "http://acme.test/things";

/// By the path of the request.
type Answers = dyn Fn(&str) -> Response<Body> + Send + Sync;

#[derive(Clone)]
pub struct Handed(Arc<Answers>);

#[async_trait::async_trait]
impl Middleware for Handed {
    async fn handle(
        &self,
        request: Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        tokio::task::yield_now().await;
        Ok((self.0)(request.url().path()).into())
    }
}

/// A replica with these limits, and a client whose requests are answered so.
pub fn client(
    store: &Remote,
    limits: &[&str],
    answers: impl Fn(&str) -> Response<Body> + Send + Sync + 'static,
) -> (Tollgate, Limiter, ClientWithMiddleware) {
    let (tollgate, limiter) = store.replica_of(Provider::new("acme").hosts(["acme.test"]), limits);
    let client = tollgate.client(reqwest::Client::builder().no_proxy()).expect("a client");
    let client = ClientBuilder::from_client(client).with(Handed(Arc::new(answers))).build();
    (tollgate, limiter, client)
}

/// A body of chunks that come when the test sends them.
pub type Feed = mpsc::UnboundedSender<io::Result<&'static str>>;

pub fn fed() -> (Feed, Body) {
    let (feed, chunks) = mpsc::unbounded_channel();
    let chunks = futures_util::stream::unfold(chunks, |mut chunks: mpsc::UnboundedReceiver<_>| async {
        chunks.recv().await.map(|chunk| (chunk, chunks))
    });
    (feed, Body::wrap_stream(chunks))
}

pub fn answer(status: u16, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).body(body.into()).expect("an answer")
}

/// What its first limit has left, when all that happens by itself has happened.
pub async fn free(limiter: &Limiter) -> u64 {
    tokio::time::sleep(Duration::from_millis(1)).await;
    limiter.peek().await.expect("in memory").limits[0].left
}
