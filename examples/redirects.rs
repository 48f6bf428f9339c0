//! A redirect is a request more on the wire, so each hop takes a permit of its own. The API here moved `/old` to
//! `/new` and may be asked 3 times a minute. Two calls that would not wait: the second has a permit for its first
//! request and none for the hop. Booked ahead, both or none; with redirects off, there is no hop.
//!
//! ```text
//! cargo run --example redirects
//! ```

use std::{error::Error, sync::atomic::AtomicU64, sync::atomic::Ordering::Relaxed};

use axum::{Router, response::Redirect, routing::get};
use tokio::net::TcpListener;
use tollgate::reqwest::{self, redirect::Policy};
use tollgate::{Provider, RequestBuilderExt, Toll, Tollgate};

static ASKED: AtomicU64 = AtomicU64::new(0);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let host = listener.local_addr()?.to_string();
    let old = || async {
        ASKED.fetch_add(1, Relaxed);
        Redirect::temporary("/new")
    };
    let new = || async { ASKED.fetch_add(1, Relaxed).to_string() };
    let app = Router::new().route("/old", get(old)).route("/new", get(new));
    tokio::spawn(async { axum::serve(listener, app).await });

    for (title, ahead, policy) in [
        ("Each hop as it comes", 0, Policy::default()),
        ("One hop booked ahead: Provider::redirects(1)", 1, Policy::default()),
        ("client_with(.., Policy::none())", 0, Policy::none()),
    ] {
        println!("{title}");
        let provider = Provider::new("acme").hosts([&host]).limit("3/min".parse()?).redirects(ahead);
        let tollgate = Tollgate::builder().provider(provider).build()?;
        let http = tollgate.client_with(reqwest::Client::builder().no_proxy(), policy)?;
        for _ in 0..2 {
            let before = ASKED.load(Relaxed);
            let outcome = match http.get(format!("http://{host}/old")).or_reject().send().await {
                Ok(response) => {
                    let hops = Toll::of(&response).map(Toll::hops);
                    format!("{} at {}, hops: {hops:?}", response.status(), response.url().path())
                }
                Err(error) => error.to_string(),
            };
            println!("  {} on the wire: {outcome}", ASKED.load(Relaxed) - before);
        }
    }
    Ok(())
}
