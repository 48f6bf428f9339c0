//! The keys in Redis are a contract: others look at them, and replicas of two versions share them.

#![cfg(feature = "redis")]

#[path = "support/redis.rs"]
mod redis_server;

use std::{collections::BTreeMap, time::Duration};

use redis::Connection;
use redis_server::PrivateRedis;
use tollgate::{
    Limit,
    ledger::{Answer, Call, Costs, Micros, Named, Reply, Rule, SECOND, Want},
    store::{Quota, RedisStore, Store},
};

const EPOCH: Micros = 1_700_000_000 * SECOND;

fn store(redis: &PrivateRedis) -> RedisStore {
    // Machines that run tests are busy.
    RedisStore::new(&redis.url()).expect("a URL").timeout(Duration::from_secs(10))
}

fn quota(limits: &[&str]) -> Quota {
    Quota::new("acme", limits.iter().map(|text| text.parse::<Limit>().expect("a limit")))
}

/// Under three limits at most.
fn call(number: i64, wants: &[(i64, Option<Micros>)]) -> Call {
    let want = |&(cost, budget): &_| Want { costs: Costs::same(cost, 3), class: 1, budget, count: 1 };
    let wants = wants.iter().map(want).collect();
    Call { member: 0xab, number, horizon: 50_000, wants, ..Call::default() }
}

fn keys(look: &mut Connection) -> Vec<String> {
    let mut keys: Vec<String> = redis::cmd("KEYS").arg("*").query(look).expect("KEYS");
    keys.sort();
    keys
}

fn hash(look: &mut Connection, key: &str) -> BTreeMap<String, String> {
    redis::cmd("HGETALL").arg(key).query(look).expect("a hash")
}

/// In milliseconds.
fn ttl(look: &mut Connection, key: &str) -> i64 {
    redis::cmd("PTTL").arg(key).query(look).expect("PTTL")
}

#[tokio::test]
async fn a_booking_writes_these_keys() {
    let redis = PrivateRedis::start();
    let store = store(&redis);
    let look = &mut redis.look();
    let quota = quota(&["100/min", "10/min burst 20", "1000/day aligned"]);
    let answer = store.book(&quota, &call(1, &[(1, None)])).await.expect("an answer").expect("a known limit");
    let slot = answer.outcomes[0].slots[0];

    let aligned = "tollgate:v1:{acme}:requests:86400s:aligned";
    let bucket = "tollgate:v1:{acme}:requests:60s:bucket";
    let rolling = "tollgate:v1:{acme}:requests:60s";
    let log = "tollgate:v1:{acme}:requests:60s:log";
    let control = "tollgate:v1:{acme}:control";
    let told = "tollgate:v1:{acme}:told:00000000000000ab";
    let mut all: Vec<_> = [control, told, rolling, log, bucket, aligned].map(str::to_owned).into();
    let crowds = [rolling, bucket, aligned].map(|key| format!("{key}:crowd"));
    all.extend(crowds.clone());
    all.sort_unstable();
    assert_eq!(keys(look), all);

    let fields = |key: &str, look: &mut Connection| hash(look, key).into_keys().collect::<Vec<_>>().join(" ");
    assert_eq!(fields(rolling, look), "limit pace pace_rem paced_until tails used");
    assert_eq!(fields(bucket, look), "capacity held last_time limit period rate rem tail tokens");
    assert_eq!(hash(look, rolling)["limit"], "100/min");
    assert_eq!(hash(look, rolling)["used"], "1");
    assert_eq!(hash(look, bucket)["tokens"], "18", "the burst, less what comes back during the guard");
    assert_eq!(hash(look, bucket)["last_time"], slot.to_string());
    let log: Vec<i64> = redis::cmd("LRANGE").arg(log).arg(0).arg(-1).query(look).expect("a list");
    assert_eq!(log, [slot, 1, 0]);

    let day = 86_400 * SECOND;
    let near_reset = slot % day < SECOND || slot % day >= day - SECOND;
    let reset = slot - slot % day + day;
    assert!(near_reset || fields(aligned, look) == format!("limit used:{reset}"));

    let state = hash(look, control);
    assert_eq!(state["generation"], format!("1 {}", answer.now));
    let text: String = redis::cmd("GET").arg(told).query(look).expect("a text");
    assert!(text.starts_with(&format!("{} {slot} 1 ", answer.now)));
    for crowd in &crowds {
        let members: Vec<(String, i64)> =
            redis::cmd("ZRANGE").arg(crowd).arg(0).arg(-1).arg("WITHSCORES").query(look).expect("a set");
        assert_eq!(members, [("00000000000000ab".to_owned(), answer.now + 1_500_000)]);
    }
    assert!(state.contains_key("idle:requests:60s"));
    assert!(!state.contains_key("pause"));
    assert_eq!(state["limit:requests:60s"], "is 100/min");
    assert_eq!(state["till:requests:60s"], (answer.now + 60 * SECOND).to_string());

    let idle = (state["idle:requests:60s"].parse::<i64>().expect("a moment") - answer.now) / 1_000;
    let left = ttl(look, rolling);
    assert!((idle - 20_000..=idle + 1_001).contains(&left), "{left} of {idle}");
    assert!((1..=7_001).contains(&ttl(look, bucket)), "a token comes back in 6 s");
    let week = 7 * 86_400_000;
    assert!((week - 60_000..=week).contains(&ttl(look, control)));
    for key in crowds.iter().map(String::as_str).chain([told]) {
        assert!((1_000..=61_000).contains(&ttl(look, key)), "{key}: {}", ttl(look, key));
    }
}

#[tokio::test]
async fn a_refusal_leaves_no_key_of_a_limit() {
    let redis = PrivateRedis::start();
    let store = store(&redis).prefix("staging");
    let look = &mut redis.look();
    let quota = quota(&["1/min", "10/s burst 20"]);
    store.pause(&quota.provider, None, 10 * SECOND).await.expect("a pause");
    let refused =
        store.book(&quota, &call(1, &[(1, Some(0))])).await.expect("an answer").expect("a known limit");
    assert!(refused.outcomes[0].slots.is_empty() && refused.outcomes[0].refused.is_some());
    // But who asked, for a minute.
    let all = [
        "staging:v1:{acme}:control",
        "staging:v1:{acme}:requests:1s:bucket:crowd",
        "staging:v1:{acme}:requests:60s:crowd",
        "staging:v1:{acme}:told:00000000000000ab",
    ];
    assert_eq!(keys(look), all);
    assert!(hash(look, "staging:v1:{acme}:control").contains_key("pause"));

    store.peek(&quota).await.expect("a look");
    assert_eq!(keys(look), all);
}

/// At the moments given, by the clock handed in: one permit each, for eight members in turn.
async fn fill(store: &RedisStore, text: &str, cost: i64, moments: &[Micros]) -> Answer {
    let limit: Limit = text.parse().expect("a limit");
    let guard = limit.guard().as_micros() as Micros;
    let window = limit.window().as_micros() as Micros;
    let rule = Rule::rolling(limit.max() as i64, window, guard, true);
    let limits = [Named::new(limit.name(), rule)];
    let mut last = None;
    for (at, &now) in moments.iter().enumerate() {
        let call = Call { member: u64::MAX - at as u64 % 8, more: true, ..call(now, &[(cost, None)]) };
        match store.book_at(Some(now), text, &limits, &call).await.expect("an answer") {
            Reply::Booked(answer) => last = Some(answer),
            Reply::Undecided(_) => unreachable!("no resets"),
        }
    }
    last.expect("at least one moment")
}

fn memory(look: &mut Connection) -> i64 {
    let sizes = keys(look).into_iter().map(|key| -> i64 {
        redis::cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0).query(look).expect("MEMORY USAGE")
    });
    sizes.sum()
}

#[tokio::test]
async fn a_full_log_takes_the_same_memory_whatever_the_limit() {
    let redis = PrivateRedis::start();
    let store = store(&redis);
    let look = &mut redis.look();
    let mut used = vec![];
    for (text, cost, apart) in [("1000/min", 1, 62_000), ("1000000/day", 1_000, 88_000_000)] {
        redis::cmd("FLUSHALL").exec(look).expect("FLUSHALL");
        // Two windows, and at the end eight members at once.
        let moments: Vec<_> = (0..2_000).map(|at| EPOCH + at * apart).collect();
        fill(&store, text, cost, &moments).await;
        let moments: Vec<_> = (0..8).map(|at| EPOCH + 2_000 * apart + at).collect();
        let last = fill(&store, text, cost, &moments).await;
        assert!(last.left[0] <= cost * 50, "{text}: {} left", last.left[0]);
        let limit = text.parse::<Limit>().expect("a limit").name();
        let log = format!("tollgate:v1:{{{text}}}:{limit}:log");
        let numbers: i64 = redis::cmd("LLEN").arg(&log).query(look).expect("LLEN");
        assert!(numbers >= 2 * 250, "{text}: {numbers}");
        used.push(memory(look));
    }
    println!("1000/min: {} bytes, 1000000/day: {} bytes", used[0], used[1]);
    let [few, many] = used[..] else { unreachable!() };
    assert!((few - many).abs() * 10 <= few, "{few} and {many} bytes");
    println!("1000/min: {few} bytes, 1000000/day: {many} bytes");
    assert!(few.max(many) <= 8 * 1024, "{few} and {many} bytes");
}

/// At least an hour, whatever the clock handed in says: Redis' expiry does not know it.
#[tokio::test]
async fn keys_outlive_a_clock_handed_in() {
    let redis = PrivateRedis::start();
    let store = store(&redis);
    let look = &mut redis.look();
    fill(&store, "10/s", 1, &[EPOCH]).await;
    for key in ["tollgate:v1:{10/s}:requests:1s", "tollgate:v1:{10/s}:requests:1s:log"] {
        assert!((3_500_000..=3_600_000).contains(&ttl(look, key)), "{key}");
    }
}

/// The keys are there again before they are idle, or the state was lost: then what was booked before is not
/// known any more, and every permit has to be asked for anew.
#[tokio::test]
async fn a_lost_key_begins_a_generation() {
    let redis = PrivateRedis::start();
    let store = store(&redis);
    let look = &mut redis.look();
    let quota = quota(&["100/min"]);
    let begin = store
        .book(&quota, &call(1, &[(1, None)]))
        .await
        .expect("an answer")
        .expect("a known limit")
        .generation;
    assert_eq!(begin.ordinal, 1);
    let mut next = begin;
    for (number, lost) in [
        (2, "tollgate:v1:{acme}:requests:60s"),
        (3, "tollgate:v1:{acme}:requests:60s:log"),
        (4, "tollgate:v1:{acme}:control"),
    ] {
        redis::cmd("DEL").arg(lost).exec(look).expect("DEL");
        let known = Call { generation: Some(next), ..call(number, &[(1, None)]) };
        let answer = store.book(&quota, &known).await.expect("an answer").expect("a known limit");
        assert_eq!(answer.generation.ordinal, next.ordinal + 1, "{lost}");
        assert_eq!(answer.generation.since, answer.now);
        next = answer.generation;
    }
    let all = [
        "tollgate:v1:{acme}:control",
        "tollgate:v1:{acme}:requests:60s",
        "tollgate:v1:{acme}:requests:60s:crowd",
        "tollgate:v1:{acme}:requests:60s:log",
        "tollgate:v1:{acme}:told:00000000000000ab",
    ];
    assert_eq!(keys(look), all);
    let same = store.book(&quota, &call(5, &[(1, None)])).await.expect("an answer").expect("a known limit");
    assert_eq!(same.generation, next);
}

/// From its idle time on a key may go; a microsecond before, that is a loss.
#[tokio::test]
async fn an_idle_key_may_go() {
    let redis = PrivateRedis::start();
    let store = store(&redis);
    let look = &mut redis.look();
    for (early, ordinal) in [(0, 1), (1, 2)] {
        redis::cmd("FLUSHALL").exec(look).expect("FLUSHALL");
        fill(&store, "10/s", 1, &[EPOCH]).await;
        let state = hash(look, "tollgate:v1:{10/s}:control");
        let idle: Micros = state["idle:requests:1s"].parse().expect("a moment");
        redis::cmd("DEL").arg("tollgate:v1:{10/s}:requests:1s").exec(look).expect("DEL");
        let answer = fill(&store, "10/s", 1, &[idle - early]).await;
        assert_eq!(answer.generation.ordinal, ordinal);
    }
}

#[tokio::test]
async fn a_key_used_for_something_else_says_so() {
    let redis = PrivateRedis::start();
    let store = store(&redis);
    redis::cmd("SET").arg("tollgate:v1:{acme}:control").arg("x").exec(&mut redis.look()).expect("SET");
    let error = store.book(&quota(&["100/min"]), &call(1, &[])).await.expect_err("WRONGTYPE");
    assert!(!error.is_unreachable());
    let text = error.to_string();
    assert!(
        text.contains("WRONGTYPE") && text.contains("tollgate:v1:*") && text.contains("prefix"),
        "{text}"
    );
}
