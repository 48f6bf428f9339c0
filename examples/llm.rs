//! A model API that counts requests and tokens a minute. How many tokens a call takes nobody knows before: it is
//! guessed, up to twice as much or half, and what the answer says is settled.
//!
//! ```text
//! cargo run --release --example llm            # a tenth of a minute, and of the limits: 12 s
//! cargo run --release --example llm -- --full  # real minutes, three of them
//! ```
#![allow(clippy::disallowed_methods, reason = "the upstream has a clock of its own")]

use std::{
    collections::VecDeque,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::{Router, body::Bytes, extract::State, routing::post};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};
use tollgate::reqwest_middleware::ClientWithMiddleware;
use tollgate::{Limit, LimitError, Provider, Tollgate, reqwest};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The API: its limits, a guess before each call, and where its answers tell what it really took.
fn llm(host: &str, requests: &str, tokens: &str) -> std::result::Result<Provider, LimitError> {
    Ok(Provider::new("llm")
        .hosts([host])
        .limit(requests.parse()?) // "500/min"
        .limit(tokens.parse()?) // "200000 tokens/min"
        .estimate("tokens", |request| {
            guess(request.body().and_then(|body| body.as_bytes()).unwrap_or_default())
        })
        .settle("tokens", |answer| answer.json_number("/usage/total_tokens")))
}

/// Four bytes a token, and what its answers usually take.
fn guess(prompt: &[u8]) -> u64 {
    prompt.len() as u64 / 4 + 200
}

/// One call. It waits its turn, and is settled when its answer has been read.
async fn ask(http: &ClientWithMiddleware, url: &str, prompt: &str) -> Result<Value> {
    let response = http.post(url).json(&json!({ "prompt": prompt })).send().await?;
    Ok(response.error_for_status()?.json().await?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let full = std::env::args().any(|arg| arg == "--full");
    let (requests, tokens, windows) =
        if full { ("500/min", "200000 tokens/min", 3) } else { ("50/6s", "20000 tokens/6s", 2) };

    let upstream = Arc::<Mutex<Upstream>>::default();
    let host = serve(upstream.clone()).await?;
    let tollgate = Tollgate::builder().provider(llm(&host, requests, tokens)?).build()?;
    let http = tollgate.client(reqwest::Client::builder().no_proxy())?;

    let tokens: Limit = tokens.parse()?;
    let end = Instant::now() + tokens.window() * windows;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (http, url) = (http.clone(), format!("http://{host}/"));
        tasks.spawn(async move {
            while Instant::now() < end {
                ask(&http, &url, &"word ".repeat(fastrand::usize(100..600))).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    tollgate.shutdown().await;
    lock(&upstream).report(&requests.parse()?, &tokens, windows);
    Ok(())
}

/// So many calls at once.
const TASKS: usize = 8;

/// What the API has seen, by its own clock.
#[derive(Default)]
struct Upstream {
    arrivals: Vec<Arrival>,
    /// What was guessed for the calls that are under way.
    guessed: u64,
}

struct Arrival {
    at: Instant,
    took: u64,
    /// What was guessed for those under way then, itself included, and for those not settled when it was booked.
    under_way: u64,
    unsettled: u64,
}

fn lock(upstream: &Mutex<Upstream>) -> MutexGuard<'_, Upstream> {
    upstream.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes 200 ms for each call, and half to twice as many tokens as were guessed.
async fn serve(upstream: Arc<Mutex<Upstream>>) -> std::io::Result<String> {
    let answer = |State(upstream): State<Arc<Mutex<Upstream>>>, prompt: Bytes| async move {
        let guessed = guess(&prompt);
        let took = (guessed as f64 * 2_f64.powf(fastrand::f64() * 2.0 - 1.0)).round() as u64;
        lock(&upstream).arrive(guessed, took);
        tokio::time::sleep(Duration::from_millis(200)).await;
        lock(&upstream).guessed -= guessed;
        json!({ "text": "..", "usage": { "total_tokens": took } }).to_string()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let host = listener.local_addr()?.to_string();
    let router = Router::new().route("/", post(answer)).with_state(upstream);
    tokio::spawn(async { axum::serve(listener, router).await });
    Ok(host)
}

impl Upstream {
    fn arrive(&mut self, guessed: u64, took: u64) {
        // It was booked while the one before it waited for its slot: what was under way then may be settled by now.
        let before = self.arrivals.last().map_or(0, |last| last.under_way);
        self.guessed += guessed;
        let unsettled = self.guessed.max(before + guessed);
        self.arrivals.push(Arrival { at: Instant::now(), took, under_way: self.guessed, unsettled });
    }

    /// The most in any window, and what part of the limits was used.
    fn report(&self, requests: &Limit, tokens: &Limit, windows: u32) {
        let (mut window, mut most, mut over) = (VecDeque::<&Arrival>::new(), (0, 0), (0, 0));
        for next in &self.arrivals {
            window.push_back(next);
            window.retain(|arrival| next.at - arrival.at < tokens.window());
            let sum = window.iter().map(|arrival| arrival.took).sum::<u64>();
            let guessed = window.iter().map(|arrival| arrival.unsettled).max().unwrap_or(0);
            most = (most.0.max(window.len()), most.1.max(sum));
            over = over.max((sum.saturating_sub(tokens.max()), guessed));
        }
        let Some(first) = self.arrivals.first() else { return };
        let run = tokens.window() * windows;
        let counted = self.arrivals.iter().filter(|arrival| arrival.at - first.at < run);
        let (calls, sum) = counted.fold((0, 0), |(calls, sum), arrival| (calls + 1, sum + arrival.took));
        let used = |sum: u64, limit: &Limit| sum as f64 / (f64::from(windows) * limit.max() as f64);

        println!("{} calls under {requests} and {tokens}, in {windows} windows", self.arrivals.len());
        println!("most in any window: {} requests, {} tokens", most.0, most.1);
        println!(
            "over by {} tokens at most, in a window with up to {} guessed and not settled",
            over.0, over.1
        );
        println!(
            "used: {:.3} of the requests, {:.3} of the tokens",
            used(calls, requests),
            used(sum, tokens)
        );
    }
}
