//! A redirect leads to another route, or a refusal back to the first: what is on the wire then counts where it is
//! not.

#![cfg(feature = "middleware")]

#[path = "support/scopes.rs"]
mod scopes;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{future::IntoFuture, sync::Arc};

use scopes::{left, on, plain, rest, scoped};
use tollgate::{
    MemoryStore, Provider, RequestBuilderExt, Scope, Toll, Tollgate, reqwest::Method,
    reqwest_middleware::ClientWithMiddleware,
};
use upstream::{Seen, Upstream, answer, fine, plain as builder, refuse};

const METHODS: [Method; 5] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE];

fn leads(status: u16, to: &str) -> upstream::Answer {
    answer(status, &[("location", to)], "")
}

/// `/307` leads to `/target` by that status.
async fn redirecting() -> Upstream {
    Upstream::start(|_, seen: &Seen| match seen.path[1..].parse() {
        Ok(status) => leads(status, "/target"),
        Err(_) => fine(),
    })
    .await
}

fn at(upstream: &Upstream, limits: &[(Scope, &str)]) -> Provider {
    scoped(limits).hosts([upstream.url.trim_start_matches("http://")])
}

fn client(tollgate: &Tollgate) -> ClientWithMiddleware {
    tollgate.client(builder()).expect("a client")
}

#[tokio::test]
async fn a_hop_counts_by_the_method_that_it_is_not_sent_with() {
    let upstream = redirecting().await;
    let routes = METHODS.map(|method| format!("{method} /target"));
    let limits: Vec<_> = routes.iter().map(|route| (Scope::route(route), "9/h")).collect();
    for status in [301, 302, 303, 307, 308] {
        for method in METHODS {
            let store = Arc::new(MemoryStore::new());
            let (tollgate, limiter) = on(&store, at(&upstream, &limits));
            let url = format!("{}/{status}", upstream.url);
            let response =
                client(&tollgate).request(method.clone(), url).send().await.expect("led to the end");
            assert_eq!(Toll::of(&response).expect("a toll").hops(), 1);
            let sent = upstream.seen().last().expect("the hop").method.clone();
            for (route, method) in routes.iter().zip(METHODS) {
                let used = 9 - rest(|| limiter.acquire().route(route)).await;
                assert_eq!(used, usize::from(method == sent), "{status} leads to {sent}: {route}");
            }
        }
    }
    let sent: std::collections::BTreeSet<_> =
        upstream.seen().iter().map(|seen| seen.method.to_string()).collect();
    assert_eq!(sent.len(), METHODS.len());
}

#[tokio::test]
async fn a_hop_from_elsewhere_counts_nowhere() {
    // From a provider without scopes, and from a host that is nobody's.
    let upstream = redirecting().await;
    let to = format!("{}/target", upstream.url);
    let elsewhere = Upstream::start(move |_, _| leads(307, &to)).await;
    let host = elsewhere.url.trim_start_matches("http://").to_owned();
    for front in [Some(Provider::new("front").hosts([host]).limit(plain("9/h"))), None] {
        let nobody = front.is_none();
        let store = Arc::new(MemoryStore::new());
        let limits = [(Scope::route("POST /target"), "9/h"), (Scope::route("/target").each("tenant"), "9/h")];
        let builder = Tollgate::builder().store(store.clone()).provider(at(&upstream, &limits));
        let tollgate = front.into_iter().fold(builder, tollgate::Builder::provider).build().expect("built");
        let post = client(&tollgate).post(&elsewhere.url);
        // Whose call it is may be said before it is known who asks.
        let post = if nobody { post.key("tenant", "blue") } else { post };
        post.send().await.expect("led to the end");
        assert_eq!(upstream.seen().last().expect("the hop").method, Method::POST);
        assert_eq!(left(&store, "9/h", "POST /target").await, 8, "nobody's: {nobody}");
        let limiter = tollgate.provider("acme").expect("there");
        let blue = rest(|| limiter.acquire().route("/target").key("tenant", "blue")).await;
        let none = rest(|| limiter.acquire().route("/target")).await;
        assert_eq!((blue, none), if nobody { (8, 9) } else { (9, 8) }, "nobody's: {nobody}");
    }
}

#[tokio::test]
async fn a_hop_counts_for_another_tenant() {
    let upstream = redirecting().await;
    let tenants = |path: &str| (Scope::route(path).each("tenant"), "9/h");
    for redirects in [0, 1] {
        let store = Arc::new(MemoryStore::new());
        let provider = at(&upstream, &[tenants("/307"), tenants("/target"), (Scope::all(), "90/h")]);
        let (tollgate, limiter) = on(&store, provider.redirects(redirects));
        let url = format!("{}/307", upstream.url);
        client(&tollgate).get(url).header("tenant", "blue").send().await.expect("led to the end");
        // What was booked ahead for the first route is of no use at the second, and goes back.
        assert_eq!(left(&store, "90/h", "").await, 88, "{redirects} booked ahead");
        for path in ["/307", "/target"] {
            let of = |tenant: &str| limiter.acquire().route(path).key("tenant", tenant);
            assert_eq!((rest(|| of("blue")).await, rest(|| of("red")).await), (8, 9), "{path}");
            assert_eq!(rest(|| limiter.acquire().route(path)).await, 9, "{path}");
        }
    }
}

#[tokio::test]
async fn an_attempt_counts_where_the_last_one_was_led_to() {
    // To another route and there refused; the second time it is accepted.
    let upstream = Upstream::start(|at, seen: &Seen| match (&*seen.path, at) {
        ("/first", _) => leads(307, "/second"),
        (_, 1) => refuse(429, "0"),
        _ => fine(),
    })
    .await;
    let routes = ["POST /first", "POST /second", "GET /first", "GET /second"];
    let limits: Vec<_> = routes.iter().map(|route| (Scope::route(route), "9/h")).collect();
    let store = Arc::new(MemoryStore::new());
    let (tollgate, _limiter) = on(&store, at(&upstream, &limits));
    let post = client(&tollgate).post(format!("{}/first", upstream.url)).body("a thing");
    let response = post.send().await.expect("accepted");
    let toll = Toll::of(&response).expect("a toll");
    assert_eq!((response.status().as_u16(), toll.attempts(), toll.hops()), (200, 2, 2));
    let paths: Vec<_> = upstream.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/first", "/second", "/first", "/second"]);
    let mut lefts = Vec::new();
    for route in routes {
        lefts.push(left(&store, "9/h", route).await);
    }
    assert_eq!(lefts, [7, 7, 9, 9]);
}

#[tokio::test]
async fn a_hop_takes_the_place_of_one_who_waits_there() {
    // Places are numbered at each gate: a number of the first says nothing at the second.
    let upstream = redirecting().await;
    let store = Arc::new(MemoryStore::new());
    let (tollgate, limiter) =
        on(&store, at(&upstream, &[(Scope::route("/target"), "1/h"), (Scope::route("/307"), "9/h")]));
    limiter.acquire().route("/target").await.expect("the only one");
    limiter.acquire().route("/307").await.expect("the first there");
    let waiting = tokio::spawn(limiter.acquire().route("/target").into_future());
    let led = tokio::spawn(client(&tollgate).get(format!("{}/307", upstream.url)).send());
    let queued = async || limiter.peek().await.expect("in memory").queued;
    for _ in 0..2_000 {
        if queued().await == 2 || waiting.is_finished() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(!waiting.is_finished() && !led.is_finished());
    assert_eq!(queued().await, 2, "both wait for the same");
    waiting.abort();
    led.abort();
}
