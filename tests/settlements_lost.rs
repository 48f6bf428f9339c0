//! A settlement that comes when nobody listens: where there is no runtime, after the goodbye, or while the store is
//! away.
#![cfg(all(feature = "middleware", feature = "redis"))]

#[path = "support/answers.rs"]
mod answers;
#[path = "support/hops.rs"]
mod hops;
#[path = "support/lab.rs"]
mod lab;
#[path = "support/redis.rs"]
mod redis_server;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};
use std::time::Duration;

use answers::{Api, Case, GUESS, event, provider};
use hops::eventually;
use lab::{Lab, MILLI};
use tollgate::{
    MemoryStore, RedisStore, Tollgate,
    ledger::{self, Call, Costs, Rule, SECOND},
    store::{Agreed, Bell, Pending, Quota, Store},
};

#[tokio::test]
async fn what_ends_without_a_runtime_or_after_the_goodbye() {
    // Where there is no runtime: the next call takes it along.
    let case = Case::new().await;
    case.api.send(&event("30"));
    let mut response = case.get("pieces").await;
    response.chunk().await.expect("read").expect("a piece");
    std::thread::spawn(move || drop(response)).join().expect("no panic");
    case.limiter.acquire().or_reject().await.expect("room");
    assert_eq!(case.charged().await, (2, 30));
    // After the goodbye.
    let response = case.get("json/30").await;
    case.tollgate.shutdown().await;
    response.bytes().await.expect("read");
    assert_eq!(case.charged().await, (3, 60));
}

#[test]
fn who_has_left_comes_back_with_what_was_owed() {
    let mut lab = Lab::new(Rule::rolling(10, SECOND, 0, true), 0);
    lab.wait(MILLI, "caller");
    lab.turn(MILLI);
    let permit = lab.granted().pop().expect("granted").1;
    lab.core.close();
    assert_eq!(lab.turn(2 * MILLI), 1);
    lab.core.settle(&permit, Costs::same(4, 1));
    let call = lab.poll(3 * MILLI).call.expect("it is told");
    assert!(call.goodbye && call.settles.len() == 1, "it does not share any more");
    let answer = lab.decide(3 * MILLI, &call);
    lab.answered(4 * MILLI, answer);
    assert!(lab.poll(4 * MILLI).idle);
}

/// A store that can be away: then it is a Redis that nobody runs.
struct Shaky {
    memory: MemoryStore,
    nobody: RedisStore,
    away: AtomicBool,
    failed: AtomicUsize,
}

impl Store for Shaky {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<ledger::Answer>> {
        if !self.away.load(Relaxed) {
            return self.memory.book(quota, call);
        }
        self.failed.fetch_add(1, Relaxed);
        self.nobody.book(quota, call)
    }

    fn pause<'a>(
        &'a self,
        provider: &'a std::sync::Arc<str>,
        part: Option<&'a std::sync::Arc<str>>,
        time: ledger::Micros,
    ) -> Pending<'a, ledger::Micros> {
        self.memory.pause(provider, part, time)
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        self.memory.change(limit, text, number)
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, ledger::Peek> {
        self.memory.peek(quota)
    }

    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell> {
        self.memory.listen(quota, member)
    }
}

#[tokio::test]
async fn what_the_store_did_not_hear_is_lost() {
    let nobody = RedisStore::new("redis://127.0.0.1:1").expect("a URL");
    let (away, failed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let store = Arc::new(Shaky { memory: MemoryStore::new(), nobody, away, failed });
    let api = Api::start().await;
    let tollgate = Tollgate::builder().store(store.clone()).provider(provider(&api)).build().expect("built");
    let case = Case::of(api, tollgate);
    let (first, second) = (case.get("json/30").await, case.get("json/250").await);
    store.away.store(true, Relaxed);
    first.bytes().await.expect("read");
    eventually(async || store.failed.load(Relaxed) == 1).await;
    second.bytes().await.expect("read");
    let error = case.limiter.acquire().await.expect_err("the store is away");
    assert!(error.is_store() && store.failed.load(Relaxed) == 2, "{error}");
    assert_eq!(case.charged().await, (2, 2 * GUESS));
    store.away.store(false, Relaxed);
    case.limiter.acquire().await.expect("it is back");
    eventually(async || case.charged().await == (3, 30 + 250)).await;
}

#[tokio::test]
async fn what_the_store_heard_and_could_not_confirm_counts_twice() {
    let redis = redis_server::PrivateRedis::start();
    let store = Arc::new(RedisStore::new(&redis.url()).expect("a URL").timeout(Duration::from_millis(200)));
    let api = Api::start().await;
    let tollgate = Tollgate::builder().store(store.clone()).provider(provider(&api)).build().expect("built");
    let case = Case::of(api, tollgate);
    let response = case.get("json/30").await;
    let calls = store.calls();
    // It holds what it is sent, and does it all afterwards.
    redis::cmd("CLIENT").arg("PAUSE").arg(600).arg("ALL").exec(&mut redis.look()).expect("paused");
    response.bytes().await.expect("read");
    eventually(async || store.calls() > calls).await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    eventually(async || case.limiter.acquire().await.is_ok()).await;
    eventually(async || case.charged().await == (2, 30)).await;
    assert_eq!(case.charged().await, (2, 30));
}
