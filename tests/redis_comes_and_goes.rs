//! Redis is away, comes back, hangs, forgets its scripts or wants a password: no call hangs, each error says
//! what is wrong, and the next call works once it can.

#![cfg(feature = "redis")]

#[path = "support/redis.rs"]
mod redis_server;

use std::{net::TcpListener, sync::Arc, time::Duration};

use redis_server::{PrivateRedis, free_port};
use tollgate::{
    Limit, RedisStore,
    ledger::{Answer, Call, Costs, Want},
    store::{Quota, Store, StoreError},
};

/// Machines that run tests are busy.
const PATIENT: Duration = Duration::from_secs(10);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

async fn book(store: &RedisStore, number: i64) -> Result<Option<Answer>, StoreError> {
    let quota = Quota::new("acme", ["1000/min".parse::<Limit>().expect("a limit")]);
    let wants = vec![Want { costs: Costs::same(1, 1), class: 1, budget: None, count: 1 }];
    store.book(&quota, &Call { member: 1, number, horizon: 50_000, wants, ..Call::default() }).await
}

fn run(redis: &PrivateRedis, command: &[&str]) {
    let (name, args) = command.split_first().expect("a command");
    redis::cmd(name).arg(args).exec(&mut redis.look()).expect(name);
}

#[test]
fn is_built_without_runtime_and_server() {
    let url = format!("redis://user:geheim@127.0.0.1:{}/", free_port());
    let store = RedisStore::new(&url).expect("a URL").prefix("x");
    let shown = format!("{store:?}");
    assert!(shown.contains("127.0.0.1") && !shown.contains("geheim"), "{shown}");
    assert_eq!(store.calls(), 0);
}

#[test]
fn says_that_a_url_makes_no_sense_without_repeating_it() {
    let error = RedisStore::new("redis:/user:geheim@host").expect_err("not a URL").to_string();
    assert!(error.contains("redis://") && !error.contains("geheim"), "{error}");
    let error = RedisStore::new("rediss://user:geheim@host").expect_err("no TLS here").to_string();
    assert!(error.contains("TLS feature") && !error.contains("geheim"), "{error}");
}

#[tokio::test]
async fn away_and_back() {
    let port = free_port();
    let store =
        RedisStore::new(&format!("redis://:geheim@127.0.0.1:{port}/")).expect("a URL").timeout(PATIENT);
    for number in 1..4 {
        let error = book(&store, number).await.expect_err("nobody listens");
        assert!(error.is_unreachable());
        assert!(error.to_string().contains("127.0.0.1") && !error.to_string().contains("geheim"), "{error}");
    }
    let store = RedisStore::new(&format!("redis://127.0.0.1:{port}/")).expect("a URL").timeout(PATIENT);
    book(&store, 1).await.expect_err("nobody listens");
    for number in 2..5 {
        let redis = PrivateRedis::start_on(port);
        // Not even the first call after a restart fails: what it was sent on is dead, so it is sent again.
        book(&store, number).await.expect("it is back");
        drop(redis);
    }
    assert!(book(&store, 5).await.expect_err("away again").is_unreachable());
}

#[tokio::test]
async fn hangs() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    let url = format!("redis://127.0.0.1:{port}/");
    let store = RedisStore::new(&url).expect("a URL").timeout(Duration::from_millis(50));
    for number in 1..4 {
        let answer = tokio::time::timeout(PATIENT, book(&store, number)).await.expect("no call hangs");
        let error = answer.expect_err("no answer");
        assert!(error.is_unreachable() && error.to_string().contains("50ms"), "{error}");
    }
    drop(silent);
    let _redis = PrivateRedis::start_on(port);
    book(&store.timeout(PATIENT), 4).await.expect("it is back");
}

/// What drives a connection dies with the runtime that opened it.
#[test]
fn outlives_runtimes() {
    let redis = PrivateRedis::start();
    let store = RedisStore::new(&redis.url()).expect("a URL").timeout(PATIENT);
    for number in 1..5 {
        runtime().block_on(book(&store, number)).expect("on any runtime");
    }
    // One that is there but does not run cannot drive it either; that takes a timeout to notice.
    let asleep = runtime();
    asleep.block_on(book(&store, 5)).expect("on its own runtime");
    let store = store.timeout(Duration::from_millis(50));
    let awake = runtime();
    assert!(awake.block_on(book(&store, 6)).expect_err("nobody drives it").is_unreachable());
    awake.block_on(book(&store.timeout(PATIENT), 7)).expect("on a fresh one");
}

#[tokio::test]
async fn forgets_its_scripts() {
    let redis = PrivateRedis::start();
    let store = RedisStore::new(&redis.url()).expect("a URL").timeout(PATIENT);
    book(&store, 1).await.expect("an answer");
    assert_eq!(store.calls(), 2, "by the SHA, then by the text");
    book(&store, 2).await.expect("an answer");
    assert_eq!(store.calls(), 3);
    run(&redis, &["SCRIPT", "FLUSH"]);
    book(&store, 3).await.expect("an answer");
    assert_eq!(store.calls(), 5);
}

#[tokio::test]
async fn asked_by_many_at_once() {
    let redis = PrivateRedis::start();
    let store = Arc::new(RedisStore::new(&redis.url()).expect("a URL").timeout(PATIENT));
    let calls: Vec<_> = (1..=50)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { book(&store, number).await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("an answer");
    }
}

#[tokio::test]
async fn wants_a_password() {
    let redis = PrivateRedis::start();
    run(&redis, &["CONFIG", "SET", "requirepass", "geheim"]);
    let store = RedisStore::new(&redis.url()).expect("a URL").timeout(PATIENT);
    let error = book(&store, 1).await.expect_err("NOAUTH");
    assert!(!error.is_unreachable() && error.to_string().contains("check user and password"), "{error}");
    let url = format!("redis://:falsch@127.0.0.1:{}/", redis.port());
    let error =
        book(&RedisStore::new(&url).expect("a URL").timeout(PATIENT), 1).await.expect_err("WRONGPASS");
    assert!(!error.is_unreachable() && error.to_string().contains("check user and password"), "{error}");
    let url = url.replace("falsch", "geheim");
    book(&RedisStore::new(&url).expect("a URL").timeout(PATIENT), 1).await.expect("an answer");
}

/// The commands that the documentation names are enough, and without one the error says what to do.
#[tokio::test]
async fn grants_few_rights() {
    let redis = PrivateRedis::start();
    let commands = "evalsha eval time get set hgetall hmget hset hdel llen lrange ltrim rpush zadd zcount zscore zrange zrem zremrangebyscore \
                    del pexpire";
    let mut rules = vec!["ACL", "SETUSER", "app", "reset", "on", ">geheim", "~tollgate:v1:*"];
    let allowed: Vec<_> = commands.split(' ').map(|command| format!("+{command}")).collect();
    rules.extend(allowed.iter().map(String::as_str));
    run(&redis, &rules);
    let url = format!("redis://app:geheim@127.0.0.1:{}/", redis.port());
    let store = RedisStore::new(&url).expect("a URL").timeout(PATIENT);
    let limits = ["100/min", "10/s burst 5", "100/day aligned"];
    let quota = Quota::new("acme", limits.map(|limit| limit.parse::<Limit>().expect("a limit")));
    let wants = vec![Want { costs: Costs::same(1, 1), class: 1, budget: None, count: 3 }];
    let call = Call { member: 1, number: 1, horizon: 50_000, wants, ..Call::default() };
    store.book(&quota, &call).await.expect("an answer");
    store.pause(&quota.provider, None, 1).await.expect("an answer");
    store.peek(&quota).await.expect("an answer");

    let error = book(&store.prefix("other"), 1).await.expect_err("not its keys");
    assert!(!error.is_unreachable() && error.to_string().contains("~other:v1:*"), "{error}");
    run(&redis, &["ACL", "SETUSER", "app", "-hset"]);
    let store = RedisStore::new(&url).expect("a URL").timeout(PATIENT);
    let error = book(&store, 9).await.expect_err("HSET is not allowed");
    assert!(!error.is_unreachable() && error.to_string().contains("allow the user"), "{error}");
}
