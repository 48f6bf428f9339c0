//! A call that counts in none of its provider's limits: it is limited all the same, or not even held up by a pause.

#![cfg(feature = "middleware")]

#[path = "support/far.rs"]
mod far;
#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/scopes.rs"]
mod scopes;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::sync::Arc;

use far::Far;
use scopes::{OTHER_URL, SEARCH, memory, ms, on, scoped};
use tollgate::{Error, Provider, Reason, RequestBuilderExt, Scope, Toll};
use upstream::{Canned, fine};

/// No limit counts what goes to [`OTHER_URL`].
fn provider() -> Provider {
    scoped(&[(Scope::route(SEARCH), "1/min"), (Scope::route("/v1/{*rest}").each("tenant"), "1/min")])
}

fn reason(error: &Error) -> Option<Reason> {
    error.refusal().map(|refusal| refusal.reason())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_no_limit_counts_is_held_up_or_flies_through_a_pause() {
    let (_store, tollgate, limiter) = memory(provider());
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    let get = || http.get(OTHER_URL).cost("requests", 1_000);
    for _ in 0..100 {
        let response = get().or_reject().send().await.expect("nothing limits it");
        let toll = Toll::of(&response).expect("a toll");
        assert_eq!((toll.limit(), toll.remaining(), toll.waited()), (None, None, ms(0)));
    }
    let permit = limiter.acquire().cost("requests", 1_000).await.expect("nothing limits it");
    assert_eq!((permit.limit(), permit.remaining(), permit.cost("requests")), (None, None, 0));
    permit.settle([("requests", 5)]).expect("known");
    limiter.pause(ms(4_000)).await.expect("in memory");
    let response = get().send().await.expect("after the pause");
    assert_eq!(Toll::of(&response).expect("a toll").waited(), ms(4_000));
    assert_eq!(canned.times().last(), Some(&ms(4_000)));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_script_cannot_count_in_no_limit() {
    let redis = redis_server::PrivateRedis::start();
    let store = Arc::new(tollgate::RedisStore::new(&redis.url()).expect("a URL").timeout(ms(10_000)));
    let (tollgate, limiter) = on(&store, provider());
    for ask in [limiter.acquire().or_reject(), limiter.acquire().cost("requests", 7)] {
        let permit = ask.await.expect("nothing limits it");
        assert_eq!((permit.limit(), permit.remaining()), (None, None));
        permit.give_back();
    }
    let callers: Vec<_> =
        (0..50).map(|_| tokio::spawn(std::future::IntoFuture::into_future(limiter.acquire()))).collect();
    for caller in callers {
        caller.await.expect("no panic").expect("nothing limits it");
    }
    tollgate.shutdown().await;
    assert!(limiter.peek().await.expect("a look").limits.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_no_limit_counts_comes_too_late_for_it() {
    let trips = [10, 40, 10, 44, 50, 12].map(ms);
    let store = Arc::new(Far::default());
    store.takes(&trips);
    let (_tollgate, limiter) = on(&store, provider());
    tokio::time::sleep(ms(100)).await;
    for trip in &trips[1..] {
        let permit = limiter.acquire().or_reject().await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(permit.waited(), *trip);
    }
    assert_eq!(limiter.counts().late, 0);
    let heard = store.heard().values().map(|(calls, _)| calls).sum::<usize>();
    assert_eq!(heard, trips.len(), "the greeting, and one for each");
    store.takes(&[ms(40)]);
    let error = limiter.acquire().wait_at_most(ms(10)).await.expect_err("the store takes longer");
    assert_eq!(
        (reason(&error), error.refusal().and_then(|refusal| refusal.limit())),
        (Some(Reason::Limited), None)
    );
}
