//! A key, unit or route that does not exist: a slip of the pen must not mean a call without a limit, nor a provider
//! of which a closure or a limit does nothing.

#![cfg(feature = "middleware")]

#[path = "support/scopes.rs"]
mod scopes;
#[path = "support/layers.rs"]
mod stack;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use scopes::{OTHER_URL, SEARCH, left, limit, memory, plain, scoped};
use stack::ours;
use tollgate::{
    Error, Limiter, MemoryStore, Provider, Reason, RequestBuilderExt, Scope, Toll, Tollgate,
    reqwest_middleware::ClientWithMiddleware,
};
use upstream::{Canned, fine};

/// With keys, routes and units, some of them twice.
fn provider() -> Provider {
    scoped(&[
        (Scope::all(), "9 tokens/h"),
        (Scope::all(), "9/h"),
        (Scope::route(SEARCH).each("tenant"), "9 bytes/h"),
        (Scope::route("/v2").each("region"), "9 tokens/h"),
        (Scope::route(SEARCH), "9 tokens/h"),
    ])
}

/// Each thing that a call can name, with what is told then.
async fn named(http: &ClientWithMiddleware, limiter: &Limiter) -> Vec<(Error, String)> {
    let all = |kind: &str, name: &str, known: &str| {
        format!("provider \"acme\" has no {kind} \"{name}\": there are {known}")
    };
    let routes = format!("{SEARCH}, /v2");
    let unit = all("unit", "token", "requests, tokens, bytes");
    let key = all("key", "Tenant", "region, tenant");
    vec![
        (ours(http.get(OTHER_URL).cost("token", 0).send().await), unit.clone()),
        (ours(http.get(OTHER_URL).key("Tenant", "blue").key("tenant", "blue").send().await), key.clone()),
        (refused(limiter.acquire().cost("token", 1).or_reject().await), unit),
        (refused(limiter.acquire().key("tenant", "blue").key("Tenant", "").await), key),
        (refused(limiter.acquire().route(SEARCH).route("GET /v2").await), all("route", "GET /v2", &routes)),
        (refused(limiter.acquire().route("").await), all("route", "", &routes)),
    ]
}

fn refused<T>(result: Result<T, Error>) -> Error {
    result.err().expect("no such name")
}

#[tokio::test(start_paused = true)]
async fn a_call_by_an_unknown_name_is_charged_or_sent() {
    for observe in [false, true] {
        let (store, tollgate, limiter) = memory(provider().observe(observe));
        let canned = Canned::new(|_, _| fine());
        for (error, text) in named(&canned.behind(&tollgate), &limiter).await {
            assert_eq!(error.to_string(), text);
            assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Unknown));
            assert!(error.is_unknown() && !error.is_rejected() && error.retry_after().is_none(), "{error}");
        }
        assert!(canned.seen().is_empty());
        let charged =
            [("9/h", ""), ("9 tokens/h", ""), ("9 tokens/h", SEARCH), ("9 tokens/h", "/v2:region=-")];
        for (text, scope) in charged {
            assert_eq!(left(&store, text, scope).await, 9, "{text} of {scope}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_without_names_says_something_else() {
    let (_store, _tollgate, limiter) = memory(scoped(&[(Scope::all(), "9/h"), (Scope::all(), "9/min")]));
    let told = [
        refused(limiter.acquire().key("tenant", "blue").await),
        refused(limiter.acquire().route(SEARCH).await),
        refused(limiter.acquire().cost("tokens", 1).await),
    ];
    let none = [r#"no key "tenant": there are none"#, r#"{index}": there are none"#, "there are requests"];
    for (error, text) in told.iter().zip(none) {
        assert!(error.is_unknown() && error.to_string().ends_with(text), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slip_in_a_settlement_settles_half() {
    let (store, tollgate, limiter) = memory(provider());
    let permit = limiter.acquire().cost("tokens", 4).await.expect("there is room");
    let error = refused(permit.settle([("tokens", 1), ("token", 1)]));
    assert!(error.is_unknown() && error.to_string().contains("requests, tokens, bytes"), "{error}");
    assert_eq!(left(&store, "9 tokens/h", "").await, 5, "it stays as it was booked");
    let http = Canned::new(|_, _| fine()).behind(&tollgate);
    let response = http.get(OTHER_URL).cost("tokens", 4).send().await.expect("accepted");
    let toll = Toll::of(&response).expect("a toll");
    assert!(refused(toll.settle([("tokens", 1), ("token", 1)])).is_unknown());
    assert_eq!(left(&store, "9 tokens/h", "").await, 1, "it stays as it was booked");
    // A unit that no limit of this call counts is known, and nothing to it.
    let permit = limiter.acquire().cost("bytes", 100).await.expect("no limit of this call counts bytes");
    permit.settle([("bytes", 200)]).expect("known");
}

fn built(provider: Provider) -> Result<Tollgate, String> {
    let builder = Tollgate::builder().store(MemoryStore::new()).provider(provider);
    builder.build().map_err(|error| error.to_string())
}

#[test]
fn two_limits_of_one_scope_count_in_one_state() {
    let each = |key: &str| Scope::route(SEARCH).each(key);
    for (one, other) in [
        (Scope::all(), Scope::all()),
        (Scope::route(SEARCH), Scope::route(SEARCH)),
        (each("a").each("b"), each("b").each("a").each("b")),
    ] {
        let error = built(scoped(&[(one.clone(), "9/h"), (Scope::route("/x"), "9/h"), (other, "60/h")]));
        let error = error.expect_err("two limits of one scope");
        for part in ["acme", "9/3599s", "60/3599s", "keep the smaller", &one.to_string()] {
            assert!(error.contains(part), "{error}");
        }
    }
    let apart = [
        Scope::all(),
        each("a"),
        each("b"),
        each("a").each("b"),
        Scope::route(SEARCH),
        Scope::all().each("a"),
    ];
    built(scoped(&apart.map(|scope| (scope, "9/h")))).expect("each has a scope of its own");
    built(scoped(&["9/h", "9/min", "9 tokens/h"].map(|text| (Scope::route(SEARCH), text))))
        .expect("three kinds");
    let bucket =
        || scoped(&[(Scope::route(SEARCH), "9/h")]).limit_in(Scope::route(SEARCH), limit("9/3599s burst 9"));
    built(bucket()).expect("another kind");
    built(bucket().limit_in(Scope::route(SEARCH), plain("8/h"))).expect_err("a rolling one is there");
}

#[test]
fn a_closure_serves_no_limit() {
    let unit = r#"provider "acme": no limit counts "token", for which it has a closure"#;
    let key = r#"provider "acme": no limit has the key "Tenant", for which it has a closure"#;
    assert_eq!(built(provider().estimate("token", |_| 1)).expect_err("no such unit"), unit);
    assert_eq!(built(provider().settle("token", |_| None)).expect_err("no such unit"), unit);
    assert_eq!(built(provider().key("Tenant", |_| None)).expect_err("no such key"), key);
    let served = provider().key("tenant", |_| None).settle("requests", |_| None).settle("bytes", |_| None);
    built(served.estimate("tokens", |_| 1)).expect("each serves a limit");
    // What is wrong with a scope itself is told with the provider.
    let error = built(scoped(&[(Scope::route("search"), "9/h")])).expect_err("no path");
    assert!(error.contains("acme") && error.contains("\"search\""), "{error}");
}
