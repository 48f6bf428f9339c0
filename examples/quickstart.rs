//! The same requests twice against an API that accepts 20 in any 2 s: with a plain client, and with one that goes
//! through tollgate. Needs nothing but this machine.
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
use tollgate::reqwest_middleware::ClientWithMiddleware;
use tollgate::{Limit, Provider, Tollgate, reqwest};

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
    let (one_api, other_api) = (start_api().await?, start_api().await?);
    let quota = Limit::rolling(QUOTA as u64, WINDOW)?;
    let tollgate =
        Tollgate::builder().provider(Provider::new("acme").hosts([&other_api]).limit(quota)).build()?;
    let plain = reqwest::Client::builder().no_proxy().build()?.into();
    let limited = tollgate.client(reqwest::Client::builder().no_proxy())?;

    println!("{REQUESTS} requests at once, to an API that accepts {QUOTA} in any 2 s (takes about 6 s)\n");
    let bars = MultiProgress::new();
    let (plain, limited) = tokio::try_join!(
        fire(plain, one_api, bar(&bars, "plain")),
        fire(limited, other_api, bar(&bars, "tollgate")),
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

/// Sends all requests at once. Those through tollgate wait for their permits on the way.
async fn fire(http: ClientWithMiddleware, api: String, bar: ProgressBar) -> Result<Outcome, Box<dyn Error>> {
    let start = Instant::now();
    let mut requests = JoinSet::new();
    for _ in 0..REQUESTS {
        requests.spawn(http.get(format!("http://{api}/")).send());
    }
    let mut outcome = Outcome::default();
    while let Some(response) = requests.join_next().await {
        if response??.status().is_success() {
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

/// The API, by its host: remembers when it accepted what, and answers 429 to the rest.
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
    let host = listener.local_addr()?.to_string();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", get(answer))).await });
    Ok(host)
}

fn bar(bars: &MultiProgress, name: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:9} {bar:40} {pos:>2}/{len}  {msg}");
    let bar = ProgressBar::new(REQUESTS).with_prefix(name);
    bars.add(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
}
