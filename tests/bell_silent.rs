//! The bell is not heard: no rights to it, a server or a URL that knows no RESP3, a connection that broke, a runtime
//! that ended. Only the bell is missing then, and it is back when it can be.

#![cfg(feature = "redis")]

#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/mod.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use redis_server::PrivateRedis;
use support::Watch;
use tollgate::{
    Limit, Limiter, Provider, RedisStore, Tollgate,
    ledger::{Call, Costs, SECOND, Want},
    store::{Bell, Quota, Store},
};

/// Machines that run tests are busy.
const PATIENT: Duration = Duration::from_secs(10);
const CHANNEL: &str = "tollgate:v1:{acme}:bell";

fn own(url: &str) -> RedisStore {
    RedisStore::new(url).expect("a URL").timeout(PATIENT)
}

/// On a given connection, with or without its bell.
async fn given(redis: &PrivateRedis) -> RedisStore {
    let client = redis::Client::open(redis.url()).expect("a URL");
    let connection = client.get_connection_manager().await.expect("a connection");
    RedisStore::from_connection(connection).timeout(PATIENT)
}

fn quota() -> Quota {
    Quota::new("acme", ["1000/min".parse::<Limit>().expect("a limit")])
}

async fn book(store: &RedisStore, number: i64) {
    let wants = vec![Want { costs: Costs::same(1, 1), class: 1, budget: None, count: 1 }];
    let call = Call { member: 1, number, horizon: 50_000, wants, ..Call::default() };
    store.book(&quota(), &call).await.expect("an answer");
}

fn ask<T: redis::FromRedisValue>(redis: &PrivateRedis, command: &[&str]) -> T {
    let (name, args) = command.split_first().expect("a command");
    redis::cmd(name).arg(args).query(&mut redis.look()).expect(name)
}

fn listeners(redis: &PrivateRedis) -> i64 {
    ask::<(String, i64)>(redis, &["PUBSUB", "NUMSUB", CHANNEL]).1
}

/// Waits for something that comes by itself.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let time = Watch::start();
    while !holds() {
        assert!(time.read() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Pauses ever longer on a connection of its own until the bell is heard.
async fn rings(redis: &PrivateRedis, bell: &mut Bell) {
    let before = *bell.borrow_and_update();
    let other = own(&redis.url()).no_bell();
    let mut time = other.pause(&quota().provider, None, 0).await.expect("an answer").max(0);
    for _ in 0..200 {
        time += 10 * SECOND;
        other.pause(&quota().provider, None, time).await.expect("an answer");
        if tokio::time::timeout(Duration::from_millis(100), bell.changed()).await.is_ok() {
            assert_ne!(*bell.borrow(), before);
            return;
        }
    }
    panic!("the bell is silent");
}

fn replica(store: RedisStore) -> Limiter {
    let provider = Provider::new("acme").limit("1/6s".parse().expect("a limit"));
    let tollgate = Tollgate::builder().store(store).provider(provider).build().expect("built");
    tollgate.provider("acme").expect("there")
}

/// A permit is held here for a caller that would wait long enough for it, but not for the end of a pause of which
/// only the bell can tell in less than those six seconds.
async fn stops(redis: &PrivateRedis, stores: [RedisStore; 2]) {
    let [first, second] = stores.map(replica);
    second.acquire().await.expect("idle");
    let waiting = second.clone();
    let waiting = tokio::spawn(async move { waiting.acquire().wait_at_most(3 * PATIENT).await.map(|_| ()) });
    until("all listen", || listeners(redis) == 2).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!waiting.is_finished(), "it holds a permit");
    let time = Watch::start();
    first.pause(Duration::from_secs(300)).await.expect("an answer");
    let refused = waiting.await.expect("no panic").expect_err("cannot wait so long");
    assert!(refused.is_rejected() && refused.retry_after() > Some(Duration::from_secs(200)), "{refused}");
    assert!(time.read() < Duration::from_secs(3), "told after {:?}", time.read());
}

#[tokio::test]
async fn heard_on_the_same_connection() {
    let redis = PrivateRedis::start();
    stops(&redis, [own(&redis.url()), own(&redis.url())]).await;
}

#[tokio::test]
async fn heard_on_a_second_connection() {
    let redis = PrivateRedis::start();
    let ear = given(&redis).await.bell(&redis.url()).expect("a URL");
    stops(&redis, [own(&redis.url()), ear]).await;
}

#[tokio::test]
async fn not_asked_for() {
    let redis = PrivateRedis::start();
    let plain = own(&format!("{}?protocol=resp2", redis.url()));
    for store in [plain, own(&redis.url()).no_bell(), given(&redis).await] {
        assert!(store.listen(&quota(), 1).is_none());
        book(&store, 1).await;
    }
    assert_eq!(listeners(&redis), 0);
    // A choice made in the URL stands: nobody said HELLO.
    let explicit = own(&format!("{}?protocol=resp3", redis.url()));
    let mut bell = explicit.listen(&quota(), 1).expect("RESP3");
    book(&explicit, 2).await;
    rings(&redis, &mut bell).await;
}

#[tokio::test]
async fn without_rights_to_it_all_else_works() {
    let redis = PrivateRedis::start();
    let commands = "evalsha eval time get set hgetall hmget hset hdel llen lrange ltrim rpush zadd zcount zscore zrange zrem zremrangebyscore \
                    del pexpire";
    for (name, more) in [("none", ""), ("no_channels", " publish subscribe")] {
        let commands = format!("{commands}{more}");
        let commands: Vec<_> = commands.split(' ').map(|command| format!("+{command}")).collect();
        let mut rules =
            vec!["ACL", "SETUSER", name, "reset", "resetchannels", "on", ">geheim", "~tollgate:v1:*"];
        rules.extend(commands.iter().map(String::as_str));
        ask::<()>(&redis, &rules);
        ask::<()>(&redis, &["ACL", "LOG", "RESET"]);
        let url = format!("redis://{name}:geheim@127.0.0.1:{}/", redis.port());
        let given = given(&redis).await.bell(&url).expect("a URL");
        for (number, store) in [own(&url), given].into_iter().enumerate() {
            let bell = store.listen(&quota(), 1).expect("it would hear one");
            book(&store, 2 * number as i64 + 1).await;
            until("it is refused", || {
                let log: redis::Value = ask(&redis, &["ACL", "LOG"]);
                let text = format!("{log:?}");
                text.contains("subscribe") || text.contains(CHANNEL)
            })
            .await;
            let left = store.pause(&quota().provider, None, 60 * SECOND).await.expect("an answer");
            assert!(left >= 60 * SECOND);
            assert!(store.peek(&quota()).await.expect("an answer").pause > 0);
            book(&store, 2 * number as i64 + 2).await;
            assert_eq!(bell.borrow().pauses, 0);
        }
    }
    assert_eq!(listeners(&redis), 0);
    // With the channels it is heard.
    ask::<()>(&redis, &["ACL", "SETUSER", "no_channels", "&tollgate:v1:*"]);
    let store = own(&format!("redis://no_channels:geheim@127.0.0.1:{}/", redis.port()));
    let mut bell = store.listen(&quota(), 1).expect("RESP3");
    book(&store, 1).await;
    rings(&redis, &mut bell).await;
    let calls = store.calls();
    book(&store, 2).await;
    assert_eq!(store.calls(), calls + 1, "subscriptions are not counted");
}

/// An old proxy. That it refuses is remembered: the next connection does not ask again.
#[tokio::test]
async fn the_server_speaks_no_resp3() {
    let redis = PrivateRedis::start_with(&["--rename-command", "HELLO", ""]);
    let connections = || {
        let info: String = ask(&redis, &["INFO", "stats"]);
        let count = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
        count.and_then(|count| count.trim().parse::<i64>().ok()).expect("a count")
    };
    let store = own(&redis.url());
    let bell = store.listen(&quota(), 1).expect("it cannot know yet");
    let before = connections();
    book(&store, 1).await;
    let asked = connections();
    assert_eq!(asked - before - 1, 2, "in RESP3, then in RESP2");
    ask::<i64>(&redis, &["CLIENT", "KILL", "TYPE", "normal"]);
    book(&store, 2).await;
    assert_eq!(connections() - asked - 2, 1, "in RESP2 at once");
    store.pause(&quota().provider, None, SECOND).await.expect("an answer");
    assert_eq!((listeners(&redis), bell.borrow().pauses), (0, 0));
    // A second connection needs none.
    let store = own(&redis.url()).bell(&redis.url()).expect("a URL");
    let mut bell = store.listen(&quota(), 1).expect("a second connection");
    book(&store, 3).await;
    rings(&redis, &mut bell).await;
}

#[tokio::test]
async fn rings_again_after_a_connection_broke() {
    let redis = PrivateRedis::start();
    let (own, ear) = (own(&redis.url()), given(&redis).await.bell(&redis.url()).expect("a URL"));
    let mut bells = [&own, &ear].map(|store| store.listen(&quota(), 1).expect("a bell"));
    for round in 0..3 {
        // A call notices that its connection is dead and opens another one; the ear needs none for that.
        for (member, store) in [&own, &ear].into_iter().enumerate() {
            book(store, 10 * round + member as i64).await;
        }
        for bell in &mut bells {
            rings(&redis, bell).await;
        }
        ask::<i64>(&redis, &["CLIENT", "KILL", "TYPE", "normal"]);
        ask::<i64>(&redis, &["CLIENT", "KILL", "TYPE", "pubsub"]);
    }
    rings(&redis, &mut bells[1]).await;
}

#[tokio::test]
async fn rings_again_after_a_restart() {
    let mut redis = PrivateRedis::start();
    let store = own(&redis.url());
    let mut bell = store.listen(&quota(), 1).expect("RESP3");
    for number in 0..3 {
        book(&store, number).await;
        rings(&redis, &mut bell).await;
        let port = redis.port();
        drop(redis);
        redis = PrivateRedis::start_on(port);
    }
}

/// What listens dies with the runtime that it was started on.
#[test]
fn rings_on_a_second_runtime() {
    let redis = PrivateRedis::start();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let second = |url: &str| own(&format!("{url}?protocol=resp2")).bell(url).expect("a URL");
    for store in [own(&redis.url()), second(&redis.url())] {
        let mut bell = store.listen(&quota(), 1).expect("a bell");
        for number in 0..3 {
            runtime().block_on(async {
                book(&store, number).await;
                rings(&redis, &mut bell).await;
            });
        }
    }
}

#[tokio::test]
async fn what_makes_no_sense_does_no_harm() {
    let redis = PrivateRedis::start();
    let store = own(&redis.url());
    let mut bell = store.listen(&quota(), 1).expect("RESP3");
    let late = store.listen(&Quota { provider: Arc::from("other"), ..quota() }, 1).expect("RESP3");
    book(&store, 1).await;
    until("it listens", || listeners(&redis) == 1).await;
    for text in ["", "pause", "pause never", "\u{7}\r\n"] {
        ask::<i64>(&redis, &["PUBLISH", CHANNEL, text]);
    }
    bell.wait_for(|rung| rung.pauses == 4).await.expect("the store lives");
    book(&store, 2).await;
    assert_eq!(late.borrow().pauses, 0);
    // One that is asked for later is heard from the next call on.
    let later = Quota { provider: Arc::from("later"), ..quota() };
    let mut bell = store.listen(&later, 2).expect("RESP3");
    book(&store, 3).await;
    let channel = CHANNEL.replace("acme", "later");
    until("it listens", || ask::<i64>(&redis, &["PUBLISH", &channel, "pause 1"]) == 1).await;
    bell.changed().await.expect("the store lives");
}

/// The ear goes with its store.
#[tokio::test]
async fn nobody_listens_for_a_store_that_is_gone() {
    let redis = PrivateRedis::start();
    let ear = given(&redis).await.bell(&redis.url()).expect("a URL");
    for store in [own(&redis.url()), ear] {
        store.listen(&quota(), 1).expect("a bell");
        book(&store, 1).await;
        until("it listens", || listeners(&redis) == 1).await;
        drop(store);
        until("it has gone", || listeners(&redis) == 0).await;
    }
}
