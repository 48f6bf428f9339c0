//! The same requests twice against an API that accepts 20 in any 2 s: as they come, and through tollgate.
//! Needs nothing but this machine.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```
#![allow(clippy::disallowed_methods, reason = "shows how long things take")]

use std::{
    collections::VecDeque,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{Router, http::StatusCode, routing::get};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::task::JoinSet;
use tollgate::{Limit, Limiter, Provider, Tollgate};

const REQUESTS: u64 = 60;
const QUOTA: usize = 20;
const WINDOW: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Outcome {
    accepted: u64,
    refused: u64,
    seconds: f64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider = Provider::new("acme").limit(Limit::rolling(QUOTA as u64, WINDOW)?);
    let tollgate = Tollgate::builder().provider(provider).build()?;
    let acme = tollgate.provider("acme")?;

    println!("{REQUESTS} requests at once, to an API that accepts {QUOTA} in any 2 s (takes about 6 s)\n");
    let bars = MultiProgress::new();
    let (plain, limited) = tokio::try_join!(
        fire(None, start_api().await?, bar(&bars, "plain")),
        fire(Some(acme), start_api().await?, bar(&bars, "tollgate")),
    )?;
    tollgate.shutdown().await;

    println!("\n           sent  accepted  refused     time");
    for (name, run) in [("plain", plain), ("tollgate", limited)] {
        let Outcome { accepted, refused, seconds } = run;
        println!("{name:<9}  {:>4}  {accepted:>8}  {refused:>7}  {seconds:>5.1} s", accepted + refused);
    }
    println!(
        "\nThe price is time: under this quota {REQUESTS} requests take at least 4 s, whoever sends them.\n\
         tollgate sends the first {QUOTA} at once and the others evenly spaced. \"{QUOTA} per 2 s unpaced\"\n\
         sends bursts of {QUOTA} and ends a window earlier, where bursts that smear on their way do no harm."
    );
    Ok(())
}

/// Sends all requests at once; those with a limiter wait for their permits.
async fn fire(limiter: Option<Limiter>, url: String, bar: ProgressBar) -> Result<Outcome, Box<dyn Error>> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    let start = Instant::now();
    let mut requests = JoinSet::new();
    for _ in 0..REQUESTS {
        let (limiter, request) = (limiter.clone(), http.get(&url));
        requests.spawn(async move {
            let _permit = match limiter {
                Some(limiter) => Some(limiter.acquire().await?),
                None => None,
            };
            Ok::<_, Box<dyn Error + Send + Sync>>(request.send().await?.status())
        });
    }
    let mut outcome = Outcome::default();
    while let Some(status) = requests.join_next().await {
        if status?.map_err(|error| error as Box<dyn Error>)?.is_success() {
            outcome.accepted += 1;
        } else {
            outcome.refused += 1;
        }
        bar.set_message(format!("{} accepted, {} refused", outcome.accepted, outcome.refused));
        bar.inc(1);
    }
    bar.abandon();
    outcome.seconds = start.elapsed().as_secs_f64();
    Ok(outcome)
}

/// The API: remembers when it accepted what, and answers 429 to the rest.
async fn start_api() -> std::io::Result<String> {
    let accepted: Arc<Mutex<VecDeque<Instant>>> = Arc::default();
    let answer = move || async move {
        let mut accepted = accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.retain(|time| time.elapsed() < WINDOW);
        if accepted.len() >= QUOTA {
            return StatusCode::TOO_MANY_REQUESTS;
        }
        accepted.push_back(Instant::now());
        StatusCode::OK
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(answer))).await });
    Ok(url)
}

fn bar(bars: &MultiProgress, name: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:9} {bar:40} {pos:>2}/{len}  {msg}");
    let bar = ProgressBar::new(REQUESTS).with_prefix(name);
    bars.add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
}
