//! An answer that has ended keeps its place in flight: it had no body, failed, was thrown away or refused.
#![cfg(feature = "middleware")]

#[path = "support/handed.rs"]
mod handed;
#[path = "support/hops.rs"]
mod hops;
#[path = "support/remote.rs"]
mod remote;
#[path = "support/mod.rs"]
mod support;

use std::{
    io::{self, Read, Write},
    net::TcpListener,
    sync::Mutex,
    time::Duration,
};

use handed::{answer, client, fed, free};
use hops::{Abandon, Mock, abandon};
use http::Response;
use remote::Remote;
use support::Watch;
use tollgate::{RequestBuilderExt, Toll, reqwest::Body};

const LIMITS: &[&str] = &["1 in flight lease 1s"];

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[tokio::test(start_paused = true)]
async fn when_it_has_no_body() {
    let answers: [fn() -> Response<Body>; 3] =
        [|| answer(204, ""), || answer(200, ""), || answer(304, Body::from(Vec::new()))];
    for of in answers {
        let (_tollgate, limiter, http) = client(&Remote::here(), LIMITS, move |_| of());
        let response = http.get(handed::URL).send().await.expect("an answer");
        assert_eq!(free(&limiter).await, 1, "{}", response.status());
    }
}

#[tokio::test(start_paused = true)]
async fn when_its_last_byte_has_come() {
    let (_tollgate, limiter, http) = client(&Remote::here(), LIMITS, |_| answer(200, "all"));
    let mut response = http.get(handed::URL).send().await.expect("an answer");
    assert_eq!(free(&limiter).await, 0);
    assert_eq!(response.chunk().await.expect("a chunk").as_deref(), Some(&b"all"[..]));
    // It has said how long it is: nobody need ask whether there is more.
    assert_eq!(free(&limiter).await, 1);
    drop(response);
    assert_eq!(free(&limiter).await, 1);
}

#[tokio::test(start_paused = true)]
async fn when_its_body_fails() {
    let (feed, body) = fed();
    let body = Mutex::new(Some(body));
    let take = move |_: &str| answer(200, body.lock().expect("no panic").take().expect("asked once"));
    let (_tollgate, limiter, http) = client(&Remote::here(), LIMITS, take);
    let mut response = http.get(handed::URL).send().await.expect("an answer");
    feed.send(Ok("some")).expect("it is read");
    feed.send(Err(io::Error::other("cut"))).expect("it is read");
    response.chunk().await.expect("a chunk");
    assert_eq!(free(&limiter).await, 0);
    response.chunk().await.expect_err("it was cut");
    assert_eq!(free(&limiter).await, 1);
}

#[tokio::test(start_paused = true)]
async fn when_nobody_wants_it() {
    for read in [0, 1, 2] {
        let (feed, body) = fed();
        let body = Mutex::new(Some(body));
        let take = move |_: &str| answer(200, body.lock().expect("no panic").take().expect("asked once"));
        let (_tollgate, limiter, http) = client(&Remote::here(), LIMITS, take);
        let mut response = http.get(handed::URL).send().await.expect("an answer");
        for chunk in ["one", "two"].iter().take(read) {
            feed.send(Ok(chunk)).expect("it is read");
            response.chunk().await.expect("a chunk");
        }
        assert_eq!(free(&limiter).await, 0);
        drop(response);
        assert_eq!(free(&limiter).await, 1, "after {read}");
    }
}

/// It waits out the pause without its place, and is sent again.
#[tokio::test(start_paused = true)]
async fn when_it_was_refused() {
    for (store, redirects) in [(Remote::here(), 0), (Remote::new(ms(1)), 0), (Remote::new(ms(1)), 2)] {
        let provider =
            hops::provider("acme", "2 in flight lease 1s").hosts(["acme.test"]).redirects(redirects);
        let (tollgate, limiter) = store.replica_of(provider, &["10/min"]);
        let http = Mock::new().refuses_for(10).refuses_for(10).inside(&tollgate);
        let time = Watch::start();
        let call = tokio::spawn(http.get(handed::URL).send());
        for at in [5, 15] {
            tokio::time::sleep(Duration::from_secs(at) - time.read()).await;
            assert_eq!(free(&limiter).await, 2, "{redirects} redirects, {at} s");
        }
        let response = call.await.expect("no panic").expect("the third");
        assert_eq!(Toll::of(&response).expect("ours").attempts(), 3);
        assert_eq!(free(&limiter).await, 1);
        drop(response);
        tokio::time::sleep(ms(3)).await;
        assert_eq!(free(&limiter).await, 2);
    }
}

/// The refusal is the answer: it is in flight until it is read, like any other.
#[tokio::test(start_paused = true)]
async fn when_it_is_returned_as_a_refusal() {
    let (tollgate, limiter) =
        Remote::here().replica_of(hops::provider("acme", LIMITS[0]).hosts(["acme.test"]), &[]);
    let http = Mock::new().refuses_for(10).inside(&tollgate);
    let response = http.get(handed::URL).no_resend().send().await.expect("the refusal");
    assert_eq!((response.status().as_u16(), free(&limiter).await), (429, 0));
    assert_eq!(response.text().await.expect("a text"), "too fast");
    assert_eq!(free(&limiter).await, 1);
}

/// Nothing was sent: its place is free, and its permit back.
#[tokio::test]
async fn when_nobody_answers() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    for redirects in [0, 1] {
        let provider = hops::provider("acme", LIMITS[0]).hosts(["127.0.0.1"]).redirects(redirects);
        let (tollgate, limiter) = Remote::here().replica_of(provider, &["5/h"]);
        let http = hops::client(&tollgate);
        for _ in 0..3 {
            http.get(format!("http://127.0.0.1:{port}/")).send().await.expect_err("nobody is there");
            hops::eventually(async || {
                let look = limiter.peek().await.expect("in memory");
                look.limits[0].left == 1 && look.limits[1].left == 5
            })
            .await;
        }
    }
}

/// At every point a caller may lose interest; with a place free, behind one that flies, and between two attempts.
#[tokio::test(start_paused = true)]
async fn when_its_call_is_dropped() {
    let stores = [Remote::here, || Remote::new(ms(0)), || Remote::new(ms(2))];
    for (store, full, refused) in [
        (0, false, false),
        (1, false, true),
        (2, false, false),
        (2, false, true),
        (0, true, false),
        (1, true, true),
        (2, true, false),
    ] {
        for when in [Abandon::AtOnce, Abandon::Woken] {
            for polls in 0.. {
                let store = stores[store]();
                let limits = ["1 in flight", "1000/min unpaced guard 0"];
                let provider = || tollgate::Provider::new("acme").hosts(["acme.test"]);
                let ((tollgate, _), (_b, b)) =
                    (store.replica_of(provider(), &limits), store.another().replica_of(provider(), &limits));
                tokio::time::sleep(ms(20)).await;
                let mock = Mock::new().polls(4);
                let http = if refused { mock.refuses_for(1) } else { mock }.inside(&tollgate);
                let holds = if full { Some(b.acquire().await.expect("free")) } else { None };
                let call = async move {
                    let response = http.get(handed::URL).send().await.expect("an answer");
                    response.text().await
                };
                let call = tokio::spawn(abandon(call, when(polls)));
                tokio::time::sleep(ms(20)).await;
                drop(holds);
                let done = call.await.expect("no panic").is_some();
                // Also a permit that was exchanged for it goes back, as soon as there is no pause.
                tokio::time::sleep(ms(1_100)).await;
                let point = format!("{store:?}, full {full}, refused {refused}, {:?}, {done}", when(polls));
                assert_eq!(free(&b).await, 1, "{point}");
                b.acquire().or_reject().await.unwrap_or_else(|error| panic!("{error}: {point}"));
                if done {
                    assert!(polls >= 4, "{point}: nothing was tested");
                    break;
                }
            }
        }
    }
}

/// Over a network. What a server says by its bytes alone: no body by the method and by the status, one that ends too
/// early, and one that ends with its connection.
#[tokio::test]
async fn over_a_network() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut request = [0; 4096];
            let read = stream.read(&mut request).expect("a request");
            let text = String::from_utf8_lossy(&request[..read]).into_owned();
            let answer: &[u8] = match text.split(' ').nth(1) {
                Some("/none") => b"HTTP/1.1 204 No Content\r\n\r\n",
                Some("/length") => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345",
                Some("/cut") => b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n12345",
                _ => b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n12345",
            };
            // Closed after each: none is used again.
            stream.write_all(answer).expect("it is read");
        }
    });
    let (tollgate, limiter) =
        Remote::here().replica_of(hops::provider("acme", "1 in flight").hosts(["127.0.0.1"]), &[]);
    let http = hops::client(&tollgate);
    let url = |path: &str| format!("http://{address}{path}");
    let freed = async || hops::eventually(async || free(&limiter).await == 1).await;
    let without = [http.head(url("/length")), http.get(url("/none")), http.head(url("/cut"))];
    for call in without {
        let _response = call.send().await.expect("an answer");
        freed().await;
    }
    for path in ["/length", "/close"] {
        let mut response = http.get(url(path)).send().await.expect("an answer");
        assert_eq!(free(&limiter).await, 0, "{path}");
        while response.chunk().await.expect("a chunk").is_some() {}
        freed().await;
    }
    let mut response = http.get(url("/cut")).send().await.expect("an answer");
    response.chunk().await.expect("what there is");
    assert_eq!(free(&limiter).await, 0);
    response.chunk().await.expect_err("more was promised");
    freed().await;
    drop(http.get(url("/length")).send().await.expect("an answer"));
    freed().await;
}
