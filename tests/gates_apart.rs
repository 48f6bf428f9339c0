//! A provider has many gates, and what belongs to the provider holds at one of them only: a pause, the bound of its
//! queue, its ceiling, its end.

#![cfg(feature = "middleware")]

#[path = "support/far.rs"]
mod far;
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

use std::{future::IntoFuture, num::NonZeroU32, sync::Arc, time::Duration};

use far::Far;
use scopes::{OTHER_URL, SEARCH, SEARCH_URL, left, limit, memory, ms, on, scoped};
use stack::ours;
use support::Watch;
use tokio::task::JoinHandle;
use tollgate::{
    Acquire, Error, Limiter, Provider, Reason, RequestBuilderExt, Scope, Toll, Tollgate,
    reqwest_middleware::RequestBuilder,
};
use upstream::{Canned, fine, refuse};

/// No limit counts what goes to [`OTHER_URL`].
fn provider() -> Provider {
    let tenants = Scope::route("/v1/{*rest}").each("tenant");
    scoped(&[(Scope::route(SEARCH), "1/min"), (tenants, "1/min"), (Scope::route("/v2"), "1/min")])
}

/// Calls that count in as many sets of limits.
fn calls(limiter: &Limiter) -> [Acquire; 4] {
    let tenant = |name| limiter.acquire().route("/v1/{*rest}").key("tenant", name);
    [limiter.acquire().route(SEARCH), tenant("blue"), tenant("red"), limiter.acquire()]
}

fn reason(error: &Error) -> Option<Reason> {
    error.refusal().map(|refusal| refusal.reason())
}

fn in_background(ask: Acquire, watch: &Arc<Watch>) -> JoinHandle<Duration> {
    let watch = watch.clone();
    tokio::spawn(async move {
        ask.await.unwrap_or_else(|error| panic!("{error}"));
        watch.read()
    })
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_one_gate_or_not_those_that_come_during_it() {
    let (_store, tollgate, limiter) = memory(provider());
    let canned = Canned::new(|at, _| if at == 1 { refuse(429, "90") } else { fine() });
    let http = canned.behind(&tollgate);
    let watch = Arc::new(Watch::start());
    // Three gates are there: at two the next caller waits for the minute to be over, and the third refuses at 0.5 s.
    http.post(SEARCH_URL).header("tenant", "blue").send().await.expect("accepted");
    let [search, blue, red, free] = calls(&limiter);
    let waiting = [in_background(search, &watch), in_background(blue, &watch)];
    tokio::time::sleep(ms(500)).await;
    let v2 = "http://acme.test/v2";
    let refused = http.get(v2).no_resend().send().await.expect("answered");
    assert_eq!(refused.status(), 429);
    tokio::time::sleep(ms(700)).await;
    // Two gates are made now: whatever their own limits say, nobody has a permit before 90.5 s.
    let coming = [in_background(red, &watch), in_background(free, &watch)];
    for request in [OTHER_URL, v2, "http://acme.test/v1/x"].map(|url| http.get(url)) {
        let error = ours(request.or_reject().send().await);
        assert_eq!((reason(&error), error.retry_after()), (Some(Reason::Paused), Some(ms(89_300))));
    }
    for caller in waiting.into_iter().chain(coming) {
        assert_eq!(caller.await.expect("no panic"), ms(90_500));
    }
    assert_eq!(canned.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn only_the_store_tells_a_gate_of_a_pause() {
    let store = Arc::new(Far::default());
    let (_tollgate, limiter) = on(&store, provider());
    for call in calls(&limiter) {
        call.or_reject().await.expect("the first of its state");
    }
    let waiting = calls(&limiter).map(|call| tokio::spawn(call.wait_at_most(ms(70_000)).into_future()));
    let [search, blue, red, free] = waiting;
    free.await.expect("no panic").expect("nothing limits it");
    tokio::time::sleep(ms(10)).await;
    // Who cannot wait for its end is told at once, however long the store takes to hear of it.
    store.takes(&[ms(5_000); 8]);
    let watch = Watch::start();
    let pausing = limiter.pause(ms(100_000));
    let told = async {
        for caller in [search, blue, red] {
            let error = caller.await.expect("no panic").expect_err("paused for longer than it would wait");
            assert_eq!((reason(&error), error.retry_after()), (Some(Reason::Paused), Some(ms(100_000))));
        }
        assert_eq!(watch.read(), ms(0));
    };
    tokio::join!(pausing, told).0.expect("stored");
    assert_eq!(watch.read(), ms(5_000));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn another_replica_hears_of_a_pause_at_one_gate() {
    let redis = redis_server::PrivateRedis::start();
    let replica = || {
        let store = tollgate::RedisStore::new(&redis.url()).expect("a URL").timeout(ms(10_000));
        let counted = Provider::new("acme").limit_in(Scope::route("/a"), limit("9/h"));
        on(&Arc::new(store), counted.limit_in(Scope::route("/a").each("tenant"), limit("9/h")))
    };
    let (one, other) = (replica(), replica());
    let asks = |limiter: &Limiter| [limiter.acquire(), limiter.acquire().route("/a").key("tenant", "blue")];
    for ask in asks(&other.1) {
        ask.or_reject().await.expect("there is room");
    }
    one.1.pause(Duration::from_secs(600)).await.expect("stored");
    // At gates that are there, and at one that is not.
    for ask in asks(&other.1).into_iter().chain([other.1.acquire().route("/a")]) {
        let error = ask.or_reject().await.expect_err("paused");
        assert_eq!(reason(&error), Some(Reason::Paused), "{error}");
        assert!(error.retry_after() > Some(Duration::from_secs(500)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_gate_has_a_queue_of_its_own() {
    let (_store, _tollgate, limiter) = memory(provider().queue(3));
    for call in calls(&limiter) {
        call.or_reject().await.expect("the first of its state");
    }
    let [search, blue, red, _] = calls(&limiter);
    let waiting = [search, blue, red].map(|ask| tokio::spawn(ask.into_future()));
    tokio::time::sleep(ms(1)).await;
    assert_eq!(limiter.peek().await.expect("in memory").queued, 3);
    let green = || limiter.acquire().route("/v1/{*rest}").key("tenant", "green");
    for ask in calls(&limiter).into_iter().take(3).chain([green()]) {
        let error = ask.await.expect_err("three wait already");
        assert!(error.is_queue_full(), "{error}");
    }
    let [first, others @ ..] = waiting;
    first.abort();
    first.await.expect_err("aborted");
    let fourth = green().await.expect("a place is free");
    assert_eq!(fourth.waited(), ms(0));
    let last = limiter.acquire().route(SEARCH).await.expect("a place is free");
    assert_eq!(last.waited(), ms(59_999));
    for other in others {
        assert_eq!(other.await.expect("no panic").expect("its turn comes").waited(), ms(60_000));
    }
}

#[tokio::test(start_paused = true)]
async fn each_gate_has_a_ceiling_of_its_own() {
    let two = NonZeroU32::new(2).expect("not 0");
    let (_store, _tollgate, limiter) = memory(provider().ceiling(two));
    let results = calls(&limiter).map(|call| call.or_reject().into_future());
    let mut refused = Vec::new();
    for result in results {
        refused.push(result.await.err().and_then(|error| reason(&error)));
    }
    assert_eq!(refused, [None, None, Some(Reason::Ceiling), Some(Reason::Ceiling)]);
    tokio::time::sleep(ms(500)).await;
    let [_, _, red, _] = calls(&limiter);
    red.or_reject().await.expect("half a second later there is one more");
}

#[tokio::test(start_paused = true)]
async fn a_gate_stays_behind_when_the_others_leave() {
    for word in [true, false] {
        let store = Arc::new(Far::default());
        let (tollgate, limiter) = on(&store, provider());
        for call in calls(&limiter) {
            call.or_reject().await.expect("the first of its state");
        }
        let waiting = calls(&limiter).map(|call| tokio::spawn(call.wait_at_most(ms(100_000)).into_future()));
        let [search, blue, red, free] = waiting;
        free.await.expect("no panic").expect("nothing limits it");
        tokio::time::sleep(ms(10)).await;
        if word {
            // The usual gate is the first to leave: the others take longer.
            store.takes(&[2, 40, 60, 80].map(ms));
            let leaving = tokio::time::timeout(ms(10_000), tollgate.shutdown());
            leaving.await.expect("every gate leaves");
            let goodbyes: usize = store.heard().values().map(|(_, goodbyes)| goodbyes).sum();
            assert_eq!(goodbyes, 4, "a gate that leaves later than the shutdown");
            for waiting in [search, blue, red] {
                assert!(waiting.await.expect("no panic").expect_err("shut down").is_closed());
            }
            // Nor does a gate that is made now give anything.
            for call in calls(&limiter).into_iter().chain([limiter.acquire().route("/v2")]) {
                assert!(call.await.expect_err("shut down").is_closed());
            }
        } else {
            [&search, &blue, &red].into_iter().for_each(JoinHandle::abort);
            drop((tollgate, limiter));
        }
        tokio::time::sleep(ms(10)).await;
        let heard = store.heard();
        let spoke = heard.values().filter(|(calls, _)| *calls > 0);
        assert_eq!(spoke.clone().count(), 4, "{heard:?}");
        assert!(spoke.into_iter().all(|(_, goodbyes)| *goodbyes == 1), "a word: {word}, {heard:?}");
        let full = [("1/min", SEARCH), ("1/min", "/v1/{*rest}:tenant=-")];
        tokio::time::sleep(ms(60_000)).await;
        for (text, scope) in full {
            assert_eq!(left(&store, text, scope).await, 1, "what was booked ahead went back");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_observed_or_disabled_is_limited_by_its_scope() {
    let (store, tollgate, limiter) = memory(provider().observe(true));
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    let requests = |url: &str| -> [RequestBuilder; 2] { [http.post(url).or_reject(), http.post(url)] };
    for request in requests(SEARCH_URL).into_iter().chain(requests(OTHER_URL)) {
        let toll = Toll::of(&request.header("tenant", "blue").send().await.expect("observed only")).cloned();
        let toll = toll.expect("a toll");
        assert_eq!((toll.waited(), toll.remaining()), (ms(0), None));
    }
    for _ in 0..3 {
        for call in calls(&limiter) {
            assert_eq!(call.or_reject().await.expect("observed only").remaining(), None);
        }
    }
    tokio::time::sleep(ms(200_000)).await;
    // One of each state can be had. The second search would wait; then the states of search and blue are used up,
    // and two more of red.
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (1, 3 + 3 + 2));
    assert_eq!(canned.times(), [ms(0); 4]);
    assert_eq!(left(&store, "1/min", SEARCH).await, 1);

    let tollgate = Tollgate::disabled();
    let http = canned.behind(&tollgate);
    let anything = http.post(SEARCH_URL).key("tenant", "blue").cost("tokens", u64::MAX).provider("any");
    assert!(Toll::of(&anything.send().await.expect("disabled")).is_none());
    let limiter = tollgate.provider("any").expect("any");
    for call in calls(&limiter) {
        let permit = call.or_reject().cost("tokens", u64::MAX).await.expect("disabled");
        permit.settle([("bytes", 1)]).expect("any");
    }
}
