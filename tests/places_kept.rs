//! A place in flight is kept by nobody: its call has ended, or has never begun.
#![cfg(feature = "middleware")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};

#[path = "support/hops.rs"]
mod hops;
#[path = "support/remote.rs"]
mod remote;
#[path = "support/mod.rs"]
mod support;

use hops::{Abandon, abandon};
use remote::Remote;
use support::{Watch, limiter};
use tollgate::{Limiter, Provider, Scope};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

async fn free(limiter: &Limiter) -> u64 {
    limiter.peek().await.expect("in memory").limits[0].left
}

#[tokio::test(start_paused = true)]
async fn at_most_so_many_fly_at_once_and_in_order() {
    let limiter = limiter(&["3 in flight"]);
    let (flying, begun) = (Arc::new(AtomicI64::new(0)), Arc::new(Watch::start()));
    let tasks: Vec<_> = (0..9)
        .map(|_| {
            let (limiter, flying, begun) = (limiter.clone(), flying.clone(), begun.clone());
            tokio::spawn(async move {
                let permit = limiter.acquire().await.expect("in time");
                let at = begun.read();
                assert!(flying.fetch_add(1, SeqCst) < 3);
                tokio::time::sleep(ms(50)).await;
                flying.fetch_sub(1, SeqCst);
                drop(permit);
                at
            })
        })
        .collect();
    let mut at = Vec::new();
    for task in tasks {
        at.push(task.await.expect("no panic"));
    }
    assert_eq!(at, [0, 0, 0, 50, 50, 50, 100, 100, 100].map(ms));
    assert_eq!(free(&limiter).await, 3);
}

#[tokio::test(start_paused = true)]
async fn who_would_not_wait_is_told_that_nobody_knows_when() {
    let limiter = limiter(&["1 in flight"]);
    let first = limiter.acquire().await.expect("free");
    let refused = limiter.acquire().or_reject().await.expect_err("full");
    assert!(refused.is_rejected() && refused.retry_after().is_none(), "{refused}");
    let waits = limiter.acquire().wait_at_most(ms(70)).await.expect_err("still full");
    assert!(waits.is_rejected(), "{waits}");
    drop(first);
    limiter.acquire().or_reject().await.expect("free again");
}

/// Whatever becomes of a permit, its place is free when it is gone.
#[tokio::test(start_paused = true)]
async fn a_permit_is_its_call() {
    for store in [Remote::here(), Remote::new(ms(1))] {
        let (_tollgate, limiter) = store.replica(&["3 in flight", "100 tokens/min"]);
        let take = async || limiter.acquire().cost("tokens", 10).or_reject().await.expect("free");
        let (dropped, settled, returned) = (take().await, take().await, take().await);
        let freed = async |left| {
            tokio::time::sleep(ms(3)).await;
            assert_eq!(free(&limiter).await, left);
        };
        freed(0).await;
        drop(dropped);
        freed(1).await;
        // It says what its tokens were, and ends.
        settled.settle([("tokens", 20)]).expect("a unit");
        freed(2).await;
        returned.give_back();
        freed(3).await;
        // What was settled of calls is no place: the call of another still flies.
        let (one, _other) = (take().await, take().await);
        one.settle([("calls", 0)]).expect("a unit");
        freed(2).await;
        let one = take().await;
        one.settle([("calls", 5)]).expect("a unit");
        freed(2).await;
        let heavy = limiter.acquire().cost("calls", 2).or_reject().await.expect("free");
        freed(0).await;
        drop(heavy);
        freed(2).await;
        let none = limiter.acquire().cost("calls", 0).or_reject().await.expect("free");
        freed(2).await;
        drop(none);
        freed(2).await;
    }
}

/// Dropped at any point, with a place free or not: what it had, or stood in line for, is free.
#[tokio::test(start_paused = true)]
async fn by_a_question_that_is_dropped() {
    let stores = [Remote::here, || Remote::new(ms(0)), || Remote::new(ms(2))];
    for (store, full) in stores.into_iter().flat_map(|store| [(store, false), (store, true)]) {
        for when in [Abandon::AtOnce, Abandon::Woken] {
            for polls in 0.. {
                let store = store();
                let ((_a, a), (_b, b)) =
                    (store.replica(&["1 in flight"]), store.another().replica(&["1 in flight"]));
                tokio::time::sleep(ms(20)).await;
                let holds = if full { Some(b.acquire().await.expect("free")) } else { None };
                let asks = async move {
                    let permit = a.acquire().await;
                    tokio::time::sleep(ms(1)).await;
                    permit.map(drop)
                };
                let asks = tokio::spawn(abandon(asks, when(polls)));
                tokio::time::sleep(ms(20)).await;
                drop(holds);
                let done = asks.await.expect("no panic").is_some();
                tokio::time::sleep(ms(10)).await;
                let point = format!("{store:?}, full {full}, {:?}, done {done}", when(polls));
                assert_eq!(free(&b).await, 1, "{point}");
                b.acquire().or_reject().await.unwrap_or_else(|error| panic!("{error}: {point}"));
                if done {
                    assert!(polls > 1, "{point}: nothing was tested");
                    break;
                }
            }
        }
    }
}

/// What a gate holds for a slot that has not come, or for a caller who has gone, goes back.
#[tokio::test(start_paused = true)]
async fn by_who_waited_for_a_slot_and_left() {
    let store = Remote::new(ms(2));
    let limits = ["2 in flight", "1/10s unpaced guard 0"];
    let ((_a, a), (_b, b)) = (store.replica(&limits), store.another().replica(&limits));
    drop(a.acquire().await.expect("free"));
    for waits in [ms(9_900), ms(9_950), ms(9_990), ms(9_998)] {
        // Its slot is booked; it leaves shortly before, and the place with it.
        let left = tokio::time::timeout(waits, a.acquire().wait_at_most(Duration::from_secs(30))).await;
        left.expect_err("too early");
        tokio::time::sleep(ms(10)).await;
        assert_eq!(free(&b).await, 2);
        tokio::time::sleep(Duration::from_secs(10)).await;
        drop(b.acquire().or_reject().await.expect("not charged"));
    }
}

#[tokio::test(start_paused = true)]
async fn by_a_tollgate_that_is_shut_down() {
    let store = Remote::new(ms(1));
    let ((first, a), (_b, b)) = (
        store.replica(&["3 in flight", "2/h unpaced guard 0"]),
        store.another().replica(&["3 in flight", "2/h unpaced guard 0"]),
    );
    let (one, two) = (a.acquire().await.expect("free"), a.acquire().await.expect("free"));
    let waits = tokio::spawn(async move { a.acquire().await.map(|_| ()) });
    tokio::time::sleep(ms(50)).await;
    let time = Watch::start();
    first.shutdown().await;
    assert!(time.read() <= ms(10), "{:?}", time.read());
    assert!(waits.await.expect("no panic").expect_err("closed").is_closed());
    // What flies keeps its places, for longer than a lease; what does not has none.
    assert_eq!(free(&b).await, 1);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(free(&b).await, 1);
    drop(one);
    tokio::time::sleep(ms(10)).await;
    assert_eq!(free(&b).await, 2);
    first.shutdown().await;
    drop(first);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(free(&b).await, 2);
    drop(two);
    tokio::time::sleep(ms(10)).await;
    assert_eq!(free(&b).await, 3);
    let calls = store.calls();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(store.calls(), calls, "nobody flies, and it goes on");
}

/// A gate that has to go because there are so many others.
#[tokio::test(start_paused = true)]
async fn by_a_gate_that_is_forgotten() {
    let provider = Provider::new("acme")
        .limit_in(Scope::all().each("tenant"), "1 in flight lease 1s".parse().expect("a limit"));
    let store = Remote::new(ms(0));
    let (_tollgate, limiter) = store.replica_of(provider, &[]);
    let first = limiter.acquire().key("tenant", "first").await.expect("free");
    for tenant in 0..3_000 {
        let asked = limiter.acquire().key("tenant", format!("{tenant}")).or_reject().await;
        drop(asked.expect("its own"));
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    limiter.acquire().key("tenant", "first").or_reject().await.expect_err("it flies");
    drop(first);
    tokio::time::sleep(ms(1)).await;
    limiter.acquire().key("tenant", "first").or_reject().await.expect("it has landed");
    // Nobody flies: nothing goes on.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let calls = store.calls();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(store.calls(), calls);
}
