//! Two limits are alike but for the requests they are for, and nobody tells which one it was; or only some can be
//! looked at.

#![cfg(feature = "middleware")]

#[path = "support/scopes.rs"]
mod scopes;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use scopes::{SEARCH, SEARCH_URL, memory, scoped};
use tollgate::{RequestBuilderExt, Scope, Toll};
use upstream::{Canned, answer};

fn limits() -> Vec<(Scope, &'static str)> {
    vec![
        (Scope::all(), "100/min"),
        (Scope::route(SEARCH), "10/min"),
        (Scope::all().each("tenant"), "10/min"),
        (Scope::route(SEARCH).each("tenant"), "3/min"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_tell_which_one_it_was() {
    let (_store, _tollgate, limiter) = memory(scoped(&limits()));
    let of = |tenant: &'static str| limiter.acquire().key("tenant", tenant).route(SEARCH).or_reject();
    let permit = of("a").await.expect("free");
    assert_eq!(permit.scope(), Some(&Scope::route(SEARCH).each("tenant")), "it has the least left");
    for _ in 0..2 {
        of("a").await.expect("free");
    }
    let refused = of("a").await.expect_err("the fourth");
    let scope = Scope::route(SEARCH).each("tenant");
    assert_eq!(refused.refusal().and_then(|refusal| refusal.scope()), Some(&scope));
    assert!(refused.to_string().contains(&format!("({scope})")), "{refused}");
    for tenant in ["b", "c"] {
        for _ in 0..3 {
            of(tenant).await.expect("free");
        }
    }
    of("d").await.expect("the tenth search");
    let refused = of("d").await.expect_err("the eleventh");
    assert_eq!(refused.refusal().and_then(|refusal| refusal.scope()), Some(&Scope::route(SEARCH)));
    let never = limiter.acquire().key("tenant", "e").cost("requests", 11).await.expect_err("never");
    assert!(never.to_string().contains("(all, each tenant)"), "{never}");
    let never = limiter.acquire().cost("requests", 101).await.expect_err("never");
    assert!(!never.to_string().contains("(all)"), "{never}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_does_not_tell_which_one_it_was() {
    let (_store, tollgate, _limiter) = memory(scoped(&limits()));
    let http = Canned::new(|_, _| answer(200, &[], "fine")).behind(&tollgate);
    let response = http.post(SEARCH_URL).key("tenant", "a").send().await.expect("answered");
    let toll = Toll::of(&response).expect("a toll");
    assert_eq!(toll.scope(), Some(&Scope::route(SEARCH).each("tenant")));
}

#[tokio::test(start_paused = true)]
async fn only_some_can_be_looked_at() {
    let (_store, _tollgate, limiter) = memory(scoped(&limits()));
    limiter.acquire().key("tenant", "a").route(SEARCH).await.expect("free");
    limiter.acquire().key("tenant", "a").await.expect("free");
    let left = |look: tollgate::Peek| -> Vec<_> {
        look.limits.iter().map(|limit| (limit.scope.to_string(), limit.left)).collect()
    };
    let both = format!("{SEARCH}, each tenant");
    let [all, search, tenant, both] =
        ["all", SEARCH, "all, each tenant", &both].map(|scope| move |left: u64| (scope.to_owned(), left));
    let gates = limiter.gates();
    assert_eq!(left(limiter.peek().await.expect("a look")), [all(98), tenant(10)]);
    let of = |tenant: &'static str| limiter.peek().key("tenant", tenant);
    assert_eq!(left(of("a").await.expect("a look")), [all(98), tenant(8)]);
    assert_eq!(left(of("b").await.expect("a look")), [all(98), tenant(10)]);
    let look = of("a").route(SEARCH).await.expect("a look");
    assert_eq!(left(look), [all(98), search(9), tenant(8), both(2)]);
    assert_eq!(limiter.gates(), gates, "looking keeps nothing");
    for error in [limiter.peek().key("tennant", "a").await, limiter.peek().route("/v1/serch").await] {
        assert!(error.expect_err("not there").is_unknown());
    }
}
