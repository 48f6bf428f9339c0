//! An upstream on the loopback whose answers tell in many ways how many tokens they took.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{convert::Infallible, io, sync::Arc, sync::atomic::AtomicUsize, sync::atomic::Ordering::Relaxed};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{Response, response::Builder},
};
use reqwest_middleware::ClientWithMiddleware;
use tokio::{
    net::TcpListener,
    sync::{Mutex, mpsc},
};
use tollgate::{Answer, Limiter, Provider, Tollgate, reqwest};

use super::hops;

/// What each call is guessed to take.
pub const GUESS: u64 = 100;
const TOTAL: &str = "/usage/total_tokens";

/// What the tests tell it to send next, on `/pieces`; an error cuts the connection.
type Piece = io::Result<String>;

/// - `/json/30` says so in JSON, `/header/30` in a header, `/empty/30` in a header of an answer without a body
/// - `/moved/307/30` leads to `/json/30`
/// - `/refused/30` is a 429 at first, which says 5, and then `/json/30`
/// - `/pieces` sends what the test tells it to
/// - what else there is says nothing
pub struct Api {
    pub host: String,
    asked: Arc<AtomicUsize>,
    pieces: mpsc::UnboundedSender<Option<Piece>>,
    task: tokio::task::JoinHandle<()>,
}

impl Api {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        let (pieces, told) = mpsc::unbounded_channel();
        let (asked, told) = (Arc::<AtomicUsize>::default(), Arc::new(Mutex::new(told)));
        let count = asked.clone();
        let answer = move |request: Request| {
            let (at, told) = (count.fetch_add(1, Relaxed), told.clone());
            async move { Ok::<_, Infallible>(answer(request.uri().path(), at, told)) }
        };
        let task = tokio::spawn(async move {
            axum::serve(listener, Router::new().fallback(answer)).await.expect("serves");
        });
        Self { host, asked, pieces, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.host)
    }

    pub fn asked(&self) -> usize {
        self.asked.load(Relaxed)
    }

    pub fn send(&self, piece: &str) {
        self.pieces.send(Some(Ok(piece.to_owned()))).expect("it serves");
    }

    pub fn cut(&self) {
        self.pieces.send(Some(Err(io::Error::other("cut")))).expect("it serves");
    }

    pub fn end(&self) {
        self.pieces.send(None).expect("it serves");
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How an answer says it in JSON, also as an event of a stream.
pub fn usage(tokens: &str) -> String {
    format!(r#"{{"text": "..", "usage": {{"total_tokens": {tokens}}}}}"#)
}

pub fn event(tokens: &str) -> String {
    format!("data: {}\n\n", usage(tokens))
}

fn answer(path: &str, at: usize, told: Arc<Mutex<mpsc::UnboundedReceiver<Option<Piece>>>>) -> Response<Body> {
    let mut path = path.trim_start_matches('/').split('/');
    let (what, first, second) = (path.next(), path.next().unwrap_or("0"), path.next().unwrap_or("0"));
    let says = |builder: Builder| builder.header("x-tokens", first);
    let with = |builder: Builder, body: String| builder.body(Body::from(body));
    let answer = match what {
        Some("json") => with(Response::builder(), usage(first)),
        Some("header") => with(says(Response::builder()), "fine".into()),
        Some("empty") => says(Response::builder().status(204)).body(Body::empty()),
        Some("moved") => {
            let builder = Response::builder().status(first.parse::<u16>().unwrap_or(302));
            with(builder.header("location", format!("/json/{second}")), usage("5"))
        }
        Some("refused") if at == 0 => {
            with(Response::builder().status(429).header("retry-after", "0.05"), usage("5"))
        }
        Some("refused") => with(Response::builder(), usage(first)),
        Some("pieces") => {
            let pieces = futures_util::stream::unfold(told, |told| async move {
                let piece = told.lock().await.recv().await??;
                Some((piece, told))
            });
            Response::builder().body(Body::from_stream(pieces))
        }
        _ => with(Response::builder(), "fine".into()),
    };
    answer.expect("an answer")
}

pub fn provider(api: &Api) -> Provider {
    Provider::new("acme")
        .hosts([&api.host])
        .limit("1000/h unpaced".parse().expect("a limit"))
        .limit("1000 tokens/h unpaced".parse().expect("a limit"))
        .estimate("tokens", |_| GUESS)
        .settle("tokens", tokens)
}

/// Wherever it says so.
fn tokens(answer: &Answer<'_>) -> Option<u64> {
    let body = || answer.json_number(TOTAL).or_else(|| answer.event_number(TOTAL));
    answer.header_number("x-tokens").or_else(body)
}

/// A provider of such an upstream.
pub struct Case {
    pub api: Api,
    pub tollgate: Tollgate,
    pub limiter: Limiter,
    pub http: ClientWithMiddleware,
}

impl Case {
    pub async fn new() -> Self {
        Self::with(|provider| provider).await
    }

    pub async fn with(change: impl FnOnce(Provider) -> Provider) -> Self {
        let api = Api::start().await;
        let tollgate = hops::tollgate([change(provider(&api))]);
        Self::of(api, tollgate)
    }

    pub fn of(api: Api, tollgate: Tollgate) -> Self {
        let (limiter, http) = (tollgate.provider("acme").expect("there"), hops::client(&tollgate));
        Self { api, tollgate, limiter, http }
    }

    pub async fn get(&self, path: &str) -> reqwest::Response {
        self.http.get(self.api.url(path)).send().await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Requests and tokens that were charged so far.
    pub async fn charged(&self) -> (u64, u64) {
        let limits = self.limiter.peek().await.expect("it answers").limits;
        (1_000 - limits[0].left, 1_000 - limits[1].left)
    }
}
