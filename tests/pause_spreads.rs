//! A refusal of one credential, tenant or route stops the others, or not all who share it.

#![cfg(feature = "middleware")]

#[path = "support/remote.rs"]
mod remote;
#[path = "support/scopes.rs"]
mod scopes;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::time::Duration;

use remote::Remote;
use scopes::{OTHER_URL, SEARCH, SEARCH_URL, limit, ms};
use support::Watch;
use tokio::task::JoinHandle;
use tollgate::{
    Limiter, Provider, RequestBuilderExt, Scope, Tollgate, reqwest_middleware::ClientWithMiddleware,
};
use upstream::{Canned, answer};

fn tenant() -> Scope {
    Scope::all().each("tenant")
}

fn provider() -> Provider {
    Provider::new("acme").hosts(["acme.test"]).limit(limit("1000/s unpaced guard 0"))
}

fn replica(store: &Remote, provider: Provider) -> (Tollgate, Limiter) {
    store.replica_of(provider, &[])
}

/// The upstream throttles tenant `a`, and everybody's searches.
fn client(tollgate: &Tollgate, until: Duration) -> ClientWithMiddleware {
    let watch = Watch::start();
    let canned = Canned::new(move |_, request| {
        let throttled = request.headers.get("x-tenant").is_some_and(|tenant| tenant == "a")
            || request.path.starts_with("/v1/search");
        match throttled && watch.read() < until {
            true => answer(429, &[("retry-after", "5")], "slow down"),
            false => answer(200, &[], "fine"),
        }
    });
    canned.behind(tollgate)
}

async fn waits(http: &ClientWithMiddleware, tenant: &'static str, url: &str) -> Duration {
    let watch = Watch::start();
    let request = http.post(url).header("x-tenant", tenant).key("tenant", tenant);
    request.send().await.expect("answered");
    watch.read()
}

/// Callers of tenant `a`, all at once.
fn many(http: &ClientWithMiddleware) -> Vec<JoinHandle<Duration>> {
    let caller = |_| {
        let http = http.clone();
        tokio::spawn(async move { waits(&http, "a", OTHER_URL).await })
    };
    (0..50).map(caller).collect()
}

#[tokio::test(start_paused = true)]
async fn one_tenant_stops_the_others() {
    let store = Remote::here();
    let (one, _) = replica(&store.another(), provider().pause_in(tenant()));
    let (other, limiter) = replica(&store.another(), provider().pause_in(tenant()));
    let (http, elsewhere) = (client(&one, ms(1_000)), client(&other, ms(1_000)));
    assert_eq!(waits(&http, "b", OTHER_URL).await, ms(0), "its gate is there before");
    assert_eq!(waits(&http, "a", OTHER_URL).await, ms(5_000), "sent again after the pause");
    // The second is heard by the first as well, whoever asks.
    let (again, moment) = (client(&one, ms(1_000)), ms(10));
    let refused = tokio::spawn(async move { waits(&again, "a", OTHER_URL).await });
    tokio::time::sleep(moment).await;
    for http in [&http, &elsewhere] {
        assert_eq!(waits(http, "b", OTHER_URL).await, ms(0), "nothing to do with it");
        let error = http.post(OTHER_URL).key("tenant", "a").or_reject().send().await.expect_err("paused");
        assert_eq!(tollgate::Error::find(&error).and_then(|error| error.retry_after()), Some(ms(4_990)));
    }
    let paused = async |tenant: &str| limiter.peek().key("tenant", tenant).await.expect("a look").paused;
    assert_eq!((paused("a").await, paused("b").await), (Some(ms(4_990)), None));
    assert_eq!(limiter.peek().await.expect("a look").paused, None);
    assert_eq!(refused.await.expect("no panic"), ms(5_000));

    limiter.pause(Duration::from_secs(2)).await.expect("stored");
    assert_eq!((paused("a").await, paused("b").await), (Some(ms(2_000)), Some(ms(2_000))), "that is for all");
}

#[tokio::test(start_paused = true)]
async fn the_first_scope_that_matches_is_not_the_one() {
    let store = Remote::here();
    let scopes = |provider: Provider| provider.pause_in(Scope::route(SEARCH)).pause_in(tenant());
    let (one, limiter) = replica(&store, scopes(provider()));
    let http = client(&one, ms(1_000));
    let searches = tokio::spawn({
        let http = http.clone();
        async move { waits(&http, "b", SEARCH_URL).await }
    });
    tokio::time::sleep(ms(10)).await;
    // All searches, whoever searches; and nobody but who searches.
    let look = limiter.peek().key("tenant", "c").route(SEARCH).await.expect("a look");
    assert_eq!(look.paused, Some(ms(4_990)));
    assert_eq!(waits(&http, "b", OTHER_URL).await, ms(0));
    assert_eq!(searches.await.expect("no panic"), ms(5_000));
}

#[tokio::test(start_paused = true)]
async fn without_a_scope_a_refusal_is_for_one() {
    let store = Remote::here();
    let (one, limiter) = replica(&store, provider());
    let http = client(&one, ms(1_000));
    let refused = tokio::spawn(http.post(OTHER_URL).header("x-tenant", "a").send());
    tokio::time::sleep(ms(10)).await;
    assert_eq!(limiter.peek().await.expect("a look").paused, Some(ms(4_990)));
    let error = http.post(OTHER_URL).header("x-tenant", "b").or_reject().send().await.expect_err("paused");
    assert_eq!(tollgate::Error::find(&error).and_then(|error| error.retry_after()), Some(ms(4_990)));
    refused.await.expect("no panic").expect("answered");
}

/// Callers of the part wait, and what they wait for lies after its pause: also under a limit that all share.
#[tokio::test(start_paused = true)]
async fn who_waits_for_its_end_holds_up_the_others() {
    for text in ["100/s guard 0", "100/s burst 1 guard 0"] {
        let store = Remote::new(ms(1));
        let shared = || Provider::new("acme").hosts(["acme.test"]).limit(limit(text)).queue(10_000);
        let (one, limiter) = replica(&store, shared().pause_in(tenant()));
        let http = client(&one, ms(100));
        let throttled = many(&http);
        tokio::time::sleep(ms(500)).await;
        let watch = Watch::start();
        let mut served = 0;
        while watch.read() < ms(3_000) {
            limiter.acquire().key("tenant", "b").await.expect("served");
            served += 1;
        }
        // Nothing else is sent in that time. The first window holds what was refused.
        assert!((195..=310).contains(&served), "{served} under {text}");
        for call in throttled {
            call.await.expect("no panic");
        }
    }
}

/// A bucket begins empty after a pause, so that nobody stampedes: the part's own, not one that others use, too.
#[tokio::test(start_paused = true)]
async fn its_end_empties_what_all_share() {
    let store = Remote::here();
    let provider = Provider::new("acme").hosts(["acme.test"]).limit(limit("10/h burst 10 guard 0"));
    let provider = provider.limit_in(tenant(), limit("3600/h burst 5 guard 0")).pause_in(tenant());
    let (one, limiter) = replica(&store, provider);
    let http = client(&one, ms(100));
    let error = http.post(OTHER_URL).header("x-tenant", "a").key("tenant", "a").no_resend().send().await;
    assert_eq!(error.expect("answered").status(), 429);
    tokio::time::sleep(ms(5_000)).await;
    let look = limiter.peek().key("tenant", "a").await.expect("a look");
    assert_eq!((look.limits[0].left, look.limits[1].left), (9, 0));
    limiter.acquire().key("tenant", "a").await.expect("one a second");
    let look = limiter.peek().key("tenant", "b").await.expect("a look");
    assert_eq!((look.limits[0].left, look.limits[1].left), (8, 5));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_its_end_asks_all_the_time() {
    let store = Remote::new(ms(1));
    let (one, _) = replica(&store, provider().pause_in(tenant()));
    let http = client(&one, ms(100));
    let throttled = many(&http);
    tokio::time::sleep(ms(500)).await;
    let before = store.calls();
    tokio::time::sleep(ms(4_000)).await;
    assert!(store.calls() - before <= 2, "{} calls in 4 s", store.calls() - before);
    for call in throttled {
        assert!(call.await.expect("no panic") < ms(5_200));
    }
}
