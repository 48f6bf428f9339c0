//! Who waits for a place in flight is served out of turn, or holds up who comes behind.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

#[path = "support/remote.rs"]
mod remote;
#[path = "support/mod.rs"]
mod support;

use remote::Remote;
use support::Watch;
use tokio::task::JoinHandle;
use tollgate::{
    Limiter, Priority,
    ledger::{Call, Costs, Want},
    store::{Quota, Store},
};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

async fn free(limiter: &Limiter) -> u64 {
    limiter.peek().await.expect("in memory").limits[0].left
}

/// Waits its turn, notes its name, and flies for so long.
fn call(limiter: &Limiter, name: &'static str, flies: u64, order: &Order) -> JoinHandle<()> {
    let (limiter, order) = (limiter.clone(), order.clone());
    tokio::spawn(async move {
        let permit = limiter.acquire().await.expect("in time");
        order.0.lock().expect("no panic").push(name);
        tokio::time::sleep(ms(flies)).await;
        drop(permit);
    })
}

#[derive(Clone, Default)]
struct Order(Arc<Mutex<Vec<&'static str>>>);

impl Order {
    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }
}

async fn all(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.expect("no panic");
    }
}

/// Two replicas, by themselves and in one process, at several distances.
async fn saturate(max: usize, flies: impl Fn(u64) -> u64, judge: impl Fn(&[&'static str])) {
    let stores = [0, 1, 7].map(|way| Remote::new(ms(way)));
    for store in stores.into_iter().chain([Remote::here()]) {
        let limit = format!("{max} in flight");
        let ((_a, a), (_b, b)) = (store.replica(&[&limit]), store.another().replica(&[&limit]));
        let order = Order::default();
        // All are there before the first ends.
        let pairs = (0..40).map(|at| [(&a, "a", flies(2 * at)), (&b, "b", flies(2 * at + 1))]);
        all(pairs.flatten().map(|(limiter, name, flies)| call(limiter, name, flies, &order)).collect()).await;
        // What is free at first goes to who is faster, and the other has as much more in the end.
        let order = order.take();
        assert_eq!(order.len(), 80);
        judge(&order[max..order.len() - max]);
    }
}

#[tokio::test(start_paused = true)]
async fn two_that_always_wait_take_turns() {
    saturate(1, |_| 100, |order| assert!(order.windows(2).all(|pair| pair[0] != pair[1]), "{order:?}")).await;
    let uneven = |at| 20 + at * 37 % 100;
    saturate(1, uneven, |order| assert!(order.windows(2).all(|pair| pair[0] != pair[1]), "{order:?}")).await;
}

#[tokio::test(start_paused = true)]
async fn several_places_are_shared_alike() {
    for max in [2, 3, 5] {
        let uneven = |at| 20 + at * 37 % 100;
        saturate(max, uneven, |order| {
            // As long as both have somebody who waits.
            let both = &order[..60];
            let first = both.iter().filter(|name| **name == "a").count();
            assert!((27..=33).contains(&first), "{first} of 60 with {max} places: {both:?}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_waits_behind() {
    let store = Remote::new(ms(1));
    let replicas = [store.another(), store.another(), store.another()].map(|it| it.replica(&["1 in flight"]));
    let [a, b, c] = replicas.each_ref().map(|(_, limiter)| limiter);
    let order = Order::default();
    let first = a.acquire().await.expect("free");
    let mut tasks = vec![call(b, "b", 10, &order)];
    tokio::time::sleep(ms(20)).await;
    drop(first);
    // Its place is free, but b has not heard of it yet.
    tasks.extend([call(c, "c", 10, &order), call(a, "a", 10, &order)]);
    all(tasks).await;
    assert_eq!(order.take()[0], "b");
}

#[tokio::test(start_paused = true)]
async fn who_would_not_wait_leaves_to_others_what_they_have_coming() {
    let store = Remote::new(ms(1));
    let ((_a, a), (_b, b), (_c, c)) = (
        store.replica(&["1 in flight"]),
        store.another().replica(&["1 in flight"]),
        store.another().deaf().replica(&["1 in flight"]),
    );
    let first = a.acquire().await.expect("free");
    // It does not hear that it is called up, and asks again after half a second.
    let waits = tokio::spawn(async move { c.acquire().await.map(|_| ()) });
    tokio::time::sleep(ms(20)).await;
    drop(first);
    let time = Watch::start();
    while !waits.is_finished() {
        let refused = [a.acquire().or_reject().await, b.acquire().or_reject().await];
        assert!(refused.iter().all(Result::is_err) || waits.is_finished(), "after {:?}", time.read());
    }
    assert!(ms(400) < time.read() && time.read() < ms(520), "{:?}", time.read());
    waits.await.expect("no panic").expect("served");
}

/// Nobody is called up for one that was refused, and nobody waits for it.
#[tokio::test(start_paused = true)]
async fn who_would_not_wait_leaves_no_trace() {
    let store = Remote::new(ms(1));
    let ((_a, a), (_b, b)) = (store.replica(&["1 in flight"]), store.another().replica(&["1 in flight"]));
    let first = a.acquire().await.expect("free");
    for _ in 0..3 {
        b.acquire().or_reject().await.expect_err("full");
    }
    drop(first);
    tokio::time::sleep(ms(5)).await;
    let first = a.acquire().or_reject().await.expect("nobody has it coming");
    // Who waits after one that would not stands in the line from then on.
    b.acquire().or_reject().await.expect_err("full");
    let (time, order) = (Watch::start(), Order::default());
    let tasks = vec![call(&b, "b", 0, &order)];
    tokio::time::sleep(ms(10)).await;
    drop(first);
    all(tasks).await;
    assert!(time.read() <= ms(15), "{:?}", time.read());
}

/// In one replica. Asked with those who wait, it must not be left without an answer.
#[tokio::test(start_paused = true)]
async fn who_would_not_wait_is_refused_behind_one_who_does() {
    for (way, store) in [(0, Remote::here()), (1, Remote::new(ms(1)))] {
        let (_a, a) = store.replica(&["1 in flight"]);
        let order = Order::default();
        let first = a.acquire().await.expect("free");
        let waits = call(&a, "waits", 0, &order);
        tokio::time::sleep(ms(20)).await;
        let (time, calls) = (Watch::start(), store.calls());
        let refused = a.acquire().or_reject().await.expect_err("full");
        assert!(refused.is_rejected() && refused.retry_after().is_none(), "{refused}");
        assert_eq!((time.read(), store.calls() - calls), (ms(2 * way), 1));
        drop(first);
        waits.await.expect("no panic");
    }
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_is_not_waited_for() {
    for (way, store) in [(0, Remote::here()), (0, Remote::new(ms(0))), (1, Remote::new(ms(1)))] {
        let replicas = [(); 3].map(|()| store.another().replica(&["1 in flight"]));
        let [a, b, c] = replicas.each_ref().map(|(_, limiter)| limiter.clone());
        let first = a.acquire().await.expect("free");
        let order = Order::default();
        let gives_up = tokio::spawn(async move { b.acquire().wait_at_most(ms(50)).await.map(|_| ()) });
        tokio::time::sleep(ms(10)).await;
        let tasks = vec![call(&c, "c", 0, &order)];
        // Given up before a place is free, and after: the next in line is called up by whoever tells.
        gives_up.await.expect("no panic").expect_err("too late");
        tokio::time::sleep(ms(10)).await;
        let time = Watch::start();
        drop(first);
        all(tasks).await;
        assert!(time.read() <= ms(3 * way), "{way} ms: {:?}", time.read());
    }
}

/// It was called up and is gone before it heard of it.
#[tokio::test(start_paused = true)]
async fn who_goes_away_when_it_is_called_up_calls_up_the_next() {
    for polls in 0..12 {
        let store = Remote::new(ms(1));
        let replicas = [(); 3].map(|()| store.another().replica(&["1 in flight"]));
        let [a, b, c] = replicas.each_ref().map(|(_, limiter)| limiter.clone());
        let first = a.acquire().await.expect("free");
        let goes = tokio::spawn(async move { b.acquire().await.map(drop) });
        tokio::time::sleep(ms(10)).await;
        let order = Order::default();
        let tasks = vec![call(&c, "c", 0, &order)];
        tokio::time::sleep(ms(10)).await;
        drop(first);
        let time = Watch::start();
        tokio::time::sleep(Duration::from_micros(500 * polls)).await;
        goes.abort();
        all(tasks).await;
        assert!(time.read() <= ms(12), "gone after {polls}: {:?}", time.read());
        tokio::time::sleep(ms(5)).await;
        assert_eq!(free(&a).await, 1);
    }
}

/// A process that is gone without a word while it waited: those behind it do not wait for it for long.
#[tokio::test(start_paused = true)]
async fn who_is_dead_holds_up_the_others_for_a_moment() {
    for phase in (0..500).step_by(50) {
        let store = Remote::new(ms(1));
        let ((_a, a), (_b, b)) = (store.replica(&["1 in flight"]), store.another().replica(&["1 in flight"]));
        let first = a.acquire().await.expect("free");
        let order = Order::default();
        let limit = "1 in flight".parse::<tollgate::Limit>().expect("a limit");
        let quota = Quota::new("acme", [limit]);
        let wants = vec![Want { costs: Costs::same(1, 1), class: 1, budget: None, count: 1 }];
        let dead = Call { member: 7, number: 1, horizon: 50_000, wants, ..Call::default() };
        store.book(&quota, &dead).await.expect("in memory");
        let time = Watch::start();
        tokio::time::sleep(ms(phase)).await;
        let tasks = vec![call(&b, "b", 0, &order)];
        tokio::time::sleep(ms(10)).await;
        drop(first);
        all(tasks).await;
        assert!(time.read() >= ms(900), "it stood there: {:?}", time.read());
        assert!(time.read() <= ms(1_510), "{phase}: {:?}", time.read());
    }
}

/// Who wants several at once waits until there are so many: those who want one would always be faster.
#[tokio::test(start_paused = true)]
async fn who_wants_several_is_never_served() {
    let store = Remote::new(ms(1));
    let ((_a, a), (_b, b)) = (store.replica(&["3 in flight"]), store.another().replica(&["3 in flight"]));
    let order = Order::default();
    let mut tasks = Vec::new();
    for _ in 0..30 {
        tasks.push(call(&a, "light", 30, &order));
        tokio::time::sleep(ms(5)).await;
    }
    let time = Watch::start();
    let heavy = b.acquire().cost("calls", 3).await.expect("in time");
    assert!(time.read() <= ms(50), "{:?}", time.read());
    assert_eq!(free(&b).await, 0);
    drop(heavy);
    all(tasks).await;
}

/// In one replica: there is a place for the second, but not yet for the first.
#[tokio::test(start_paused = true)]
async fn who_wants_one_waits_behind_who_wants_several() {
    let (_a, a) = Remote::new(ms(1)).replica(&["2 in flight"]);
    let order = Order::default();
    let (first, mut tasks) = (a.acquire().await.expect("free"), Vec::new());
    let asks = |name, cost| {
        let (a, order) = (a.clone(), order.clone());
        tokio::spawn(async move {
            let permit = a.acquire().cost("calls", cost).await.expect("in time");
            order.0.lock().expect("no panic").push(name);
            drop(permit);
        })
    };
    for (name, cost) in [("several", 2), ("one", 1)] {
        tasks.push(asks(name, cost));
        tokio::time::sleep(ms(10)).await;
    }
    // Who would not wait has the store asked for all three at once.
    a.acquire().or_reject().await.expect_err("it is behind them");
    assert_eq!((free(&a).await, order.take().len()), (1, 0));
    drop(first);
    all(tasks).await;
    assert_eq!(order.take(), ["several", "one"]);
}

/// The call that has the place may need one of these to end, as for a redirect hop.
#[tokio::test(start_paused = true)]
async fn who_needs_no_place_waits_behind_nobody() {
    for (way, store) in [(0, Remote::here()), (3, Remote::new(ms(3)))] {
        // Before the line, while it is asked for, and after.
        for (later, rejects) in (0..8).flat_map(|later| [(later, false), (later, true)]) {
            let (_a, a) = store.another().replica(&["1 in flight", "100/s unpaced"]);
            let first = a.acquire().await.expect("free");
            let order = Order::default();
            let waits = call(&a, "waits", 0, &order);
            tokio::time::sleep(ms(2 * later)).await;
            let point = format!("{way} ms, {later} later, rejects {rejects}");
            let time = Watch::start();
            let ask = a.acquire().cost("calls", 0).priority(Priority::Low);
            let ask = if rejects { ask.or_reject() } else { ask };
            ask.await.unwrap_or_else(|error| panic!("{point}: {error}"));
            // Its own call, after the one under way.
            assert!(time.read() <= ms(4 * way), "{point}: {:?}", time.read());
            assert!(!waits.is_finished(), "{point}");
            drop(first);
            waits.await.expect("no panic");
        }
    }
}

/// Many of these, at a pace: they are asked for as if nobody stood in a line.
#[tokio::test(start_paused = true)]
async fn who_needs_no_place_does_not_wait_for_the_next_look_at_the_line() {
    let took = async |line: bool| {
        let (_a, a) = Remote::new(ms(1)).replica(&["1 in flight", "50/s"]);
        let first = a.acquire().await.expect("free");
        let order = Order::default();
        let waits = line.then(|| call(&a, "waits", 0, &order));
        tokio::time::sleep(ms(20)).await;
        let time = Watch::start();
        let asks = |_| {
            let a = a.clone();
            tokio::spawn(async move { drop(a.acquire().cost("calls", 0).await.expect("in time")) })
        };
        all((0..100).map(asks).collect()).await;
        let took = time.read();
        drop(first);
        all(waits.into_iter().collect()).await;
        took
    };
    let (alone, behind) = (took(false).await, took(true).await);
    assert!(behind < alone + ms(50), "{behind:?}, and {alone:?} if nobody stands in a line");
}
