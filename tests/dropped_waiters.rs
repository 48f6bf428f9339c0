//! Callers give up, at every point: what they leave behind must be nothing.

#[path = "support/mod.rs"]
mod support;

use std::{future::IntoFuture, time::Duration};

use support::{Watch, abandon_after, limiter};
use tollgate::Limiter;

/// Takes what is free now.
async fn drain(limiter: &Limiter) -> usize {
    let mut taken = 0;
    while limiter.acquire().or_reject().await.is_ok() {
        taken += 1;
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_await_point_a_call_is_charged_to_nobody() {
    for polls in 0..4 {
        let limiter = limiter(&["10/s unpaced guard 0"]);
        let done = abandon_after(limiter.acquire().into_future(), polls).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        // A permit that came out is charged; one that did not is not.
        assert_eq!(drain(&limiter).await, if done { 9 } else { 10 }, "dropped after {polls} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_while_it_waits_a_call_frees_its_slot() {
    let limiter = limiter(&["10/s unpaced guard 0"]);
    assert_eq!(drain(&limiter).await, 10);
    let waiting = limiter.clone();
    let task = tokio::spawn(async move { waiting.acquire().await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    task.abort();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(drain(&limiter).await, 10, "the slot of the dropped call is free again");
    assert_eq!(limiter.peek().await.expect("in memory").queued, 0);
}

#[tokio::test(start_paused = true)]
async fn the_next_in_line_gets_what_a_dropped_call_held() {
    let limiter = limiter(&["1/s unpaced guard 0"]);
    assert_eq!(drain(&limiter).await, 1);
    let watch = Watch::start();
    let first = limiter.clone();
    let first = tokio::spawn(async move { first.acquire().await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let second = limiter.clone();
    let second = tokio::spawn(async move { second.acquire().await.map(|_| ()) });
    tokio::time::sleep(Duration::from_millis(100)).await;
    first.abort();
    second.await.expect("not aborted").expect("its turn comes");
    let waited = watch.read();
    assert!((Duration::from_millis(1_000)..Duration::from_millis(1_003)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_permit_given_back_is_there_for_others() {
    let limiter = limiter(&["2/s unpaced guard 0"]);
    let permit = limiter.acquire().or_reject().await.expect("there is room");
    assert_eq!(drain(&limiter).await, 1);
    permit.give_back();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(drain(&limiter).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_dropped_calls_cost_the_others_nothing() {
    let limiter = limiter(&["100/s guard 10ms"]);
    let mut tasks = Vec::new();
    for _ in 0..300 {
        let limiter = limiter.clone();
        tasks.push(tokio::spawn(async move { limiter.acquire().await.map(|permit| permit.waited()) }));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for task in tasks.iter().skip(100).step_by(2) {
        task.abort();
    }
    let mut waits = Vec::new();
    for task in tasks {
        waits.extend(task.await.ok().map(|waited| waited.expect("served")));
    }
    assert_eq!(waits.len(), 200);
    // 100 at once, 100 at the pace from 1.01 s on; one permit that was on its way when its caller left.
    let last = waits.iter().max().expect("some");
    assert!(*last <= Duration::from_millis(1_010 + 1_010 + 15), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn the_far_slot_of_a_dropped_call_comes_back_at_once() {
    let limiter = limiter(&["5/10s unpaced guard 0"]);
    let take = |cost| limiter.acquire().cost("requests", cost).or_reject().into_future();
    take(3).await.expect("there is room");
    tokio::time::sleep(Duration::from_secs(5)).await;
    take(2).await.expect("there is room");
    // All five are there at 15 s; three of them at 10 s.
    let heavy = limiter.clone();
    let heavy = tokio::spawn(async move { heavy.acquire().cost("requests", 5).await.map(|_| ()) });
    tokio::time::sleep(Duration::from_secs(1)).await;
    heavy.abort();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(limiter.peek().await.expect("in memory").limits[0].left, 3);
}
