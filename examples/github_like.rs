//! An upstream with a limit that nobody told us of: like GitHub's secondary one it answers 429 with `Retry-After: 1`
//! in mid-load, and whoever goes on meanwhile makes it worse. Here the 40th of 100 requests is refused. All calls
//! stop, then go on evenly, and the refused one is sent again: nobody sees an error.
//!
//! ```text
//! cargo run --release --example github_like
//! ```
#![allow(clippy::disallowed_methods, reason = "shows when requests arrive")]

use std::{error::Error, sync::Arc, sync::Mutex, sync::PoisonError, time::Duration, time::Instant};

use axum::{Router, http::StatusCode, routing::get};
use tokio::{net::TcpListener, task::JoinSet};
use tollgate::{Provider, Tollgate, reqwest};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let host = listener.local_addr()?.to_string();
    let arrivals: Arc<Mutex<Vec<(Instant, bool)>>> = Arc::default();
    let log = arrivals.clone();
    let answer = move || async move {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let closed = log.get(39).is_some_and(|(time, _)| now - *time < Duration::from_secs(1));
        let refused = log.len() == 39 || closed;
        log.push((now, refused));
        let status = if refused { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
        (status, [("retry-after", "1")])
    };
    tokio::spawn(async { axum::serve(listener, Router::new().route("/", get(answer))).await });

    let provider = Provider::new("github").hosts([&host]).limit("50/s burst 5".parse()?);
    let tollgate = Tollgate::builder().provider(provider).build()?;
    let http = tollgate.client(reqwest::Client::builder().no_proxy())?;
    let start = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        calls.spawn(http.get(format!("http://{host}/")).send());
    }
    let mut accepted = 0;
    while let Some(response) = calls.join_next().await {
        accepted += u32::from(response??.status().is_success());
    }

    println!("arrivals per 100 ms: . accepted, x refused");
    let arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    for tenth in 0..=start.elapsed().as_millis() / 100 {
        let here = arrivals.iter().filter(|(time, _)| (*time - start).as_millis() / 100 == tenth);
        let marks: String = here.map(|(_, refused)| if *refused { 'x' } else { '.' }).collect();
        println!("{:>4} ms  {marks}", tenth * 100);
    }
    println!("{accepted} of 100 calls accepted, {} requests", arrivals.len());
    Ok(())
}
