//! An upstream refuses: everybody stops for as long as it says, and what may be sent again is, no sooner and no
//! more often than that.

#![cfg(feature = "middleware")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{
    convert::Infallible,
    future::{Future, IntoFuture},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use axum::http::Method;
use support::Watch;
use tollgate::{
    Error, MemoryStore, Reason, RequestBuilderExt, Toll, Tollgate,
    reqwest::{Body, Response},
    reqwest_middleware::RequestBuilder,
};
#[cfg(feature = "redis")]
use tollgate::{
    ledger::{Answer, Call, Peek},
    store::{Bell, Pending, Quota, Store},
};
use upstream::{
    Canned, Log, URL, Upstream, acme, after, answer, fine, left, open, paused, plain, provider, refuse,
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
async fn others_run_into_a_refusal_that_one_has_seen() {
    let store = Arc::new(MemoryStore::new());
    let replica = || {
        let provider = provider("1000/h unpaced guard 0");
        Tollgate::builder().store(store.clone()).provider(provider).build().expect("built")
    };
    let (one, other) = (replica(), replica());
    let other_limiter = other.provider("acme").expect("there");
    let canned = Canned::new(after(1, "3"));
    let refused = canned.behind(&one).get(URL).no_resend().send().await.expect("answered");
    assert_eq!(refused.status(), 429);

    assert_eq!(paused(&one.provider("acme").expect("there")).await, Some(ms(3_000)));
    assert_eq!(paused(&other_limiter).await, Some(ms(3_000)));
    tokio::time::sleep(ms(1_000)).await;
    for tollgate in [&one, &other] {
        let error = canned.behind(tollgate).get(URL).or_reject().send().await.expect_err("paused");
        let error = Error::find(&error).expect("ours");
        assert_eq!(error.retry_after(), Some(ms(2_000)));
        assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Paused));
    }
    assert_eq!(left(&other_limiter).await, 999, "a refused call is not charged");
    assert_eq!(canned.seen().len(), 1, "nor sent");
    let response = canned.behind(&other).get(URL).send().await.expect("accepted");
    assert_eq!(canned.times()[1..], [ms(3_000)]);
    assert_eq!(Toll::of(&response).expect("a toll").waited(), ms(2_000));
}

#[tokio::test(start_paused = true)]
async fn who_queued_before_the_refusal_flies_into_it() {
    let store = Arc::new(MemoryStore::new());
    let replica = || {
        let provider = provider("2/s unpaced guard 0");
        Tollgate::builder().store(store.clone()).provider(provider).build().expect("built")
    };
    let (one, other) = (replica(), replica());
    // Both permits of this second are used when two more calls queue, one in each replica.
    let canned = Canned::new(after(1, "5")).taking(ms(200));
    let send = |tollgate: &Tollgate| tokio::spawn(canned.behind(tollgate).get(URL).send());
    let first = [send(&one), send(&one)];
    tokio::time::sleep(ms(50)).await;
    let queued = [send(&one), send(&other)];
    for call in first.into_iter().chain(queued) {
        assert_eq!(call.await.expect("no panic").expect("accepted").status(), 200);
    }
    // The answer came at 200 ms; what was to fly at 1 s flies after the pause, and so does the second attempt.
    let times = canned.times();
    assert_eq!(times, [100, 100, 5_300, 5_300, 6_300].map(ms));
}

#[tokio::test(start_paused = true)]
async fn a_later_hint_shortens_the_pause() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(|_, seen| match &*seen.path {
        "/long" => refuse(429, "5"),
        _ => refuse(429, "1"),
    });
    let http = canned.behind(&tollgate);
    // The short hint comes 100 ms later, to a request that was under way.
    let slow = canned.clone().taking(ms(100)).behind(&tollgate);
    let short = tokio::spawn(slow.get("http://acme.test/short").no_resend().send());
    tokio::task::yield_now().await;
    http.get("http://acme.test/long").no_resend().send().await.expect("answered");
    assert_eq!(paused(&limiter).await, Some(ms(5_000)));
    short.await.expect("no panic").expect("answered");
    assert_eq!(paused(&limiter).await, Some(ms(4_900)));
    let error = http.get(URL).or_reject().send().await.expect_err("paused");
    assert_eq!(Error::find(&error).and_then(|error| error.retry_after()), Some(ms(4_900)));
}

/// Books in memory, and cannot be told of a pause.
#[cfg(feature = "redis")]
struct Deaf {
    memory: MemoryStore,
    away: tollgate::RedisStore,
}

#[cfg(feature = "redis")]
impl Store for Deaf {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Answer> {
        self.memory.book(quota, call)
    }

    fn pause<'a>(&'a self, quota: &'a Quota, time: i64) -> Pending<'a, i64> {
        self.away.pause(quota, time)
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        self.memory.peek(quota)
    }

    fn listen(&self, _: &Quota) -> Option<Bell> {
        None
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_pause_that_the_store_does_not_take_is_lost() {
    // On the real clock: a port at which nobody listens.
    let away = tollgate::RedisStore::new("redis://127.0.0.1:1").expect("a URL").timeout(ms(50));
    let store = Deaf { memory: MemoryStore::new(), away };
    let tollgate =
        Tollgate::builder().store(store).provider(provider("1000/h unpaced")).build().expect("built");
    let canned = Canned::new(|_, seen| refuse(429, if seen.path == "/long" { "600" } else { "1" }));
    let http = canned.behind(&tollgate);
    let slow = canned.clone().taking(ms(200)).behind(&tollgate);
    let short = tokio::spawn(slow.get("http://acme.test/short").no_resend().send());
    tokio::task::yield_now().await;
    let response = http.get("http://acme.test/long").no_resend().send().await.expect("answered all the same");
    assert_eq!(response.status(), 429);
    short.await.expect("no panic").expect("answered");
    // The short hint came later, and did not end this replica's own pause.
    let error = http.get(URL).or_reject().send().await.expect_err("paused");
    let error = Error::find(&error).expect("ours");
    assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Paused));
    assert!(error.retry_after().is_some_and(|wait| wait > Duration::from_secs(500)), "{error}");
    assert_eq!(canned.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_burst_follows_the_pause() {
    let (tollgate, _) = acme("100/s guard 0");
    let canned = Canned::new(after(1, "2"));
    let http = canned.behind(&tollgate);
    let first = tokio::spawn(http.get(URL).send());
    tokio::time::sleep(ms(1)).await;
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(http.get(URL).send())).collect();
    for call in calls.into_iter().chain([first]) {
        assert_eq!(call.await.expect("no panic").expect("accepted").status(), 200);
    }
    let expected: Vec<_> = (0..21).map(|at| ms(2_000 + 10 * at)).collect();
    assert_eq!(canned.times()[1..], expected, "one in 10 ms, though the whole window is free");
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

/// A provider whose calls wait at most so long, and a call that chooses for itself.
type Bounded = (&'static str, Option<Duration>, fn(RequestBuilder) -> RequestBuilder);

/// Four ways to wait at most 3 s.
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

/// A delay that begins at `least` and a random part of as much again at most. The timer counts in milliseconds.
fn assert_delay(delay: Duration, least: Duration) {
    assert!((least..=2 * least).contains(&delay), "{delay:?} for {least:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_hint_the_pauses_do_not_grow_or_not_end() {
    for (provider, expected) in [
        (provider("1000/h unpaced guard 0"), [1_000, 2_000, 4_000]),
        (provider("1000/h unpaced guard 0").backoff(ms(100), ms(250)), [100, 200, 250]),
        (provider("1000/h unpaced guard 0").backoff(ms(5_000), ms(60_000)), [5_000, 10_000, 20_000]),
    ] {
        let (tollgate, limiter) = open(provider.attempts(4).max_wait(Duration::from_secs(600)));
        let canned = Canned::new(|at, _| if at < 3 { answer(429, &[], "") } else { fine() });
        let http = canned.behind(&tollgate);
        let response = http.get(URL).send().await.expect("accepted");
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 4));
        let times = canned.times();
        for (pair, least) in times.windows(2).zip(expected) {
            assert_delay(pair[1] - pair[0], ms(least));
        }
        assert_eq!(paused(&limiter).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_does_not_end_the_row() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(|at, _| if [0, 1, 3].contains(&at) { answer(429, &[], "") } else { fine() });
    let http = canned.behind(&tollgate);
    http.get(URL).send().await.expect("accepted the third time");
    let times = canned.times();
    assert_delay(times[1] - times[0], ms(1_000));
    assert_delay(times[2] - times[1], ms(2_000));
    http.get(URL).no_resend().send().await.expect("answered");
    assert_delay(paused(&limiter).await.expect("paused"), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn refused_together_each_counts_anew() {
    let (tollgate, limiter) = open(provider("1000/h unpaced guard 0").max_wait(Duration::from_secs(600)));
    // Ten are under way for 300 ms; all are refused, the last ones when the pause is known already.
    let canned = Canned::new(|at, _| if at < 10 { answer(429, &[], "") } else { fine() }).taking(ms(300));
    let http = canned.behind(&tollgate);
    let mut calls = Vec::new();
    for _ in 0..10 {
        calls.push(tokio::spawn(http.get(URL).send()));
        tokio::time::sleep(ms(10)).await;
    }
    tokio::time::sleep(ms(310)).await;
    assert_eq!(limiter.counts().refusals, 10);
    let pause = paused(&limiter).await.expect("paused");
    // The first answer came at 300 ms, now it is 410 ms.
    assert_delay(pause + ms(110), ms(1_000));
    for call in calls {
        let response = call.await.expect("no panic").expect("accepted");
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    }
    assert_delay(canned.times()[10] - ms(150) - ms(300), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn a_date_is_read_by_our_clock_or_not_at_all() {
    // The upstream's clock is decades behind ours; both headers are by its clock.
    for (date, until) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT"),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:50:07 GMT"),
        ("Sun Nov  6 08:49:37 1994", "Sun Nov  6 08:50:07 1994"),
    ] {
        for status in [429, 503] {
            let (tollgate, _) = acme("1000/h unpaced guard 0");
            let refusal = answer(status, &[("date", date), ("retry-after", until)], "");
            let canned = Canned::new(move |at, _| if at == 0 { refusal.clone() } else { fine() });
            let response = canned.behind(&tollgate).get(URL).send().await.expect("accepted");
            assert_eq!(attempts(&response), 2);
            assert_eq!(canned.times(), [ms(0), ms(30_000)], "{status} {until}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_somebody_else_stops_the_provider() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(|_, _| refuse(429, "2"));
    let http = canned.behind(&tollgate);
    for url in ["http://other.test/things", "http://acme.test.other.test/", "http://other.test/acme.test"] {
        let response = http.get(url).send().await.expect("answered");
        assert_eq!(response.status(), 429);
        assert!(Toll::of(&response).is_none());
    }
    assert_eq!(canned.times(), [ms(0); 3], "each sent once");
    assert_eq!((paused(&limiter).await, left(&limiter).await), (None, 1_000));
    assert_eq!(limiter.counts().refusals, 0);
}

/// Polls a future so many times, letting everything else run in between, and drops it.
async fn abandon_after<F: Future>(future: F, polls: usize) -> bool {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    false
}

#[tokio::test(start_paused = true)]
async fn dropped_right_when_the_refusal_comes_a_call_keeps_it_to_itself() {
    for polls in 0..4 {
        let (tollgate, limiter) = acme("1000/h unpaced guard 0");
        let canned = Canned::new(|_, _| refuse(429, "2"));
        let done = abandon_after(canned.behind(&tollgate).get(URL).send(), polls).await;
        assert!(!done, "it waits to be sent again");
        tokio::task::yield_now().await;
        let sent = canned.seen().len();
        assert_eq!(sent, usize::from(polls > 0), "dropped after {polls} polls");
        let expected = (sent > 0).then_some(ms(2_000));
        assert_eq!(paused(&limiter).await, expected, "dropped after {polls} polls");
        let refused = limiter.acquire().or_reject().into_future().await.err();
        assert_eq!(refused.and_then(|error| error.retry_after()), expected, "dropped after {polls} polls");
        tokio::time::sleep(ms(3_000)).await;
        // Without one that was given to the test itself.
        assert_eq!(left(&limiter).await, 999, "dropped after {polls} polls: nobody waits on");
        assert_eq!(limiter.peek().await.expect("in memory").queued, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_secret_is_logged() {
    let (log, _guard) = Log::capture();
    let url = "http://me:hush-user@acme.test/things/hush-path?key=hush-query#hush-fragment";
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned =
        Canned::new(|_, _| answer(429, &[("retry-after", "2"), ("x-token", "hush-answer")], "hush-text"));
    let http = canned.behind(&tollgate);
    let request = || http.post(url).bearer_auth("hush-header").body("hush-body");
    let response = request().send().await.expect("answered");
    assert_eq!((response.status().as_u16(), attempts(&response)), (429, 3));
    let mut told = Vec::new();
    for call in [request().or_reject(), request().wait_at_most(ms(1)), request().provider("amce")] {
        let error = call.send().await.expect_err("refused");
        let ours = Error::find(&error).expect("ours");
        told.push(format!("{error} {error:?} {ours} {ours:?} {:?}", ours.refusal()));
        let mut source: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = source {
            told.push(format!("{error} {error:?}"));
            source = error.source();
        }
    }
    told.push(format!("{tollgate:?} {limiter:?} {:?}", Toll::of(&response)));
    let logged = log.text();
    assert_eq!(logged.matches("the provider refused a request").count(), 3, "{logged}");
    assert!(logged.contains("provider=\"acme\"") && logged.contains("status=429"), "{logged}");
    for text in told.into_iter().chain([logged]) {
        assert!(!text.contains("hush") && !text.contains("Bearer"), "{text}");
    }
}
