//! What one call can choose: how long it waits, what it costs, who goes first, whose quota it takes, and what
//! becomes of it if the upstream refuses. And how to read the error. The API here may be asked 5 times a second;
//! its `/busy` always answers 429. Takes four seconds.
//!
//! ```text
//! cargo run --example per_call
//! ```
#![allow(clippy::disallowed_methods, reason = "a deadline is a moment on the real clock")]

use std::{error::Error, time::Duration};

use axum::{Router, http::StatusCode, routing::get};
use tokio::{net::TcpListener, time::Instant};
use tollgate::{Priority, Provider, RequestBuilderExt, Toll, Tollgate, reqwest};
use tollgate::{reqwest::Response, reqwest_middleware::Result};

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let host = listener.local_addr()?.to_string();
    let busy = get((StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")]));
    let app = Router::new().route("/", get("fine")).route("/busy", busy);
    tokio::spawn(async { axum::serve(listener, app).await });

    let tollgate = Tollgate::builder()
        .provider(Provider::new("acme").hosts([&host]).limit("5/s unpaced".parse()?))
        .provider(Provider::new("reports").limit("1/min".parse()?))
        .build()?;
    let http = tollgate.client(reqwest::Client::builder().no_proxy())?;
    let (url, two) = (format!("http://{host}/"), Duration::from_secs(2));

    tell("wait: the default", http.get(&url).send().await);
    tell("cost(4)", http.get(&url).cost("requests", 4).send().await);
    tell("or_reject", http.get(&url).or_reject().send().await);
    tell("wait_at_most 10 ms", http.get(&url).wait_at_most(Duration::from_millis(10)).send().await);
    tell("deadline in 2 s", http.get(&url).deadline(Instant::now() + two).cost("requests", 5).send().await);
    tokio::join!(
        async {
            tell("asked first, Low", http.get(&url).priority(Priority::Low).cost("requests", 5).send().await)
        },
        async {
            tell(
                "asked second, High",
                http.get(&url).priority(Priority::High).cost("requests", 5).send().await,
            )
        },
    );
    tell("cost(6)", http.get(&url).cost("requests", 6).send().await);
    tell("provider(\"reports\")", http.get(&url).provider("reports").send().await);
    tell("no_resend to /busy", http.get(format!("{url}busy")).no_resend().send().await);
    tell("nobody listens", http.get("http://127.0.0.1:1/").send().await);
    Ok(())
}

fn tell(what: &str, answer: Result<Response>) {
    let outcome = match (&answer, answer.as_ref().err().and_then(|error| tollgate::Error::find(error))) {
        (Ok(response), _) => match Toll::of(response) {
            Some(toll) => format!("{}, {:?} left, {:?}", response.status(), toll.remaining(), toll.waited()),
            None => format!("{}, no provider's", response.status()),
        },
        (_, Some(ours)) if ours.is_rejected() => format!("not now, again in {:?}", ours.retry_after()),
        (_, Some(ours)) => format!("not at all: {ours}"),
        (Err(error), None) => format!("the request itself failed: {error}"),
    };
    println!("{what:20} {outcome}");
}
