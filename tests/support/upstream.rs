//! Upstreams that note what they are asked and answer by a script: one without a network, for the paused clock,
//! and one over loopback.
#![allow(dead_code)]

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::http::{Extensions, HeaderMap, Method, Response};
use tollgate::{
    Limiter, Provider, Tollgate,
    reqwest::{self, Request},
    reqwest_middleware::{self, ClientBuilder, ClientWithMiddleware, Middleware, Next},
};

use super::support::Watch;

/// The host of the provider that [`acme`] builds.
pub const URL: &str = "http://acme.test/things";

/// What an upstream was asked.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Since the upstream was there.
    pub at: Duration,
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    /// `None`: a stream, or none.
    pub body: Option<Vec<u8>>,
}

pub type Answer = Response<Vec<u8>>;

/// By the number of the request, from 0, and what it is.
type Script = dyn Fn(usize, &Seen) -> Answer + Send + Sync;

/// The notes of an upstream.
struct Notes {
    watch: Watch,
    seen: Mutex<Vec<Seen>>,
    script: Box<Script>,
}

impl Notes {
    fn new(script: impl Fn(usize, &Seen) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { watch: Watch::start(), seen: Mutex::default(), script: Box::new(script) })
    }

    fn answer(&self, seen: Seen) -> Answer {
        let mut all = self.seen.lock().expect("no panic");
        let answer = (self.script)(all.len(), &seen);
        all.push(seen);
        answer
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }
}

pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Answer {
    let builder = headers
        .iter()
        .fold(Response::builder().status(status), |builder, (name, value)| builder.header(*name, *value));
    builder.body(body.as_bytes().to_vec()).expect("an answer")
}

pub fn fine() -> Answer {
    answer(200, &[], "fine")
}

/// A refusal that says when to come back.
pub fn refuse(status: u16, retry_after: &str) -> Answer {
    answer(status, &[("retry-after", retry_after)], "too fast")
}

/// Refuses so many with 429 and this hint, then accepts.
pub fn after(refusals: usize, retry_after: &'static str) -> impl Fn(usize, &Seen) -> Answer + Send + Sync {
    move |at, _| if at < refusals { refuse(429, retry_after) } else { fine() }
}

/// The innermost layer of a stack: answers in the place of a network.
#[derive(Clone)]
pub struct Canned {
    notes: Arc<Notes>,
    takes: Duration,
}

impl Canned {
    pub fn new(script: impl Fn(usize, &Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self { notes: Notes::new(script), takes: Duration::ZERO }
    }

    /// How long a request is under way: half of it there, half of it back.
    pub fn taking(mut self, time: Duration) -> Self {
        self.takes = time;
        self
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.notes.seen()
    }

    /// When each request came.
    pub fn times(&self) -> Vec<Duration> {
        self.seen().iter().map(|seen| seen.at).collect()
    }

    /// A client with nothing but the tollgate in front of it.
    pub fn behind(&self, tollgate: &Tollgate) -> ClientWithMiddleware {
        self.inside(tollgate.client(plain()).expect("a client"))
    }

    /// The last layer of a client that there is already.
    pub fn inside(&self, client: ClientWithMiddleware) -> ClientWithMiddleware {
        ClientBuilder::from_client(client).with(self.clone()).build()
    }
}

#[async_trait::async_trait]
impl Middleware for Canned {
    async fn handle(
        &self,
        request: Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        self.pass_half().await;
        let answer = self.notes.answer(Seen {
            at: self.notes.watch.read(),
            method: request.method().clone(),
            path: request.url().path().to_owned(),
            headers: request.headers().clone(),
            body: request.body().and_then(|body| body.as_bytes()).map(<[u8]>::to_vec),
        });
        self.pass_half().await;
        Ok(answer.into())
    }
}

impl Canned {
    async fn pass_half(&self) {
        if !self.takes.is_zero() {
            tokio::time::sleep(self.takes / 2).await;
        }
    }
}

/// The same over HTTP, on this machine.
pub struct Upstream {
    notes: Arc<Notes>,
    pub url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Upstream {
    pub async fn start(script: impl Fn(usize, &Seen) -> Answer + Send + Sync + 'static) -> Self {
        let notes = Notes::new(script);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = notes.clone();
        let handler = move |request: axum::extract::Request| {
            let notes = state.clone();
            async move {
                let (head, body) = request.into_parts();
                let at = notes.watch.read();
                let body = axum::body::to_bytes(body, usize::MAX).await.expect("a body").to_vec();
                let path = head.uri.path().to_owned();
                let seen = Seen { at, method: head.method, path, headers: head.headers, body: Some(body) };
                notes.answer(seen).map(axum::body::Body::from)
            }
        };
        let task = tokio::spawn(async move {
            axum::serve(listener, axum::Router::new().fallback(handler)).await.expect("serves");
        });
        Self { notes, url, task }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.notes.seen()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A builder that no environment changes.
pub fn plain() -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy()
}

/// A provider of [`URL`] with one limit.
pub fn provider(limit: &str) -> Provider {
    let limit = limit.parse().unwrap_or_else(|error| panic!("{error}"));
    Provider::new("acme").hosts(["acme.test"]).limit(limit)
}

/// A tollgate in memory with that provider, and its limiter.
pub fn acme(limit: &str) -> (Tollgate, Limiter) {
    open(provider(limit))
}

pub fn open(provider: Provider) -> (Tollgate, Limiter) {
    let tollgate = Tollgate::builder().provider(provider).build().unwrap_or_else(|error| panic!("{error}"));
    let limiter = tollgate.provider("acme").unwrap_or_else(|error| panic!("{error}"));
    (tollgate, limiter)
}

/// What its first limit has left.
pub async fn left(limiter: &Limiter) -> u64 {
    limiter.peek().await.expect("in memory").limits[0].left
}

pub async fn paused(limiter: &Limiter) -> Option<Duration> {
    limiter.peek().await.expect("in memory").paused
}

/// All that is logged on this thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// From now on, down to every detail, until the guard is dropped.
    pub fn capture() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
