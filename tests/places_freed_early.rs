//! A place in flight is free although its call has not ended: its answer is not read to its end, or takes longer than
//! the lease.
#![cfg(feature = "middleware")]

#[path = "support/handed.rs"]
mod handed;
#[path = "support/remote.rs"]
mod remote;
#[path = "support/mod.rs"]
mod support;

use std::{sync::Mutex, time::Duration};

use handed::{Feed, answer, client, fed, free};
use remote::Remote;
use support::Watch;
use tollgate::{Limiter, RequestBuilderExt, Toll, reqwest, reqwest_middleware::ClientWithMiddleware};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// One request whose answer has begun, and the other end of its body.
async fn begun(limits: &[&str]) -> (impl Sized, Limiter, ClientWithMiddleware, reqwest::Response, Feed) {
    let (feed, body) = fed();
    let first = Mutex::new(Some(body));
    let answers = move |_: &str| match first.lock().expect("no panic").take() {
        Some(body) => answer(200, body),
        None => answer(200, "fine"),
    };
    let (tollgate, limiter, http) = client(&Remote::here(), limits, answers);
    let response = http.get(handed::URL).send().await.expect("an answer");
    (tollgate, limiter, http, response, feed)
}

#[tokio::test(start_paused = true)]
async fn while_its_body_is_read() {
    let (_tollgate, limiter, http, mut response, feed) = begun(&["1 in flight"]).await;
    assert_eq!(free(&limiter).await, 0);
    for chunk in ["one", "two"] {
        feed.send(Ok(chunk)).expect("it is read");
        assert_eq!(response.chunk().await.expect("a chunk").as_deref(), Some(chunk.as_bytes()));
        assert_eq!(free(&limiter).await, 0, "after {chunk}");
    }
    // Nothing comes, for longer than a lease.
    tokio::time::timeout(Duration::from_secs(100), response.chunk()).await.expect_err("nothing comes");
    assert_eq!(free(&limiter).await, 0);
    http.get(handed::URL).or_reject().send().await.expect_err("it flies");
    drop(feed);
    assert_eq!(free(&limiter).await, 0, "nobody has seen the end");
    assert_eq!(response.chunk().await.expect("the end"), None);
    // The response is still there.
    assert_eq!(free(&limiter).await, 1);
    http.get(handed::URL).send().await.expect("the next");
    drop(response);
    assert_eq!(free(&limiter).await, 1);
}

/// Who keeps a response keeps its connection.
#[tokio::test(start_paused = true)]
async fn while_nobody_reads_it() {
    let (_tollgate, limiter, _http, response, feed) = begun(&["2 in flight lease 1s"]).await;
    feed.send(Ok("all of it")).expect("it is there");
    drop(feed);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(free(&limiter).await, 1);
    assert_eq!(response.text().await.expect("a text"), "all of it");
    assert_eq!(free(&limiter).await, 2);
}

#[tokio::test(start_paused = true)]
async fn while_it_is_in_another_task() {
    let (_tollgate, limiter, _http, response, feed) = begun(&["2 in flight"]).await;
    let reads = tokio::spawn(async move {
        tokio::time::sleep(ms(50)).await;
        response.bytes().await.expect("bytes").len()
    });
    tokio::time::sleep(ms(100)).await;
    assert_eq!(free(&limiter).await, 1);
    feed.send(Ok("12345")).expect("it is read");
    drop(feed);
    assert_eq!(reads.await.expect("no panic"), 5);
    assert_eq!(free(&limiter).await, 2);
}

/// Whoever knows the real cost early has not ended the call.
#[tokio::test(start_paused = true)]
async fn when_its_cost_is_settled() {
    let (_tollgate, limiter, _http, response, feed) = begun(&["3 in flight", "100 tokens/min"]).await;
    let toll = Toll::of(&response).expect("ours").clone();
    toll.settle([("tokens", 7), ("calls", 0)]).expect("units");
    assert_eq!(free(&limiter).await, 2);
    assert_eq!(limiter.peek().await.expect("in memory").limits[1].left, 93);
    drop(feed);
    drop(response);
    assert_eq!(free(&limiter).await, 3);
    // The toll lives on.
    toll.settle([("tokens", 0)]).expect("units");
    assert_eq!(free(&limiter).await, 3);
}

/// Nothing else happens meanwhile; a third of the lease after it was told of last, the store is told again.
#[tokio::test(start_paused = true)]
async fn when_it_takes_longer_than_the_lease() {
    let store = Remote::new(ms(1));
    let ((_a, a), (_b, b)) = (
        store.replica(&["1 in flight lease 1500ms"]),
        store.another().replica(&["1 in flight lease 1500ms"]),
    );
    tokio::time::sleep(ms(10)).await;
    let permit = a.acquire().await.expect("free");
    let (time, calls) = (Watch::start(), store.calls());
    let waits = tokio::spawn(async move { b.acquire().await.map(|_| ()) });
    while time.read() < Duration::from_secs(50) {
        tokio::time::sleep(ms(333)).await;
        assert_eq!(free(&a).await, 0, "after {:?}", time.read());
    }
    assert!(!waits.is_finished());
    let calls = store.calls() - calls;
    assert!((98..=101).contains(&calls), "{calls} calls in 50 s");
    drop(permit);
    waits.await.expect("no panic").expect("it was kept to the end");
}

/// The store is out of reach for a while, as long as a lease allows: it is asked twice a second, no more.
#[tokio::test(start_paused = true)]
async fn when_the_store_is_out_of_reach() {
    let store = Remote::new(ms(1));
    let ((_a, a), (_b, b)) =
        (store.replica(&["2 in flight lease 3s"]), store.another().replica(&["2 in flight lease 3s"]));
    tokio::time::sleep(ms(10)).await;
    let permit = a.acquire().await.expect("free");
    for down in [ms(1_700), ms(1_900), ms(2_000)] {
        let calls = store.calls();
        store.out_of_reach(true);
        let error = a.acquire().await.expect_err("out of reach");
        assert!(error.is_store(), "{error}");
        tokio::time::sleep(down).await;
        let most = down.as_millis() as u64 / 500 + 2;
        assert!(store.calls() - calls <= most, "{} calls in {down:?}", store.calls() - calls);
        store.out_of_reach(false);
        for _ in 0..10 {
            tokio::time::sleep(ms(500)).await;
            assert_eq!(free(&b).await, 1, "down for {down:?}");
        }
    }
    // It lands while nobody can be told.
    store.out_of_reach(true);
    a.acquire().await.expect_err("out of reach");
    drop(permit);
    tokio::time::sleep(ms(600)).await;
    assert_eq!(free(&b).await, 1);
    store.out_of_reach(false);
    tokio::time::sleep(ms(600)).await;
    assert_eq!(free(&b).await, 2);
    // For good: it does not ask on and on for what the lease has settled by then.
    let permit = a.acquire().await.expect("free");
    store.out_of_reach(true);
    drop(permit);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let calls = store.calls();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(store.calls(), calls);
    assert_eq!(free(&b).await, 2);
}

/// It was told, but its answer was lost; what it says when it is asked again is of then.
#[tokio::test(start_paused = true)]
async fn when_the_answer_of_the_store_was_lost() {
    let store = Remote::new(ms(2));
    let ((_a, a), (_b, b)) =
        (store.replica(&["2 in flight lease 3s"]), store.another().replica(&["2 in flight lease 3s"]));
    tokio::time::sleep(ms(10)).await;
    let _permit = a.acquire().await.expect("free");
    let calls = store.calls();
    while store.calls() == calls {
        tokio::time::sleep(ms(1)).await;
    }
    tokio::time::sleep(ms(2)).await;
    store.out_of_reach(true);
    tokio::time::sleep(ms(2_100)).await;
    store.out_of_reach(false);
    for at in 0..300 {
        tokio::time::sleep(ms(10)).await;
        assert_eq!(free(&b).await, 1, "{at}");
    }
}
