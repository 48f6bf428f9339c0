//! Calls in flight beside other limits: who waits for the one keeps what others could have of the other.

#[path = "support/remote.rs"]
mod remote;
#[path = "support/mod.rs"]
mod support;

use std::time::Duration;

use remote::Remote;
use support::Watch;
use tokio::task::JoinHandle;
use tollgate::{Limiter, Provider, Scope};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

async fn left(limiter: &Limiter) -> Vec<u64> {
    limiter.peek().await.expect("in memory").limits.iter().map(|limit| limit.left).collect()
}

/// Waits its turn, and flies for so long. When it set out.
fn call(limiter: &Limiter, flies: u64, time: &std::sync::Arc<Watch>) -> JoinHandle<Duration> {
    let (limiter, time) = (limiter.clone(), time.clone());
    tokio::spawn(async move {
        let permit = limiter.acquire().await.expect("in time");
        let at = time.read();
        tokio::time::sleep(ms(flies)).await;
        drop(permit);
        at
    })
}

/// All or nothing, with each kind of limit: what is full charges no other.
#[tokio::test(start_paused = true)]
async fn of_a_window_while_there_is_no_place() {
    let others = [
        "3/h unpaced guard 0",
        "3/day resets 00:00 UTC guard 0",
        "1/h burst 3 guard 0",
        "3/h aligned guard 0",
    ];
    for other in others {
        let store = Remote::new(ms(1));
        let ((_a, a), (_b, b)) =
            (store.replica(&["1 in flight", other]), store.another().replica(&["1 in flight", other]));
        let holds = a.acquire().await.expect("free");
        assert_eq!(left(&a).await, [0, 2], "{other}");
        b.acquire().or_reject().await.expect_err("full");
        let waits = tokio::spawn(async move { b.acquire().await });
        tokio::time::sleep(ms(700)).await;
        assert_eq!(left(&a).await, [0, 2], "{other}: who waits for a place keeps none of the window");
        drop(holds);
        let waited = waits.await.expect("no panic").expect("in time");
        assert_eq!(left(&a).await, [0, 1], "{other}");
        drop(waited);
    }
}

/// And the other way round: what has no room takes no place, be it refused or far.
#[tokio::test(start_paused = true)]
async fn of_places_while_there_is_no_room() {
    let others = ["1/10s unpaced guard 0", "1/10s burst 1 guard 0", "1/10s aligned guard 0", "1/10s guard 0"];
    for other in others {
        let store = Remote::new(ms(1));
        let limits = ["2 in flight lease 1s", other];
        let ((_a, a), (_b, b)) = (store.replica(&limits), store.another().replica(&limits));
        // Whatever time of day it is, a window has just begun.
        drop(a.acquire().await.expect("free"));
        let used_up = a.peek().await.expect("in memory").limits[1].next_free;
        tokio::time::sleep(used_up + ms(10)).await;
        let time = std::sync::Arc::new(Watch::start());
        drop(a.acquire().await.expect("free"));
        for limiter in [&a, &b] {
            let refused = limiter.acquire().or_reject().await.expect_err("used up");
            assert!(refused.retry_after() > Some(ms(100)), "{other}: {refused}");
        }
        let waits = [call(&a, 1, &time), call(&b, 1, &time)];
        tokio::time::sleep(ms(1_000)).await;
        assert_eq!(left(&a).await[0], 2, "{other}: nobody flies");
        let calls = store.calls();
        tokio::time::sleep(ms(5_000)).await;
        assert_eq!(store.calls(), calls, "{other}: there is nothing to be said");
        let mut at = Vec::new();
        for waits in waits {
            at.push(waits.await.expect("no panic"));
        }
        let apart = at[0].abs_diff(at[1]);
        assert!(apart >= ms(9_940) && apart <= ms(10_100), "{other}: {at:?}");
        tokio::time::sleep(ms(5)).await;
        assert_eq!(left(&a).await[0], 2, "{other}");
    }
}

/// Five tenants wait for their own windows; the places are everybody's.
#[tokio::test(start_paused = true)]
async fn of_places_by_those_of_another_scope() {
    let store = Remote::new(ms(1));
    let provider = Provider::new("acme").limit("3 in flight".parse().expect("a limit"));
    let provider =
        provider.limit_in(Scope::all().each("tenant"), "1/min unpaced guard 0".parse().expect("a limit"));
    let (_tollgate, limiter) = store.replica_of(provider, &[]);
    let mut waits = Vec::new();
    for tenant in 0..5 {
        let call = || limiter.acquire().key("tenant", format!("{tenant}"));
        drop(call().await.expect("free"));
        waits.push(tokio::spawn(call().into_future()));
    }
    tokio::time::sleep(ms(100)).await;
    let time = Watch::start();
    let free: Vec<_> =
        [limiter.acquire().key("tenant", "x").await, limiter.acquire().key("tenant", "y").await]
            .into_iter()
            .map(|permit| permit.expect("free"))
            .collect();
    assert!(time.read() <= ms(10), "{:?}", time.read());
    drop(free);
    for (tenant, waits) in waits.into_iter().enumerate() {
        let permit = waits.await.expect("no panic").expect("in time");
        assert!(permit.waited() <= ms(60_020), "{tenant} waited {:?}", permit.waited());
        assert!(permit.waited() >= ms(59_900), "{tenant} waited {:?}", permit.waited());
    }
}

/// One route is full, and has a line; the other is not.
#[tokio::test(start_paused = true)]
async fn of_a_queue_by_those_of_another_scope() {
    let limit = |route| (Scope::route(route), "1 in flight".parse().expect("a limit"));
    let provider = ["/a", "/b"]
        .map(limit)
        .into_iter()
        .fold(Provider::new("acme"), |provider, (scope, limit)| provider.limit_in(scope, limit));
    let store = Remote::new(ms(1));
    let (_tollgate, limiter) = store.replica_of(provider.limit("5 in flight".parse().expect("a limit")), &[]);
    let holds = limiter.acquire().route("/a").await.expect("free");
    let waits: Vec<_> = (0..7).map(|_| tokio::spawn(limiter.acquire().route("/a").into_future())).collect();
    tokio::time::sleep(ms(50)).await;
    for _ in 0..3 {
        let time = Watch::start();
        drop(limiter.acquire().route("/b").or_reject().await.expect("free"));
        tokio::time::sleep(ms(3)).await;
        drop(limiter.acquire().route("/b").await.expect("free"));
        assert!(time.read() <= ms(10), "{:?}", time.read());
        tokio::time::sleep(ms(3)).await;
    }
    drop(holds);
    for waits in waits {
        drop(waits.await.expect("no panic").expect("its turn"));
    }
}

/// Its slot has come, but all places are taken: it stands in line for one, and what it had of the window others have.
#[tokio::test(start_paused = true)]
async fn of_a_window_by_a_slot_without_a_place() {
    let store = Remote::new(ms(1));
    let limits = ["1 in flight", "2/10s unpaced guard 0"];
    let ((_a, a), (_b, b)) = (store.replica(&limits), store.another().replica(&limits));
    let time = std::sync::Arc::new(Watch::start());
    drop(a.acquire().await.expect("free"));
    tokio::time::sleep(ms(1_000)).await;
    // Flies until 15 s.
    let long = call(&a, 14_000, &time);
    tokio::time::sleep(ms(10)).await;
    // Its slot would be at 10 s.
    let waits = call(&b, 1, &time);
    tokio::time::sleep(ms(11_000)).await;
    assert_eq!(left(&a).await, [0, 2], "both have passed, and nobody has a slot");
    long.await.expect("no panic");
    let at = waits.await.expect("no panic");
    assert!(at >= ms(15_000) && at <= ms(15_020), "{at:?}");
}

/// Both saturated: neither is exceeded, and the tighter one is used up.
#[tokio::test(start_paused = true)]
async fn of_both_by_many() {
    // Two places of 100 ms are 20 a second, 8 ms of each is the way.
    for (window, least) in
        [("10/1s unpaced guard 0", 95), ("10/1s guard 0", 93), ("40/1s unpaced guard 0", 150)]
    {
        let store = Remote::new(ms(1));
        let limits = ["2 in flight", window];
        let ((_a, a), (_b, b)) = (store.replica(&limits), store.another().replica(&limits));
        let time = std::sync::Arc::new(Watch::start());
        let calls: Vec<_> = (0..120).flat_map(|_| [call(&a, 100, &time), call(&b, 100, &time)]).collect();
        tokio::time::sleep(ms(10_000)).await;
        calls.iter().filter(|call| !call.is_finished()).for_each(JoinHandle::abort);
        let mut at = Vec::new();
        for call in calls {
            at.extend(call.await);
        }
        at.sort_unstable();
        let most: usize = window.split('/').next().and_then(|max| max.parse().ok()).expect("a number");
        // A permit flies late by half a guard, which is a moment at least: 2 ms, and the way.
        assert!(at.windows(most + 1).all(|it| it[most] - it[0] >= ms(990)), "{window}: {at:?}");
        assert!(at.windows(3).all(|it| it[2] - it[0] >= ms(100)), "{window}: {at:?}");
        assert!(at.len() >= least, "{window}: {} in 10 s", at.len());
    }
}

/// Tokens are settled when the call has ended; a debt waits without a place.
#[tokio::test(start_paused = true)]
async fn of_places_by_a_debt_of_tokens() {
    let store = Remote::new(ms(1));
    let (_tollgate, limiter) = store.replica(&["2 in flight", "100 tokens/min unpaced guard 0"]);
    let permit = limiter.acquire().cost("tokens", 60).await.expect("free");
    permit.settle([("tokens", 150)]).expect("a unit");
    tokio::time::sleep(ms(5)).await;
    assert_eq!(left(&limiter).await, [2, 0]);
    let waits = tokio::spawn(limiter.acquire().cost("tokens", 50).into_future());
    tokio::time::sleep(ms(100)).await;
    assert_eq!(left(&limiter).await, [2, 0]);
    // What takes no tokens does not wait behind it in the store, only here.
    let other = store.another().replica(&["2 in flight", "100 tokens/min unpaced guard 0"]);
    drop(other.1.acquire().or_reject().await.expect("free"));
    let permit = waits.await.expect("no panic").expect("in time");
    assert!(permit.waited() >= Duration::from_secs(50), "{:?}", permit.waited());
    let never = limiter.acquire().cost("tokens", 101).await.expect_err("never");
    assert!(never.is_impossible());
}
