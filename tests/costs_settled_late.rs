//! What a call really cost is in its answer: settled before that is read, from the wrong attempt or hop, twice, or
//! never.
#![cfg(feature = "middleware")]

#[path = "support/answers.rs"]
mod answers;
#[path = "support/hops.rs"]
mod hops;
#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;

use std::time::Duration;

#[cfg(feature = "redis")]
use answers::{Api, provider};
use answers::{Case, GUESS, event, usage};
use hops::{Abandon, abandon, client, eventually};
use tollgate::{RequestBuilderExt, Toll, Tollgate, http::StatusCode};

#[tokio::test]
async fn an_answer_is_settled_before_it_is_read() {
    for real in [0, 30, 100, 250] {
        let case = Case::new().await;
        let response = case.get(&format!("json/{real}")).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(case.charged().await, (1, GUESS), "the body may say anything");
        assert_eq!(response.text().await.expect("a body"), usage(&real.to_string()));
        assert_eq!(case.charged().await, (1, real));
    }
    // What the call says itself is not guessed, but settled all the same.
    let case = Case::new().await;
    let response = case.http.get(case.api.url("json/30")).cost("tokens", 7).cost("requests", 2).send().await;
    assert_eq!(case.charged().await, (2, 7));
    response.expect("answered").bytes().await.expect("read");
    assert_eq!(case.charged().await, (2, 30));
}

#[tokio::test]
async fn a_stream_is_settled_from_its_middle() {
    let case = Case::new().await;
    case.api.send(": a comment\n\n");
    let mut response = case.get("pieces").await;
    for piece in
        [event("7"), "data: {\"text\": \"no usage\"}\n\n".into(), event("320"), "data: [DONE]\n\n".into()]
    {
        case.api.send(&piece);
        response.chunk().await.expect("read").expect("a piece");
        assert_eq!(case.charged().await, (1, GUESS));
    }
    case.api.end();
    while response.chunk().await.expect("read").is_some() {}
    assert_eq!(case.charged().await, (1, 320));
}

#[tokio::test]
async fn a_header_is_overheard_or_heard_too_early() {
    let case = Case::new().await;
    let response = case.get("header/30").await;
    assert_eq!(case.charged().await, (1, GUESS), "a closure sees the whole answer");
    response.bytes().await.expect("read");
    assert_eq!(case.charged().await, (1, 30));
}

#[tokio::test]
async fn where_there_is_no_body_nobody_settles() {
    let case = Case::new().await;
    let response = case.get("empty/7").await;
    assert_eq!((response.status(), case.charged().await), (StatusCode::NO_CONTENT, (1, 7)));
    assert!(!Toll::of(&response).expect("through the gate").settle([("tokens", 3)]).expect("counted"));
    let head = case.http.head(case.api.url("header/9")).send().await.expect("answered");
    assert_eq!(case.charged().await, (2, 7 + 9), "nothing is there to be read");
    drop((response, head));
    assert_eq!(case.charged().await, (2, 7 + 9));
}

#[tokio::test]
async fn who_stops_half_way_is_charged_for_nothing() {
    // What was read, and what that says.
    for (begin, expected) in
        [(event("30"), 30), (event("30") + "data: {\"text\"", 30), ("{\"usage\": {\"total".into(), GUESS)]
    {
        for cut in [false, true] {
            let case = Case::new().await;
            case.api.send(&begin);
            let mut response = case.get("pieces").await;
            response.chunk().await.expect("read").expect("a piece");
            assert_eq!(case.charged().await, (1, GUESS), "{begin} {cut}");
            if cut {
                case.api.cut();
                response.chunk().await.expect_err("the connection is gone");
            } else {
                drop(response);
            }
            assert_eq!(case.charged().await, (1, expected), "{begin} {cut}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_says_nothing_costs_nothing() {
    let case = Case::new().await;
    for (at, path) in ["silent", "json/\"many\"", "header/-3", "json/1e99"].into_iter().enumerate() {
        case.get(path).await.bytes().await.expect("read");
        assert_eq!(case.charged().await, (at as u64 + 1, (at as u64 + 1) * GUESS), "{path}");
    }
    // Unread it is the same.
    drop(case.get("json/30").await);
    assert_eq!(case.charged().await, (5, 5 * GUESS));
}

#[tokio::test]
async fn a_refused_attempt_is_settled() {
    let case = Case::new().await;
    let response = case.get("refused/30").await;
    assert_eq!((case.api.asked(), case.charged().await), (2, (2, 2 * GUESS)));
    assert_eq!(Toll::of(&response).expect("through the gate").attempts(), 2);
    response.bytes().await.expect("read");
    assert_eq!(case.charged().await, (2, GUESS + 30), "the refused one stands as it was guessed");
}

#[tokio::test]
async fn a_hop_is_settled_in_the_place_of_its_request() {
    for (status, ahead) in [(302, 0), (307, 0), (307, 1), (307, 2)] {
        let case = Case::with(|provider| provider.redirects(ahead)).await;
        let response = case.get(&format!("moved/{status}/250")).await;
        assert_eq!((case.api.asked(), response.url().path()), (2, "/json/250"));
        assert_eq!(case.charged().await, (2, GUESS), "a hop costs one request, {ahead} booked ahead");
        response.bytes().await.expect("read");
        assert_eq!(case.charged().await, (2, 250));
    }
    // Booked ahead and not needed.
    let case = Case::with(|provider| provider.redirects(2)).await;
    case.get("json/30").await.bytes().await.expect("read");
    assert_eq!(case.charged().await, (1, 30));
}

#[tokio::test]
async fn what_was_never_sent_stays_charged() {
    let case = Case::new().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let nowhere = case.http.get(format!("http://{free}/")).provider("acme").cost("tokens", 400);
    nowhere.send().await.expect_err("nobody listens");
    assert_eq!(case.charged().await, (0, 0), "of all units");

    case.limiter.acquire().cost("tokens", 1_000).await.expect("all there is");
    let waiting = || case.http.get(case.api.url("json/1")).send();
    assert!(abandon(waiting(), Abandon::AtOnce(1)).await.is_none());
    assert!(tokio::time::timeout(Duration::from_millis(20), waiting()).await.is_err());
    eventually(async || case.charged().await == (1, 1_000)).await;
    assert_eq!(case.api.asked(), 0);
}

#[tokio::test]
async fn more_of_a_body_is_kept_than_allowed() {
    let long = usage("30").len();
    for (kept, json, events, header) in
        [(0, GUESS, GUESS, 30), (long - 1, GUESS, GUESS, 30), (long, 30, GUESS, 30), (long + 20, 30, 30, 30)]
    {
        let case = Case::with(|provider| provider.keep_body(kept)).await;
        case.get("json/30").await.bytes().await.expect("read");
        assert_eq!(case.charged().await, (1, json), "JSON, {kept}");
        case.api.send(&(event("7") + &event("30")));
        case.api.end();
        case.get("pieces").await.bytes().await.expect("read");
        assert_eq!(case.charged().await, (2, json + events), "events, {kept}");
        case.get("header/30").await.bytes().await.expect("read");
        assert_eq!(case.charged().await, (3, json + events + header), "a header, {kept}");
    }
}

#[tokio::test]
async fn what_is_settled_by_hand_is_settled_again() {
    let case = Case::new().await;
    let response = case.get("json/30").await;
    let toll = Toll::of(&response).expect("through the gate").clone();
    assert!(toll.settle([("tokens", 70)]).expect("counted"));
    assert!(!toll.settle([("tokens", 80)]).expect("counted"), "the second time");
    response.bytes().await.expect("read");
    assert_eq!(case.charged().await, (1, 70), "the closure comes too late");
    assert!(!toll.settle([("tokens", 90)]).expect("counted"));
    assert_eq!(case.charged().await, (1, 70));

    let response = case.get("json/30").await;
    let toll = Toll::of(&response).expect("through the gate").clone();
    response.bytes().await.expect("read");
    assert!(!toll.settle([("tokens", 90)]).expect("counted"), "after the closure");
    assert_eq!(case.charged().await, (2, 70 + 30));
}

#[tokio::test]
async fn what_is_only_observed_is_settled() {
    let case = Case::with(|provider| provider.observe(true)).await;
    let response = case.get("json/250").await;
    let toll = Toll::of(&response).expect("through the gate").clone();
    response.bytes().await.expect("read");
    assert!(!toll.settle([("tokens", 90)]).expect("counted"), "the closure was asked");
    eventually(async || case.charged().await == (1, GUESS)).await;

    let disabled = client(&Tollgate::disabled());
    let response = disabled.get(case.api.url("json/250")).cost("tokens", 7).send().await.expect("answered");
    assert!(Toll::of(&response).is_none());
    response.bytes().await.expect("read");
    assert_eq!(case.charged().await, (1, GUESS));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn nothing_is_settled_in_redis() {
    let redis = redis_server::PrivateRedis::start();
    let store = tollgate::RedisStore::new(&redis.url()).expect("a URL");
    let api = Api::start().await;
    let patient = store.timeout(Duration::from_secs(10));
    let tollgate = Tollgate::builder().store(patient).provider(provider(&api)).build().expect("built");
    let case = Case::of(api, tollgate);
    let mut charged = (0, 0);
    for (path, real) in
        [("json/30", 30), ("json/250", 250), ("header/7", 7), ("empty/9", 9), ("silent", GUESS)]
    {
        case.get(path).await.bytes().await.expect("read");
        charged = (charged.0 + 1, charged.1 + real);
        eventually(async || case.charged().await == charged).await;
    }
    case.http.get("http://127.0.0.1:1/").provider("acme").send().await.expect_err("nobody listens");
    eventually(async || case.charged().await == charged).await;
}
