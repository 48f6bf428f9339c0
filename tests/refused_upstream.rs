//! An upstream refuses: everybody stops for as long as it says, and what may be sent again is, no sooner and no
//! more often than that.

#![cfg(feature = "middleware")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::http::Method;
use support::Watch;
use tollgate::{
    Error, Reason, RequestBuilderExt, Toll,
    reqwest::{Body, Response},
    reqwest_middleware::RequestBuilder,
};
use upstream::{
    Canned, URL, Upstream, acme, after, answer, fine, left, open, paused, plain, provider, refuse,
};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn attempts(response: &Response) -> u32 {
    Toll::of(response).expect("it went through a gate").attempts()
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_sent_again_after_exactly_the_hint() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(after(1, "2"));
    let http = canned.behind(&tollgate);
    let request =
        http.put(URL).header("x-token", "mine").header("content-type", "text/plain").body("a thing");
    let response = request.send().await.expect("accepted");
    assert_eq!(response.status(), 200);
    let toll = Toll::of(&response).expect("it went through a gate").clone();
    assert_eq!((toll.attempts(), toll.waited(), toll.hops()), (2, ms(2_000), 0));
    assert_eq!(response.text().await.expect("a body"), "fine");

    let seen = canned.seen();
    assert_eq!(canned.times(), [ms(0), ms(2_000)]);
    for seen in &seen {
        assert_eq!((&seen.method, &*seen.path), (&Method::PUT, "/things"));
        assert_eq!(seen.body.as_deref(), Some(&b"a thing"[..]));
        assert_eq!(seen.headers["x-token"], "mine");
    }
    assert_eq!(seen[0].headers, seen[1].headers);
    assert_eq!(left(&limiter).await, 998, "each attempt is charged");
    assert_eq!(limiter.counts().refusals, 1);
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_done_is_done_twice() {
    // 429 means that it was not processed; 503 does not, so only what is idempotent is sent again.
    for (method, status, sent) in [
        (Method::GET, 429, 2),
        (Method::POST, 429, 2),
        (Method::PATCH, 429, 2),
        (Method::GET, 503, 2),
        (Method::HEAD, 503, 2),
        (Method::PUT, 503, 2),
        (Method::DELETE, 503, 2),
        (Method::POST, 503, 1),
        (Method::PATCH, 503, 1),
    ] {
        let (tollgate, limiter) = acme("1000/h unpaced guard 0");
        let canned = Canned::new(move |at, _| if at == 0 { refuse(status, "2") } else { fine() });
        let request = canned.behind(&tollgate).request(method.clone(), URL).body("a thing");
        let response = request.send().await.expect("answered");
        let shown = format!("{method} under {status}");
        assert_eq!(attempts(&response), sent, "{shown}");
        assert_eq!(response.status(), if sent == 2 { 200 } else { status }, "{shown}");
        assert!(canned.seen().iter().all(|seen| seen.body.as_deref() == Some(b"a thing")), "{shown}");
        assert_eq!(left(&limiter).await, 1_000 - u64::from(sent), "{shown}");
        assert_eq!(limiter.counts().refusals, 1, "{shown}");
        match sent {
            1 => assert_eq!(paused(&limiter).await, Some(ms(2_000)), "{shown}"),
            _ => assert_eq!(canned.times(), [ms(0), ms(2_000)], "{shown}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_broken_is_taken_for_a_refusal() {
    for (status, hint) in
        [(503, None), (503, Some("soon")), (500, Some("2")), (502, Some("2")), (403, Some("2"))]
    {
        let (tollgate, limiter) = acme("1000/h unpaced guard 0");
        let headers: Vec<_> = hint.iter().map(|hint| ("retry-after", *hint)).collect();
        let broken = answer(status, &headers, "");
        let canned = Canned::new(move |_, _| broken.clone());
        let response = canned.behind(&tollgate).get(URL).send().await.expect("answered");
        assert_eq!((response.status().as_u16(), attempts(&response)), (status, 1), "{hint:?}");
        assert_eq!(paused(&limiter).await, None, "{status} {hint:?}");
        assert_eq!(limiter.counts().refusals, 0, "{status} {hint:?}");
    }
}

#[tokio::test]
async fn a_refused_post_is_lost_or_garbled_on_the_wire() {
    let upstream = Upstream::start(after(1, "0.2")).await;
    let provider = provider("1000/h unpaced").hosts(["127.0.0.1"]);
    let (tollgate, limiter) = open(provider);
    let http = tollgate.client(plain()).expect("a client");
    let thing = serde_json::json!({ "name": "a thing", "size": 3 });
    let request = http.post(format!("{}/things", upstream.url)).bearer_auth("mine").json(&thing);
    let response = request.send().await.expect("accepted");
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    assert_eq!(response.text().await.expect("a body"), "fine");

    let seen = upstream.seen();
    assert_eq!(seen.len(), 2);
    for seen in &seen {
        assert_eq!((&seen.method, &*seen.path), (&Method::POST, "/things"));
        assert_eq!(seen.headers["content-type"], "application/json");
        assert_eq!(seen.headers["authorization"], "Bearer mine");
        let body = seen.body.as_deref().expect("a body");
        assert_eq!(serde_json::from_slice::<serde_json::Value>(body).expect("JSON"), thing);
    }
    // On the real clock: from answer to answer it is at least the hint.
    assert!(seen[1].at - seen[0].at >= ms(200), "{:?}", seen[1].at - seen[0].at);
    assert_eq!(left(&limiter).await, 998);
}

#[tokio::test]
async fn a_post_that_was_done_and_led_elsewhere_is_done_twice() {
    // The POST itself was accepted; only the GET that it leads to is refused, and that may go again.
    for (redirect, posts) in [(302, 1), (303, 1), (307, 2), (308, 2)] {
        let upstream = Upstream::start(move |at, seen| match (at, &*seen.path) {
            (_, "/things") => answer(redirect, &[("location", "/things/1")], ""),
            (1, _) => refuse(429, "0.1"),
            _ => fine(),
        })
        .await;
        let (tollgate, limiter) = open(provider("1000/h unpaced").hosts(["127.0.0.1"]));
        let http = tollgate.client(plain()).expect("a client");
        let response = http.post(format!("{}/things", upstream.url)).body("a thing").send().await;
        let status = response.expect("answered").status();
        let sent = upstream.seen().iter().filter(|seen| seen.path == "/things").count();
        assert_eq!((status.as_u16(), sent), (if posts == 2 { 200 } else { 429 }, posts), "{redirect}");
        assert_eq!(left(&limiter).await, 1_000 - upstream.seen().len() as u64, "{redirect}");
    }
}

/// A body of three pieces that counts how many of them were asked for.
fn stream(asked: &Arc<AtomicUsize>) -> Body {
    let asked = asked.clone();
    let pieces = futures_util::stream::iter(["one ", "two ", "three"]);
    Body::wrap_stream(futures_util::StreamExt::map(pieces, move |piece| {
        asked.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(piece)
    }))
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_buffered_to_be_sent_again() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(after(1, "2"));
    let asked = Arc::new(AtomicUsize::new(0));
    let response = canned.behind(&tollgate).post(URL).body(stream(&asked)).send().await.expect("answered");
    assert_eq!((response.status().as_u16(), attempts(&response)), (429, 1));
    assert_eq!(response.headers()["retry-after"], "2");
    assert_eq!(response.text().await.expect("a body"), "too fast");
    assert_eq!(asked.load(Ordering::Relaxed), 0, "the layer inside did not read it");
    assert_eq!(canned.times(), [ms(0)]);
    assert_eq!((paused(&limiter).await, left(&limiter).await), (Some(ms(2_000)), 999));
}

#[tokio::test]
async fn a_stream_is_cut_or_repeated_on_the_wire() {
    let upstream = Upstream::start(after(1, "0.2")).await;
    let (tollgate, limiter) = open(provider("1000/h unpaced").hosts(["127.0.0.1"]));
    let http = tollgate.client(plain()).expect("a client");
    let asked = Arc::new(AtomicUsize::new(0));
    let response = http.post(&upstream.url).body(stream(&asked)).send().await.expect("answered");
    assert_eq!((response.status().as_u16(), attempts(&response)), (429, 1));
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert!(paused(&limiter).await.is_some());
    let seen = upstream.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].body.as_deref(), Some(&b"one two three"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_wants_no_second_attempt_gets_one() {
    type Choose = fn(RequestBuilder) -> RequestBuilder;
    let keep: Choose = |request| request;
    for (shown, choose, attempts_of_provider) in [
        ("or_reject", (|request| request.or_reject()) as Choose, 3),
        ("no_resend", |request| request.no_resend(), 3),
        ("attempts(1)", keep, 1),
        ("attempts(0)", keep, 0),
    ] {
        let (tollgate, limiter) = open(provider("1000/h unpaced guard 0").attempts(attempts_of_provider));
        let canned = Canned::new(after(1, "2"));
        let http = canned.behind(&tollgate);
        let watch = Watch::start();
        let response = choose(http.get(URL)).send().await.expect("answered");
        assert_eq!((response.status().as_u16(), attempts(&response)), (429, 1), "{shown}");
        assert_eq!(response.headers()["retry-after"], "2", "{shown}");
        assert_eq!(response.text().await.expect("a body"), "too fast", "{shown}");
        assert_eq!(watch.read(), ms(0), "{shown}");
        assert_eq!(paused(&limiter).await, Some(ms(2_000)), "{shown}");

        tokio::time::sleep(ms(500)).await;
        let error = http.get(URL).or_reject().send().await.expect_err("paused");
        let error = Error::find(&error).expect("ours");
        assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Paused), "{shown}");
        assert_eq!(error.retry_after(), Some(ms(1_500)), "{shown}");
        assert_eq!(canned.seen().len(), 1, "{shown}: nothing was sent");
        assert_eq!(left(&limiter).await, 999, "{shown}: nothing was charged");
        tokio::time::sleep(ms(1_500)).await;
        http.get(URL).or_reject().send().await.expect("the pause is over");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_always_refuses_is_asked_without_end() {
    for attempts_of_provider in [None, Some(2), Some(5)] {
        let provider = provider("1000/h unpaced guard 0");
        let sent = attempts_of_provider.unwrap_or(3);
        let provider =
            attempts_of_provider.into_iter().fold(provider, |provider, most| provider.attempts(most));
        let (tollgate, limiter) = open(provider);
        let canned = Canned::new(|at, _| answer(429, &[("retry-after", "2")], &format!("refusal {at}")));
        let response = canned.behind(&tollgate).get(URL).send().await.expect("answered");
        assert_eq!((response.status().as_u16(), attempts(&response)), (429, sent));
        assert_eq!(response.headers()["retry-after"], "2");
        assert_eq!(response.text().await.expect("a body"), format!("refusal {}", sent - 1), "the last one");
        let expected: Vec<_> = (0..u64::from(sent)).map(|at| ms(2_000 * at)).collect();
        assert_eq!(canned.times(), expected);
        assert_eq!(left(&limiter).await, 1_000 - u64::from(sent));
        assert_eq!(paused(&limiter).await, Some(ms(2_000)), "also after the last");
        assert_eq!(limiter.counts().refusals, u64::from(sent));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_of_nothing_is_waited_for_or_repeated_without_end() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(|_, _| refuse(429, "0"));
    let response = canned.behind(&tollgate).get(URL).send().await.expect("answered");
    assert_eq!((response.status().as_u16(), attempts(&response)), (429, 3));
    assert_eq!(canned.times(), [ms(0); 3]);
    assert_eq!((paused(&limiter).await, left(&limiter).await), (None, 997));
}

/// Four ways to wait at most 3 s.
/// A provider whose calls wait at most so long, and a call that chooses for itself.
type Bounded = (&'static str, Option<Duration>, fn(RequestBuilder) -> RequestBuilder);

const BOUNDED: [Bounded; 4] = [
    ("wait_at_most", None, |request| request.wait_at_most(ms(3_000))),
    ("deadline", None, |request| request.deadline(in_three_seconds())),
    ("timeout", None, |request| request.timeout(ms(3_000))),
    ("max_wait", Some(Duration::from_secs(3)), |request| request),
];

#[allow(clippy::disallowed_methods)] // The clock under test is tokio's.
fn in_three_seconds() -> tokio::time::Instant {
    tokio::time::Instant::now() + ms(3_000)
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_pause_beyond_its_bound() {
    for (shown, max_wait, choose) in BOUNDED {
        for (hint, times) in [
            // Certain to miss it: at once.
            ("4", &[0][..]),
            ("3.001", &[0]),
            // Just in time, once.
            ("3", &[0, 3_000]),
            // The first pause fits, the second does not.
            ("2", &[0, 2_000]),
            ("1", &[0, 1_000, 2_000]),
        ] {
            let provider = provider("1000/h unpaced guard 0");
            let provider = max_wait.into_iter().fold(provider, |provider, time| provider.max_wait(time));
            let (tollgate, limiter) = open(provider);
            let canned = Canned::new(move |_, _| refuse(429, hint));
            let request = choose(canned.behind(&tollgate).get(URL));
            let watch = Watch::start();
            let response = request.send().await.expect("answered");
            let times: Vec<_> = times.iter().copied().map(ms).collect();
            assert_eq!(response.status(), 429, "{shown} {hint}");
            assert_eq!(canned.times(), times, "{shown} {hint}");
            assert_eq!(Some(&watch.read()), times.last(), "{shown} {hint}: not a moment longer");
            assert_eq!(response.text().await.expect("a body"), "too fast", "{shown} {hint}");
            assert!(paused(&limiter).await.is_some(), "{shown} {hint}");
            assert_eq!(left(&limiter).await, 1_000 - times.len() as u64, "{shown} {hint}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_bound_starts_anew_with_each_attempt() {
    // One second in the queue, two in the pause: together more than the bound.
    let (tollgate, limiter) = acme("1/s unpaced guard 0");
    limiter.acquire().or_reject().await.expect("there is room");
    let canned = Canned::new(after(1, "2"));
    let watch = Watch::start();
    let request = canned.behind(&tollgate).get(URL).wait_at_most(ms(2_999));
    let response = request.send().await.expect("answered");
    assert_eq!((response.status().as_u16(), attempts(&response)), (429, 1));
    assert_eq!(Toll::of(&response).expect("a toll").waited(), ms(1_000));
    assert_eq!(watch.read(), ms(1_000));
}
