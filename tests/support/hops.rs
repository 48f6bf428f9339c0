//! An upstream on the loopback that redirects and records what arrives; and one inside the client, for the
//! paused clock.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    collections::VecDeque,
    net::TcpListener,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use axum::{Router, body, extract::Request, response::Response};
use http::{Extensions, HeaderMap, header};
use reqwest_middleware::{ClientWithMiddleware, Next};
use tokio::{sync::oneshot, time::Instant};
use tollgate::{Error, Provider, Tollgate};

/// Has a thread and a runtime of its own: its clock goes on whatever the client does.
///
/// - `/chain/3` leads to `/chain/2`, and so on to `/chain/0`
/// - `/to/307?http://..` leads there
/// - `/slow/30?http://..` as well, after 30 ms
/// - `/refuse` is a 429 for an hour, `/busy` one without a hint, `/hang` never answers, `/moved` names no place
/// - what else there is answers 200
pub struct Upstream {
    port: u16,
    began: Instant,
    record: Record,
    _stop: oneshot::Sender<()>,
}

type Record = Arc<Mutex<Vec<Arrival>>>;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub at: Duration,
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Upstream {
    #[allow(clippy::disallowed_methods)] // The upstream's clock is not ours.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("an address").port();
        let (record, began) = (Record::default(), Instant::now());
        let (stop, stopped) = oneshot::channel();
        let seen = record.clone();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let all = Router::new().fallback(move |request| answer(request, seen.clone(), began));
                tokio::select! {
                    ended = axum::serve(listener, all) => ended.expect("it serves"),
                    _ = stopped => {}
                }
            });
        });
        Self { port, began, record, _stop: stop }
    }

    /// As providers name it.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host())
    }

    /// A URL of this upstream that leads to another.
    pub fn to(&self, status: u16, target: &str) -> String {
        self.url(&format!("/to/{status}?{target}"))
    }

    /// The time by its own clock.
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn seen(&self) -> Vec<Arrival> {
        self.record.lock().expect("no panic").clone()
    }

    pub fn count(&self) -> usize {
        self.record.lock().expect("no panic").len()
    }

    pub async fn has_seen(&self, requests: usize) {
        eventually(async || self.count() >= requests).await;
    }
}

async fn answer(request: Request, record: Record, began: Instant) -> Response {
    let (head, sent) = request.into_parts();
    let at = began.elapsed();
    let body = body::to_bytes(sent, usize::MAX).await.expect("a body");
    record.lock().expect("no panic").push(Arrival {
        at,
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    });
    let mut path = head.uri.path().trim_start_matches('/').split('/');
    let (what, number) = (path.next(), path.next().and_then(|number| number.parse::<u16>().ok()));
    let target = head.uri.query().unwrap_or_default();
    match (what, number) {
        (Some("chain"), Some(left)) if left > 0 => leads(302, &format!("/chain/{}", left - 1)),
        (Some("to"), Some(status)) => leads(status, target),
        (Some("slow"), Some(ms)) => {
            tokio::time::sleep(Duration::from_millis(ms.into())).await;
            leads(302, target)
        }
        (Some("refuse"), _) => plain(429, header::RETRY_AFTER, "3600"),
        (Some("busy"), _) => plain(429, header::ETAG, "\"busy\""),
        (Some("hang"), _) => std::future::pending().await,
        (Some("moved"), _) => plain(302, header::ETAG, "\"nowhere\""),
        _ => plain(200, header::ETAG, "\"end\""),
    }
}

fn leads(status: u16, target: &str) -> Response {
    plain(status, header::LOCATION, target)
}

fn plain(status: u16, name: header::HeaderName, value: &str) -> Response {
    Response::builder().status(status).header(name, value).body("end".into()).expect("a response")
}

/// Waits for what must come, however long this machine takes.
pub async fn eventually(true_now: impl AsyncFn() -> bool) {
    for _ in 0..4_000 {
        if true_now().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came");
}

pub fn provider(name: &str, limit: &str) -> Provider {
    Provider::new(name).limit(limit.parse().unwrap_or_else(|error| panic!("{error}")))
}

pub fn tollgate(providers: impl IntoIterator<Item = Provider>) -> Tollgate {
    let builder = providers.into_iter().fold(Tollgate::builder(), tollgate::Builder::provider);
    builder.build().unwrap_or_else(|error| panic!("{error}"))
}

/// Follows redirects as by default.
pub fn client(tollgate: &Tollgate) -> ClientWithMiddleware {
    tollgate.client(reqwest::Client::builder().no_proxy()).expect("a client")
}

/// One provider, "acme", with an upstream of its own.
pub fn acme(limit: &str) -> (Upstream, Tollgate, ClientWithMiddleware) {
    let upstream = Upstream::start();
    let tollgate = tollgate([provider("acme", limit).hosts([upstream.host()])]);
    let http = client(&tollgate);
    (upstream, tollgate, http)
}

/// The same, with so many hops booked ahead by each call.
pub fn ahead(limit: &str, hops: u32) -> (Upstream, Tollgate, ClientWithMiddleware) {
    let upstream = Upstream::start();
    let tollgate = tollgate([provider("acme", limit).hosts([upstream.host()]).redirects(hops)]);
    let http = client(&tollgate);
    (upstream, tollgate, http)
}

pub fn counted_hops(tollgate: &Tollgate, provider: &str) -> u64 {
    tollgate.provider(provider).expect("there").counts().hops
}

pub fn ours(error: &reqwest_middleware::Error) -> Error {
    Error::find(error).unwrap_or_else(|| panic!("not ours: {error}"))
}

/// What the first limit of a provider has left.
pub async fn left(tollgate: &Tollgate, provider: &str) -> u64 {
    let limiter = tollgate.provider(provider).unwrap_or_else(|error| panic!("{error}"));
    limiter.peek().await.unwrap_or_else(|error| panic!("{error}")).limits[0].left
}

/// What comes back comes back soon: by a call to the store of which nobody waits for the end.
pub async fn has_left(tollgate: &Tollgate, provider: &str, expected: u64) {
    for _ in 0..1_000 {
        if left(tollgate, provider).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{} left of \"{provider}\", not {expected}", left(tollgate, provider).await);
}

/// A layer inside the tollgate that answers by itself, after it was polled `polls` times: what it has been told,
/// then 200.
#[derive(Clone, Default)]
pub struct Mock {
    polls: usize,
    answers: Arc<Mutex<VecDeque<http::Response<&'static str>>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Mock {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn polls(self, polls: usize) -> Self {
        Self { polls, ..self }
    }

    /// Its next answer is a 429.
    pub fn refuses_for(self, seconds: u64) -> Self {
        let refusal = http::Response::builder().status(429).header(header::RETRY_AFTER, seconds);
        self.answers.lock().expect("no panic").push_back(refusal.body("too fast").expect("a response"));
        self
    }

    /// The paths that were asked for, in their order.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }

    pub fn count(&self) -> usize {
        self.seen.lock().expect("no panic").len()
    }

    /// Inside a client of this tollgate.
    pub fn inside(&self, tollgate: &Tollgate) -> ClientWithMiddleware {
        reqwest_middleware::ClientBuilder::from_client(client(tollgate)).with(self.clone()).build()
    }
}

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Mock {
    async fn handle(
        &self,
        request: reqwest::Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        self.seen.lock().expect("no panic").push(request.url().path().to_owned());
        for _ in 0..self.polls {
            tokio::task::yield_now().await;
        }
        let told = self.answers.lock().expect("no panic").pop_front();
        Ok(told.unwrap_or_else(|| http::Response::new("end")).into())
    }
}

/// A layer that only passes on.
pub struct Through;

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Through {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        next.run(request, extensions).await
    }
}

/// When a caller loses interest: so many polls have come back without a result.
#[derive(Clone, Copy, Debug)]
pub enum Abandon {
    /// Right after the last of them.
    AtOnce(usize),
    /// When it has been woken for the next one, which never comes.
    Woken(usize),
}

/// Polls a future until it is done or abandoned; `None`: abandoned, and dropped.
pub async fn abandon<F: Future>(future: F, when: Abandon) -> Option<F::Output> {
    let (Abandon::AtOnce(most) | Abandon::Woken(most)) = when;
    let mut future = Box::pin(future);
    let mut polls = 0;
    std::future::poll_fn(|context| {
        if polls == most {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls == most && matches!(when, Abandon::AtOnce(_)) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
