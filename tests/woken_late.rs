//! Over a real Redis: who waits for a place in flight hears of it late, or asks for it all the time.
//!
//! Real clocks. A wake-up takes two trips and a message, less than 1 ms on an idle machine; without the bell it takes
//! up to 500 ms. The bounds tell these apart, and leave to a busy machine what it needs.

#![cfg(feature = "redis")]

#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/mod.rs"]
mod support;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use redis_server::PrivateRedis;
use support::Watch;
use tollgate::{Limiter, Provider, RedisStore, Tollgate};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A process of its own, as far as Redis knows.
struct Replica {
    limiter: Limiter,
    store: Arc<RedisStore>,
    _tollgate: Tollgate,
}

impl Replica {
    fn new(store: RedisStore, limits: &[&str]) -> Self {
        let store = Arc::new(store.timeout(Duration::from_secs(10)));
        let provider = limits.iter().fold(Provider::new("acme"), |provider, limit| {
            provider.limit(limit.parse().unwrap_or_else(|error| panic!("{error}")))
        });
        let tollgate = Tollgate::builder().store(store.clone()).provider(provider).build().expect("built");
        Self { limiter: tollgate.provider("acme").expect("there"), store, _tollgate: tollgate }
    }

    fn on(redis: &PrivateRedis, limits: &[&str]) -> Self {
        Self::new(RedisStore::new(&redis.url()).expect("a URL"), limits)
    }
}

/// One has the only place, the other waits: how long it takes from the end of one's call to the other's permit.
async fn wakes(first: &Replica, second: &Replica, times: usize) -> Vec<Duration> {
    let mut took = Vec::new();
    // Connected, and listening.
    drop(first.limiter.acquire().await.expect("free"));
    drop(second.limiter.acquire().await.expect("free"));
    tokio::time::sleep(ms(100)).await;
    for at in 0..times {
        let permit = first.limiter.acquire().await.expect("free");
        let waits = second.limiter.clone();
        let waits = tokio::spawn(async move {
            drop(waits.acquire().await.expect("in time"));
            Watch::start()
        });
        // At any moment between two of its questions.
        tokio::time::sleep(ms(60 + 37 * at as u64 % 500)).await;
        assert!(!waits.is_finished());
        let time = Watch::start();
        drop(permit);
        let since = waits.await.expect("no panic");
        took.push(time.read() - since.read());
        tokio::time::sleep(ms(10)).await;
    }
    took.sort_unstable();
    took
}

#[tokio::test]
async fn by_the_bell() {
    let redis = PrivateRedis::start();
    let took =
        wakes(&Replica::on(&redis, &["1 in flight"]), &Replica::on(&redis, &["1 in flight"]), 20).await;
    println!("woken after {:?} in the median, {:?} at most", took[took.len() / 2], took[took.len() - 1]);
    // By asking every 500 ms alone half of them would take more than 200 ms.
    assert!(took[took.len() / 2] <= ms(20), "{took:?}");
    assert!(took[took.len() * 9 / 10] <= ms(200), "{took:?}");
}

#[tokio::test]
async fn by_the_bell_on_a_second_connection() {
    let redis = PrivateRedis::start();
    let url = format!("{}?protocol=resp2", redis.url());
    let second = RedisStore::new(&url).and_then(|store| store.bell(&redis.url())).expect("a URL");
    let took =
        wakes(&Replica::on(&redis, &["1 in flight"]), &Replica::new(second, &["1 in flight"]), 10).await;
    println!("woken after {:?} in the median", took[took.len() / 2]);
    assert!(took[took.len() / 2] <= ms(20), "{took:?}");
}

#[tokio::test]
async fn without_the_bell() {
    let redis = PrivateRedis::start();
    let deaf = RedisStore::new(&redis.url()).expect("a URL").no_bell();
    let took = wakes(&Replica::on(&redis, &["1 in flight"]), &Replica::new(deaf, &["1 in flight"]), 8).await;
    println!("woken after {:?} in the median, {:?} at most", took[took.len() / 2], took[took.len() - 1]);
    // It asks every 500 ms; the rest is the machine's.
    assert!(took[took.len() - 1] <= ms(750), "{took:?}");
    assert!(took[took.len() - 1] >= ms(100), "it was told: {took:?}");
}

/// One place, and two who always want it.
#[tokio::test]
async fn or_out_of_turn() {
    let redis = PrivateRedis::start();
    let replicas = [Replica::on(&redis, &["1 in flight"]), Replica::on(&redis, &["1 in flight"])];
    let order = Arc::new(Mutex::new(Vec::new()));
    let calls: Vec<_> = (0..40)
        .map(|at| {
            let (limiter, order) = (replicas[at % 2].limiter.clone(), order.clone());
            tokio::spawn(async move {
                let permit = limiter.acquire().await.expect("its turn");
                order.lock().expect("no panic").push(at % 2);
                tokio::time::sleep(ms(5)).await;
                drop(permit);
            })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic");
    }
    let order = order.lock().expect("no panic").clone();
    // Who connects first may be served more than once before the other is there.
    let both = order.iter().position(|who| *who != order[0]).expect("two");
    let turns = &order[both..order.len() - both];
    assert!(both <= 10, "{order:?}");
    assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{order:?}");
}

/// Four that are always full: one call to say that a place is free, one to take it.
#[tokio::test]
async fn or_asks_all_the_time() {
    let redis = PrivateRedis::start();
    for max in [1, 4, 8] {
        let limit = format!("{max} in flight");
        redis::cmd("FLUSHALL").exec(&mut redis.look()).expect("FLUSHALL");
        let replicas: Vec<_> = (0..4).map(|_| Replica::on(&redis, &[&limit])).collect();
        let served = Arc::new(Mutex::new(vec![0_u64; 4]));
        let tasks: Vec<_> = (0..40)
            .map(|at| {
                let (limiter, served) = (replicas[at % 4].limiter.clone(), served.clone());
                tokio::spawn(async move {
                    while let Ok(permit) = limiter.acquire().await {
                        tokio::time::sleep(ms(20)).await;
                        served.lock().expect("no panic")[at % 4] += 1;
                        drop(permit);
                    }
                })
            })
            .collect();
        let calls = || replicas.iter().map(|replica| replica.store.calls()).sum::<u64>();
        let count = || served.lock().expect("no panic").clone();
        tokio::time::sleep(ms(300)).await;
        let (calls_before, served_before, time) = (calls(), count(), Watch::start());
        tokio::time::sleep(ms(2_000)).await;
        let (calls, after, time) = (calls() - calls_before, count(), time.read());
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let shares: Vec<_> = after.iter().zip(&served_before).map(|(after, before)| after - before).collect();
        let permits: u64 = shares.iter().sum();
        let used = permits as f64 * 0.020 / (f64::from(max) * time.as_secs_f64());
        let each = calls as f64 / permits as f64;
        println!(
            "{limit}, 4 replicas: {each:.2} calls a permit, {permits} permits, {used:.3} used, {shares:?}"
        );
        // One that says that a place is free, one that takes it; each of four asks twice a second besides, and a bell
        // may ring for who was asking anyway. Two more a permit would be a storm.
        assert!(each <= 2.5 + 8.0 * time.as_secs_f64() / permits as f64, "{each:.2} calls a permit");
        assert!(permits > 0 && shares.iter().all(|share| *share > 0), "{shares:?}");
    }
}
