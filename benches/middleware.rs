//! What the middleware costs: a request through a tollgate in memory against the same through an empty
//! reqwest-middleware, both on kept-alive connections over loopback, in turns.
//!
//! ```text
//! cargo bench --bench middleware
//! ```
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    error::Error,
    time::{Duration, Instant},
};

use axum::{Router, routing::get};
use tollgate::{Limit, Provider, Tollgate, reqwest, reqwest_middleware::ClientWithMiddleware};

const ROUNDS: usize = 20;
const PAIRS: usize = 2_000;

fn main() -> Result<(), Box<dyn Error>> {
    let url = serve()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(compare(&url))
}

async fn compare(url: &str) -> Result<(), Box<dyn Error>> {
    let builder = || reqwest::Client::builder().http1_only().no_proxy().tcp_nodelay(true);
    let provider = Provider::new("acme").hosts(["127.0.0.1"]).limit(Limit::per_second(10_000_000)?);
    let tollgate = Tollgate::builder().provider(provider).build()?;
    let empty = ClientWithMiddleware::from(builder().build()?);
    let limited = tollgate.client(builder())?;

    println!("{ROUNDS} rounds of {PAIRS} pairs\n\n  empty      tollgate   ratio");
    let mut ratios = Vec::new();
    for round in 0..ROUNDS + 1 {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for pair in 0..PAIRS {
            // Whoever goes second finds the caches warm.
            if pair % 2 == 0 {
                without.push(time(&empty, url).await?);
                with.push(time(&limited, url).await?);
            } else {
                with.push(time(&limited, url).await?);
                without.push(time(&empty, url).await?);
            }
        }
        if round == 0 {
            continue;
        }
        let (without, with) = (median(without), median(with));
        let ratio = with.div_duration_f64(without);
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        println!("{:>7.1} us {:>7.1} us    {ratio:.3}", micros(without), micros(with));
        ratios.push(ratio);
    }
    ratios.sort_by(f64::total_cmp);
    println!("\nmedian ratio {:.3}", (ratios[ROUNDS / 2 - 1] + ratios[ROUNDS / 2]) / 2.0);
    Ok(())
}

/// What the machine does besides hits single requests, not the one in the middle.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn time(http: &ClientWithMiddleware, url: &str) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    http.get(url).send().await?.bytes().await?;
    Ok(start.elapsed())
}

/// A server on a thread of its own.
fn serve() -> Result<String, Box<dyn Error>> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let url = format!("http://{}/", listener.local_addr()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            axum::serve(listener, Router::new().route("/", get(|| async { "ok" }))).await
        })
    });
    Ok(url)
}
