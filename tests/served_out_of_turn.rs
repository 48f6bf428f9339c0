//! First come, first served within a replica; the wait of a queue is what its rate says.

#[path = "support/mod.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use support::with;
use tokio::sync::Mutex;
use tollgate::{Limiter, Priority, Provider};

#[tokio::test(start_paused = true)]
async fn callers_fly_in_the_order_of_their_arrival() {
    let limiter = with(Provider::new("acme"), &["20/s guard 10ms"]);
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..100 {
        let (limiter, order) = (limiter.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            limiter.acquire().await.expect("served");
            order.lock().await.push(number);
        }));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(*order.lock().await, (0..100).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_the_queue_before_it() {
    let limiter = with(Provider::new("acme").max_wait(Duration::from_secs(600)), &["100/s guard 10ms"]);
    let waits = Arc::new(Mutex::new(Vec::new()));
    let started = support::Watch::start();
    let started = Arc::new(started);
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (limiter, waits, started) = (limiter.clone(), waits.clone(), started.clone());
            tokio::spawn(async move {
                while started.read() < Duration::from_secs(12) {
                    let permit = limiter.acquire().await.expect("served");
                    if started.read() > Duration::from_secs(2) {
                        waits.lock().await.push(permit.waited());
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let mut waits = waits.lock().await.clone();
    waits.sort();
    let p99 = waits[waits.len() * 99 / 100].as_secs_f64();
    let fair = 50.0 / (100.0 / 1.01);
    assert!(p99 <= 1.2 * fair, "p99 {p99:.3} s, fair {fair:.3} s");
}

/// Of who waits at one gate: strictly by priority, until one has waited for as long as it may be overtaken.
#[tokio::test(start_paused = true)]
async fn who_waits_for_long_is_overtaken_for_ever() {
    let provider =
        Provider::new("acme").ageing(Duration::from_secs(100)).max_wait(Duration::from_secs(3_600));
    let limiter = with(provider, &["1/min unpaced guard 0s"]);
    limiter.acquire().await.expect("free");
    let served = Served::default();
    let mut tasks = Vec::new();
    // One a minute is served; two more come in the same time, a low one first of all.
    for (name, priority) in [
        ("low", Priority::Low),
        ("high 0", Priority::High),
        ("normal", Priority::Normal),
        ("high 1", Priority::High),
    ] {
        tasks.push(queue(&limiter, &served, name, priority));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(101)).await;
    tasks.push(queue(&limiter, &served, "late high", Priority::High));
    tokio::time::sleep(Duration::from_secs(100)).await;
    tasks.push(queue(&limiter, &served, "later high", Priority::High));
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(*served.lock().await, ["high 0", "high 1", "normal", "late high", "low", "later high"]);
}

type Served = Arc<Mutex<Vec<&'static str>>>;

fn queue(
    limiter: &Limiter,
    served: &Served,
    name: &'static str,
    priority: Priority,
) -> tokio::task::JoinHandle<()> {
    let (asked, served) = (limiter.acquire().priority(priority).into_future(), served.clone());
    tokio::spawn(async move {
        asked.await.expect("in time");
        served.lock().await.push(name);
    })
}
