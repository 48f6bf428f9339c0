//! A client that has layers already: where the tollgate goes. Layers added earlier are outside. Retries belong
//! outside, where each attempt takes a permit; inside, one permit covers them all and the quota is exceeded. The
//! API here fails twice before each success, and counts what it was asked.
//!
//! ```text
//! cargo run --example existing_client
//! ```

use std::{error::Error, sync::atomic::AtomicU64, sync::atomic::Ordering::Relaxed, time::Duration};

use axum::{Router, http::StatusCode, routing::get};
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
use tokio::net::TcpListener;
use tollgate::{Provider, Tollgate, reqwest, reqwest_middleware::ClientBuilder};

static ASKED: AtomicU64 = AtomicU64::new(0);

async fn answer() -> StatusCode {
    let asked = ASKED.fetch_add(1, Relaxed) + 1;
    if asked.is_multiple_of(3) { StatusCode::OK } else { StatusCode::BAD_GATEWAY }
}

fn retries() -> RetryTransientMiddleware<ExponentialBackoff> {
    let wait = Duration::from_millis(10);
    let policy = ExponentialBackoff::builder().retry_bounds(wait, wait).build_with_max_retries(3);
    RetryTransientMiddleware::new_with_policy(policy)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let host = listener.local_addr()?.to_string();
    tokio::spawn(async { axum::serve(listener, Router::new().route("/", get(answer))).await });

    for order in ["retries outside: right", "retries inside: WRONG", "tollgate twice"] {
        let provider = Provider::new("acme").hosts([&host]).limit("100/min".parse()?);
        let tollgate = Tollgate::builder().provider(provider).build()?;
        // What sends by itself is charged (redirects) or switched off (reqwest's own retries).
        let inside = reqwest::Client::builder()
            .no_proxy()
            .redirect(tollgate.redirect(reqwest::redirect::Policy::default()))
            .retry(reqwest::retry::never())
            .build()?;
        let stack = ClientBuilder::new(inside);
        let stack = match order {
            "retries outside: right" => stack.with(retries()).with(tollgate.middleware()),
            "retries inside: WRONG" => stack.with(tollgate.middleware()).with(retries()),
            _ => stack.with(retries()).with(tollgate.middleware()).with(tollgate.middleware()),
        };
        let before = ASKED.load(Relaxed);
        let status = stack.build().get(format!("http://{host}/")).send().await?.status();
        let sent = ASKED.load(Relaxed) - before;
        let charged = 100 - tollgate.provider("acme")?.peek().await?.limits[0].left;
        println!("{order:24} {status}, {sent} requests on the wire, {charged} charged");
    }
    Ok(())
}
