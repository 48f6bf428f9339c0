//! Errors that are lost in those of others, or taken for what they are not.

#![cfg(feature = "middleware")]

#[path = "support/layers.rs"]
mod stack;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{net::TcpListener, time::Duration};

use stack::{Nothing, ROOMY, bare, broken, ours, retry};
use tollgate::{Error, Reason, RequestBuilderExt, Tollgate};
use upstream::{Canned, URL, Upstream, acme, fine, left, open, plain, provider};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_lost_in_other_errors() {
    let (tollgate, limiter) = acme("1/5s unpaced guard 0");
    let canned = Canned::new(|_, _| broken());
    let stacks = [
        bare().with(tollgate.middleware()),
        bare().with(Nothing).with(tollgate.middleware()).with(Nothing),
        bare().with(retry(0)).with(tollgate.middleware()),
        bare().with(retry(3)).with(retry(3)).with(tollgate.middleware()),
    ];
    limiter.acquire().or_reject().await.expect("there is room");
    for stack in stacks {
        let error = ours(stack.with(canned.clone()).build().get(URL).or_reject().send().await);
        assert!(error.is_rejected() && !error.is_store() && !error.is_impossible(), "{error}");
        assert_eq!((error.provider(), error.retry_after()), ("acme", Some(ms(5_000))));
        let refusal = error.refusal().expect("the store is fine");
        assert_eq!(refusal.reason(), Reason::Limited);
        assert_eq!(refusal.limit().map(ToString::to_string).as_deref(), Some("1/5s unpaced guard 0s"));
    }
    assert!(canned.seen().is_empty());
    // Wrapped once more with the number of its retries: the first attempt was sent.
    tokio::time::sleep(ms(5_000)).await;
    let http = bare().with(retry(3)).with(tollgate.middleware()).with(canned.clone()).build();
    let error = ours(http.get(URL).or_reject().send().await);
    assert!(error.is_rejected(), "{error}");
    assert_eq!(canned.seen().len(), 1);
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_store_that_is_away_is_taken_for_a_limit() {
    let store = || {
        let store = tollgate::RedisStore::new(&format!("redis://127.0.0.1:{}", dead_port())).expect("a URL");
        store.timeout(ms(100))
    };
    let canned = Canned::new(|_, _| fine());
    for retries in [None, Some(2)] {
        let tollgate = Tollgate::builder().store(store()).provider(provider(ROOMY)).build().expect("built");
        let stack = retries.into_iter().fold(bare(), |stack, more| stack.with(retry(more)));
        let http = stack.with(tollgate.middleware()).with(canned.clone()).build();
        for request in [http.get(URL), http.get(URL).or_reject()] {
            let result = request.send().await;
            let text = format!("{:?}", result.as_ref().expect_err("no store"));
            let error = ours(result);
            assert!(error.is_store() && !error.is_rejected() && error.retry_after().is_none(), "{text}");
            assert!(error.refusal().is_none(), "{text}");
            assert_eq!(error.provider(), "acme", "{text}");
        }
    }
    assert!(canned.seen().is_empty(), "nothing is sent without a permit");
}

/// A port at which nobody listens.
fn dead_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn a_plain_error_is_taken_for_ours() {
    let upstream = Upstream::start(|_, _| {
        std::thread::sleep(ms(400));
        fine()
    })
    .await;
    let (tollgate, limiter) = open(provider(ROOMY).hosts(["127.0.0.1"]));
    let client = tollgate.client(plain()).expect("a client");
    let retrying = bare().with(retry(0)).with(tollgate.middleware()).build();
    for (http, shown) in [(&client, "bare"), (&retrying, "under a retry layer")] {
        let before = left(&limiter).await;
        let error =
            http.get(format!("http://127.0.0.1:{}", dead_port())).send().await.expect_err("nobody there");
        assert!(Error::find(&error).is_none(), "{shown}: {error:?}");
        assert!(shown != "bare" || (error.is_connect() && !error.is_timeout()), "{shown}: {error:?}");
        assert_eq!(left(&limiter).await, before, "{shown}: nothing was sent, nothing is charged");

        let request = http.get(&upstream.url).timeout(ms(50));
        let error = request.send().await.expect_err("too slow");
        assert!(Error::find(&error).is_none(), "{shown}: {error:?}");
        assert!(shown != "bare" || (error.is_timeout() && !error.is_connect()), "{shown}: {error:?}");
        assert_eq!(left(&limiter).await, before - 1, "{shown}: it was sent");
    }
}

#[tokio::test]
async fn a_refused_connection_costs_the_next_caller_its_permit() {
    let (tollgate, limiter) = open(provider("1/h unpaced guard 0").hosts(["127.0.0.1"]));
    let upstream = Upstream::start(|_, _| fine()).await;
    let http = tollgate.client(plain()).expect("a client");
    let dead = format!("http://127.0.0.1:{}", dead_port());
    for _ in 0..3 {
        let error = http.get(&dead).send().await.expect_err("nobody there");
        assert!(error.is_connect(), "{error:?}");
        let peek = limiter.peek().await.expect("in memory");
        assert_eq!((peek.limits[0].left, peek.limits[0].next_free), (1, ms(0)));
    }
    http.get(&upstream.url).or_reject().send().await.expect("the permit is there");
    assert_eq!(left(&limiter).await, 0);
}
