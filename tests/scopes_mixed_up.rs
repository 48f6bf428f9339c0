//! A call counts where it should not, or not where it should: in another route, for another credential, twice or
//! not at all.

#![cfg(feature = "middleware")]

#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/scopes.rs"]
mod scopes;
#[path = "support/layers.rs"]
mod stack;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{future::IntoFuture, sync::Arc};

use scopes::{OTHER_URL, SEARCH, SEARCH_URL, left, memory, ms, on, plain, rest, scoped};
use stack::ours;
use tollgate::{
    Limiter, MemoryStore, RequestBuilderExt, Scope, Toll, reqwest::header::HeaderValue,
    reqwest_middleware::RequestBuilder, store::Store,
};
use upstream::{Canned, fine};

fn search() -> Scope {
    Scope::route(SEARCH)
}

#[tokio::test(start_paused = true)]
async fn a_saturated_route_holds_up_the_rest() {
    let listing = "GET /v1/{*rest}";
    let all = (Scope::all(), "100/min");
    let (store, tollgate, limiter) =
        memory(scoped(&[all, (search(), "2/min"), (Scope::route(listing), "3/min")]));
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    let searches: Vec<_> = (0..5).map(|_| tokio::spawn(http.post(SEARCH_URL).send())).collect();
    tokio::time::sleep(ms(10)).await;
    assert_eq!(limiter.peek().await.expect("in memory").queued, 3);
    for _ in 0..3 {
        for request in [http.get("http://acme.test/v1/search/things"), http.post(OTHER_URL)] {
            request.or_reject().send().await.expect("there is room");
        }
    }
    assert_eq!(left(&store, "3/min", listing).await, 0, "the same path by another method");
    for search in searches {
        search.await.expect("no panic").expect("its turn comes");
    }
    let at = |path: &str, method: &str| {
        let seen = canned.seen().into_iter().filter(|seen| seen.path == path && seen.method == method);
        seen.map(|seen| seen.at).collect::<Vec<_>>()
    };
    assert_eq!(at("/v1/search/things", "POST"), [0, 0, 60_000, 60_000, 120_000].map(ms));
    assert_eq!(at("/v1/search/things", "GET"), [ms(10); 3]);
    assert_eq!(at("/things", "POST"), [ms(10); 3]);
}

/// Three searches of five calls in all, and then the other way round.
async fn charged_together(store: Arc<impl Store>, other: Arc<impl Store>) {
    let provider = || scoped(&[(search(), "3/h"), (Scope::all(), "5/h")]);
    let (_tollgate, limiter) = on(&store, provider());
    let searching = || limiter.acquire().route(SEARCH);
    for taken in 1..=3 {
        searching().or_reject().await.expect("there is room");
        assert_eq!(left(&store, "3/h", SEARCH).await, 3 - taken);
        assert_eq!(left(&store, "5/h", "").await, 5 - taken);
    }
    let refused = searching().or_reject().await.expect_err("the route is full");
    assert_eq!(refused.refusal().and_then(|refusal| refusal.limit()), Some(&plain("3/h")));
    assert_eq!(left(&store, "5/h", "").await, 2, "charged for a call that was refused");
    assert_eq!(rest(|| limiter.acquire()).await, 2);

    let (_tollgate, limiter) = on(&other, provider());
    let refused = limiter.acquire().route(SEARCH).cost("requests", 4).await.expect_err("never");
    assert!(refused.is_impossible(), "{refused}");
    assert_eq!(rest(|| limiter.acquire()).await, 5);
    let refused = limiter.acquire().route(SEARCH).or_reject().await.expect_err("all are used");
    assert_eq!(refused.refusal().and_then(|refusal| refusal.limit()), Some(&plain("5/h")));
    assert_eq!(left(&other, "3/h", SEARCH).await, 3, "charged for a call that was refused");
}

#[tokio::test]
async fn a_route_and_the_whole_are_charged_apart() {
    charged_together(Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new())).await;
    #[cfg(feature = "redis")]
    {
        let redis = redis_server::PrivateRedis::start();
        charged_together(on_redis(&redis, "one"), on_redis(&redis, "other")).await;
    }
}

#[cfg(feature = "redis")]
fn on_redis(redis: &redis_server::PrivateRedis, prefix: &str) -> Arc<tollgate::RedisStore> {
    let store = tollgate::RedisStore::new(&redis.url()).expect("a URL").prefix(prefix);
    // Machines that run tests are busy.
    Arc::new(store.timeout(ms(10_000)))
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn replicas_have_a_route_or_a_tenant_each() {
    let redis = redis_server::PrivateRedis::start();
    // The limits stand in another order, and the second has one more.
    let tenants = || (search().each("tenant"), "3/h");
    let one = on(&on_redis(&redis, "p"), scoped(&[(search(), "5/h"), (Scope::all(), "100/h"), tenants()]));
    let more = (Scope::route("/v2"), "1/h");
    let other =
        on(&on_redis(&redis, "p"), scoped(&[more, tenants(), (Scope::all(), "100/h"), (search(), "5/h")]));
    let elsewhere = on(&on_redis(&redis, "q"), scoped(&[(search(), "5/h"), tenants()]));
    let canned = Canned::new(|_, _| fine());
    let sent = async |(tollgate, _): &(tollgate::Tollgate, Limiter), tenant: &'static str| {
        let request = canned.behind(tollgate).post(SEARCH_URL).header("tenant", tenant).or_reject();
        request.send().await.map_err(|error| tollgate::Error::find(&error).expect("ours").to_string())
    };
    sent(&one, "blue").await.expect("the first of three");
    sent(&other, "blue").await.expect("the second");
    sent(&one, "blue").await.expect("the third");
    let refused = sent(&other, "blue").await.expect_err("its tenant has had three");
    assert!(refused.contains("3/3599s"), "{refused}");
    sent(&other, "red").await.expect("the fourth search");
    sent(&one, "red").await.expect("the fifth");
    for replica in [&one, &other] {
        let refused = sent(replica, "green").await.expect_err("five searches were sent");
        assert!(refused.contains("5/3599s"), "{refused}");
    }
    assert_eq!(rest(|| elsewhere.1.acquire().route(SEARCH).key("tenant", "blue")).await, 3, "another prefix");
    assert_eq!(rest(|| one.1.acquire()).await, 95);
}

/// What a request finds left of its limit; `None`: nothing.
async fn sent(request: RequestBuilder) -> Option<u64> {
    match request.or_reject().send().await {
        Ok(response) => Toll::of(&response).expect("a toll").remaining(),
        refused => ours(refused).is_rejected().then_some(None).expect("limited"),
    }
}

#[tokio::test(start_paused = true)]
async fn credentials_share_a_state() {
    let (_store, tollgate, limiter) = memory(scoped(&[(Scope::all().each("authorization"), "2/h")]));
    let http = Canned::new(|_, _| fine()).behind(&tollgate);
    let get = |value: &[u8]| {
        http.get(OTHER_URL).header("authorization", HeaderValue::from_bytes(value).expect("a value"))
    };
    let values = [&b"Bearer one"[..], b"Bearer two", b"bearer one", b"Bearer one ", b"", b"-", b"\xff\xfe"];
    for value in values {
        assert_eq!(sent(get(value)).await, Some(1), "{value:?} found a state that was used");
    }
    for value in values {
        assert_eq!(sent(get(value)).await, Some(0), "{value:?} did not find its state");
        assert_eq!(sent(get(value)).await, None);
        // Wherever a value comes from it is the same.
        limiter.acquire().key("authorization", value).or_reject().await.expect_err("used up");
    }
    assert_eq!(sent(http.get(OTHER_URL)).await, Some(1));
    limiter.acquire().or_reject().await.expect("who has none shares one state");
    assert_eq!(sent(http.post(SEARCH_URL)).await, None);
}

#[tokio::test(start_paused = true)]
async fn combinations_of_keys_share_a_state() {
    let (_store, _tollgate, limiter) = memory(scoped(&[(Scope::all().each("a").each("b"), "1/h")]));
    let ask = |a: &str, b: &str| limiter.acquire().key("a", a).key("b", b);
    for (a, b) in [("1", "1"), ("1", "2"), ("2", "1"), ("11", ""), ("", "11")] {
        assert_eq!(rest(|| ask(a, b)).await, 1, "{a} and {b}");
    }
    assert_eq!(rest(|| limiter.acquire().key("b", "1").key("a", "1")).await, 0, "in another order");
    assert_eq!(rest(|| ask("1", "9").key("b", "1")).await, 0, "the last value counts");
    assert_eq!(rest(|| limiter.acquire().key("a", "1")).await, 1, "b is missing");
    assert_eq!(rest(|| limiter.acquire()).await, 1, "both are");
}

#[tokio::test(start_paused = true)]
async fn a_header_beats_the_closure_or_that_the_hand() {
    let asked = |request: &tollgate::reqwest::Request| request.url().query().map(str::to_owned);
    let provider = scoped(&[(Scope::all().each("X-Tenant"), "9/h")]);
    for closure in [false, true] {
        let provider = if closure { provider.clone().key("X-Tenant", asked) } else { provider.clone() };
        let (_store, tollgate, limiter) = memory(provider);
        let http = Canned::new(|_, _| fine()).behind(&tollgate);
        let from = |header: &str, url: &str| http.get(format!("{OTHER_URL}{url}")).header(header, "header");
        let hand = from("x-tenant", "?closure").key("X-Tenant", "hand");
        hand.send().await.expect("there is room");
        from("X-TENANT", "?closure").send().await.expect("there is room");
        from("x-TENANT", "").send().await.expect("there is room");
        let mut used = Vec::new();
        for value in ["hand", "closure", "header"] {
            used.push(9 - rest(|| limiter.acquire().key("X-Tenant", value)).await);
        }
        used.push(9 - rest(|| limiter.acquire()).await);
        // A closure that tells nothing says that there is no value.
        assert_eq!(used, if closure { [1, 1, 0, 1] } else { [1, 0, 2, 0] }, "a closure: {closure}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_scope_counts_in_another() {
    // One unit and window in five scopes.
    let keyed = search().each("tenant");
    let broad = Scope::route("/v1/{*rest}");
    let scopes = [Scope::all(), search(), broad, Scope::all().each("tenant"), keyed];
    let limits: Vec<_> = scopes.into_iter().zip(["50/h", "40/h", "30/h", "20/h", "10/h"]).collect();
    let (store, _tollgate, limiter) = memory(scoped(&limits));
    let whole = async || {
        let broad = left(&store, "30/h", "/v1/{*rest}").await;
        (left(&store, "50/h", "").await, left(&store, "40/h", SEARCH).await, broad)
    };
    let of = |tenant: &str| limiter.acquire().key("tenant", tenant).or_reject().into_future();
    for _ in 0..2 {
        of("blue").await.expect("there is room");
    }
    assert_eq!(whole().await, (48, 40, 30));
    let both = || limiter.acquire().route("/v1/{*rest}").route(SEARCH).key("tenant", "blue");
    assert_eq!(rest(both).await, 10, "of each tenant");
    assert_eq!(whole().await, (38, 30, 20));
    assert_eq!(rest(|| limiter.acquire().key("tenant", "blue")).await, 20 - 12);
    assert_eq!(rest(|| limiter.acquire().route("/v1/{*rest}")).await, 20);
    assert_eq!(whole().await, (10, 30, 0));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn two_scopes_have_one_name() {
    // As Google writes actions. What belongs to a limit has its name, and `:log` or `:crowd` behind it.
    let routes = ["", ":log", ":crowd", ":log:log", ":", "::", "::log", ":tenant=-", ":tenant=-:log"];
    let routes = routes.map(|action| format!("/v1/things{action}"));
    let mut limits: Vec<_> = routes.iter().map(|route| (Scope::route(route), "3/h")).collect();
    limits.extend(["/v1/things", "/v1/things:"].map(|route| (Scope::route(route).each("tenant"), "2/h")));
    let redis = redis_server::PrivateRedis::start();
    let (_tollgate, limiter) = on(&on_redis(&redis, "p"), scoped(&limits));
    for route in &routes {
        let permit = limiter.acquire().route(route).or_reject().await;
        let permit = permit.unwrap_or_else(|error| panic!("{route}: {error:?}"));
        assert_eq!(
            permit.remaining(),
            Some(if permit.limit() == Some(&plain("2/h")) { 1 } else { 2 }),
            "{route}"
        );
    }
}
