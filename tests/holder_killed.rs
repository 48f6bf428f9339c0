//! A process that holds places in flight is killed, or Redis forgets who holds them: what is lost is there again when
//! the lease is over, and what is held stays so.
//!
//! Real clocks and processes.

#![cfg(feature = "redis")]

#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/mod.rs"]
mod support;

use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    time::Duration,
};

use redis_server::PrivateRedis;
use support::Watch;
use tollgate::{Limiter, Provider, RedisStore, Tollgate};

const URL: &str = "TOLLGATE_TEST_URL";
const LEASE: Duration = Duration::from_millis(1_500);
const LIMIT: &str = "20 in flight lease 1500ms";

fn replica(url: &str, limit: &str) -> (Tollgate, Limiter) {
    let store = RedisStore::new(url).expect("a URL").timeout(Duration::from_secs(10));
    let provider = Provider::new("acme").limit(limit.parse().expect("a limit"));
    let tollgate = Tollgate::builder().store(store).provider(provider).build().expect("built");
    let limiter = tollgate.provider("acme").expect("there");
    (tollgate, limiter)
}

async fn left(limiter: &Limiter) -> u64 {
    limiter.peek().await.expect("an answer").limits[0].left
}

/// Waits for what comes by itself, as long as it takes.
async fn has_left(limiter: &Limiter, expected: u64) {
    let time = Watch::start();
    while left(limiter).await != expected {
        assert!(time.read() < Duration::from_secs(20), "{} left, not {expected}", left(limiter).await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn take(limiter: &Limiter, count: usize) -> Vec<tollgate::Permit> {
    let mut permits = Vec::new();
    for _ in 0..count {
        permits.push(limiter.acquire().await.expect("free"));
    }
    permits
}

/// The other process: takes ten places, says so, and flies until it is killed.
fn hold(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (_tollgate, limiter) = replica(url, LIMIT);
        let _permits = take(&limiter, 10).await;
        println!("it flies");
        std::future::pending::<()>().await;
    });
}

#[test]
fn its_places_are_free_when_the_lease_is_over() {
    if let Ok(url) = env::var(URL) {
        return hold(&url);
    }
    let redis = PrivateRedis::start();
    let mut command = Command::new(env::current_exe().expect("this test"));
    command.args(["its_places_are_free_when_the_lease_is_over", "--exact", "--nocapture"]);
    let mut child = command.env(URL, redis.url()).stdout(Stdio::piped()).spawn().expect("a process");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    assert!(lines.any(|line| line.expect("text").contains("it flies")));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (_tollgate, limiter) = replica(&redis.url(), LIMIT);
        let _ten = take(&limiter, 10).await;
        // Its lease is renewed as long as it lives.
        for _ in 0..45 {
            limiter.acquire().or_reject().await.expect_err("ten and ten");
            tokio::time::sleep(LEASE / 15).await;
        }
        let waits: Vec<_> = (0..10).map(|_| tokio::spawn(limiter.acquire().into_future())).collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        child.kill().expect("SIGKILL");
        let time = Watch::start();
        child.wait().expect("its end");
        let mut ten_more = Vec::new();
        for waits in waits {
            ten_more.push(waits.await.expect("no panic").expect("in time"));
        }
        let took = time.read();
        println!("20 fly again {took:?} after the kill, with a lease of {LEASE:?}");
        // It told of itself every third of the lease; who waits asks every 500 ms.
        assert!(took >= LEASE / 2, "{took:?}");
        assert!(took <= LEASE + Duration::from_secs(1), "{took:?}");
        limiter.acquire().or_reject().await.expect_err("twenty");
    });
}

#[tokio::test]
async fn what_redis_has_forgotten_it_is_told_again() {
    let redis = PrivateRedis::start();
    let ((_a, a), (_b, b)) = (replica(&redis.url(), LIMIT), replica(&redis.url(), LIMIT));
    let (mut of_a, of_b) = (take(&a, 12).await, take(&b, 6).await);
    has_left(&a, 2).await;
    redis::cmd("FLUSHALL").exec(&mut redis.look()).expect("FLUSHALL");
    // The next call of each tells what it has, be it for a caller, for an end or for the lease.
    of_a.truncate(11);
    has_left(&a, 3).await;
    redis::cmd("FLUSHALL").exec(&mut redis.look()).expect("FLUSHALL");
    let refused = async || {
        let mut got = Vec::new();
        while let Ok(permit) = b.acquire().or_reject().await {
            got.push(permit);
        }
        got.len()
    };
    // It does not know of the others yet, unless they were faster.
    assert!(refused().await <= 14);
    has_left(&a, 3).await;
    assert_eq!(refused().await, 3);
    has_left(&a, 3).await;
    // More than there are: others may have taken what was forgotten.
    redis::cmd("FLUSHALL").exec(&mut redis.look()).expect("FLUSHALL");
    let (_c, c) = replica(&redis.url(), LIMIT);
    let mut of_c = Vec::new();
    while let Ok(permit) = c.acquire().or_reject().await {
        of_c.push(permit);
    }
    let over = of_c.len() as u64;
    has_left(&a, 3_u64.saturating_sub(over)).await;
    drop(of_c);
    has_left(&a, 3).await;
    drop(of_a);
    has_left(&a, 14).await;
    drop(of_b);
    has_left(&a, 20).await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*in_flight").query(&mut redis.look()).expect("KEYS");
    assert_eq!(keys, Vec::<String>::new(), "nobody flies: nothing is kept");
}

/// What a deploy does: one goes while it flies, and says so.
#[tokio::test]
async fn who_says_goodbye_keeps_what_flies() {
    let redis = PrivateRedis::start();
    let ((first, a), (_b, b)) = (replica(&redis.url(), LIMIT), replica(&redis.url(), LIMIT));
    let flies = take(&a, 5).await;
    let time = Watch::start();
    first.shutdown().await;
    assert!(time.read() < Duration::from_secs(5), "{:?}", time.read());
    tokio::time::sleep(2 * LEASE).await;
    assert_eq!(left(&b).await, 15);
    drop(flies);
    has_left(&b, 20).await;
}
