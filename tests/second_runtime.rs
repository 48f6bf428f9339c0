//! A static limiter outlives the runtime that first used it: the pump task and the connection die with it.

#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/mod.rs"]
mod support;

use std::time::Duration;

use support::limiter;
use tollgate::Limiter;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn use_in_turn(limiter: &Limiter) {
    for turn in 0..3 {
        runtime().block_on(async {
            for _ in 0..5 {
                limiter.acquire().await.unwrap_or_else(|error| panic!("runtime {turn}: {error}"));
            }
        });
    }
}

#[test]
fn one_after_the_other() {
    use_in_turn(&limiter(&["1000/s"]));
}

#[test]
fn ended_while_somebody_waits_in_another() {
    let limiter = limiter(&["5/s unpaced guard 0"]);
    let first = runtime();
    first.block_on(async { while limiter.acquire().or_reject().await.is_ok() {} });
    // The pump of this one holds a permit for the first caller; both go down with it.
    let doomed = limiter.clone();
    first.spawn(async move { doomed.acquire().await.map(|_| ()) });
    first.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
    let waiting = limiter.clone();
    let second =
        std::thread::spawn(move || runtime().block_on(async move { waiting.acquire().await.map(|_| ()) }));
    std::thread::sleep(Duration::from_millis(50));
    drop(first);
    second.join().expect("no panic").expect("served by its own runtime");
}

#[cfg(feature = "redis")]
#[test]
fn with_redis_too() {
    use tollgate::{Provider, RedisStore, Tollgate};

    let redis = redis_server::PrivateRedis::start();
    let tollgate = Tollgate::builder()
        .store(RedisStore::new(&redis.url()).expect("a url"))
        .provider(Provider::new("acme").limit("1000/s".parse().expect("a limit")))
        .build()
        .expect("built");
    use_in_turn(&tollgate.provider("acme").expect("there"));
}
