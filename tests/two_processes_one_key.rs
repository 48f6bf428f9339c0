//! The claim of the whole crate, with real processes: what one books the other does not get.

#![cfg(feature = "redis")]

#[path = "support/redis.rs"]
mod redis_server;

use std::{
    env,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use redis_server::PrivateRedis;
use tollgate::{
    Limit, Provider, RedisStore, Tollgate,
    ledger::{Call, Costs, Micros, SECOND, Want},
    store::{Quota, Store},
};

const URL: &str = "TOLLGATE_TEST_URL";
const PROCESSES: u64 = 3;

/// One process: books all that it can get of a window in which nothing comes back, and of one in which it does;
/// prints the slots of the second.
fn replica(url: &str) {
    let store = RedisStore::new(url).expect("a URL").timeout(Duration::from_secs(10));
    let member = u64::from(std::process::id());
    let quota =
        |provider: &str, limit: &str| Quota::new(provider, [limit.parse::<Limit>().expect("a limit")]);
    let call = |number: i64, count| {
        let wants = vec![Want { costs: Costs::same(1, 1), class: 1, budget: None, count }];
        Call { member, number, horizon: 50_000, more: true, wants, ..Call::default() }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (mut number, mut last) = (0, 0);
        let mut slots = vec![];
        // Ends by what was booked, not by a clock: ten windows' worth from the first slot on.
        while slots.first().is_none_or(|first| last < first + 10 * SECOND) {
            number += 1;
            let answer = store.book(&quota("rolling", "50/s unpaced guard 0"), &call(number, 5)).await;
            let new = answer.expect("an answer").expect("a known limit").outcomes[0].slots.clone();
            last = *new.last().expect("at least one");
            slots.extend(new);
        }
        let mut closed = 0;
        loop {
            number += 1;
            let mut call = call(number, 7);
            call.wants[0].budget = Some(0);
            let answer = store
                .book(&quota("closed", "100/366day"), &call)
                .await
                .expect("an answer")
                .expect("a known limit");
            closed += answer.outcomes[0].slots.len();
            if answer.outcomes[0].slots.is_empty() {
                break;
            }
        }
        println!("closed {closed}");
        for slot in slots {
            println!("slot {slot}");
        }
    });
}

#[test]
fn together_they_get_one_quota() {
    if let Ok(url) = env::var(URL) {
        return replica(&url);
    }
    let redis = PrivateRedis::start();
    let replica = || {
        let mut command = Command::new(env::current_exe().expect("this test"));
        command.args(["together_they_get_one_quota", "--exact", "--nocapture"]).env(URL, redis.url());
        command.stdout(Stdio::piped()).spawn().expect("a process")
    };
    let replicas: Vec<_> = (0..PROCESSES).map(|_| replica()).collect();
    let (mut closed, mut slots) = (vec![], vec![]);
    for replica in replicas {
        let output = replica.wait_with_output().expect("an end");
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("text");
        let numbers = |name: &'static str| {
            let lines = text.lines().filter_map(move |line| line.strip_prefix(name));
            lines.map(|number| number.trim().parse::<Micros>().expect("a number"))
        };
        closed.extend(numbers("closed "));
        slots.extend(numbers("slot "));
    }
    assert_eq!(closed.len() as u64, PROCESSES);
    assert_eq!(closed.iter().sum::<i64>(), 100, "{closed:?}");

    slots.sort_unstable();
    for (at, slot) in slots.iter().enumerate().skip(50) {
        assert!(slot - slots[at - 50] >= SECOND, "51 within a second, from {} to {slot}", slots[at - 50]);
    }
    assert!(slots.len() > 450, "{} in ten windows", slots.len());
}

/// One process: 1,000 calls that would not wait, on a window and on a bucket; prints what was admitted, and the
/// slots of the bucket by the store's clock.
fn rejecting(url: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let store = Arc::new(RedisStore::new(url).expect("a URL").timeout(Duration::from_secs(10)));
        let tollgate = Tollgate::builder()
            .store(store.clone())
            .provider(Provider::new("window").limit("100/min".parse().expect("a limit")))
            .build()
            .expect("built");
        let limiter = tollgate.provider("window").expect("there");
        let mut admitted = 0;
        for _ in 0..1_000 {
            match limiter.acquire().or_reject().await {
                Ok(_) => admitted += 1,
                Err(error) => assert!(error.is_rejected(), "{error}"),
            }
        }
        println!("admitted {admitted}");

        for number in 0..1_000 {
            let (slots, _) = ask_the_bucket(&store, number).await;
            slots.iter().for_each(|slot| println!("slot {slot}"));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

/// A call that would not wait: what it got, and when it asked, by the store's clock.
async fn ask_the_bucket(store: &RedisStore, number: i64) -> (Vec<Micros>, Micros) {
    let quota = Quota::new("bucket", ["10/s burst 5 guard 0".parse::<Limit>().expect("a limit")]);
    let member = u64::from(std::process::id());
    let wants = vec![Want { costs: Costs::same(1, 1), class: 1, budget: Some(0), count: 1 }];
    let call = Call { member, number, horizon: 50_000, wants, ..Call::default() };
    let answer = store.book(&quota, &call).await.expect("an answer").expect("a known limit");
    (answer.outcomes[0].slots.clone(), answer.now)
}

#[test]
fn a_thousand_rejecting_calls_each_get_what_there_is() {
    if let Ok(url) = env::var(URL) {
        return rejecting(&url);
    }
    let redis = PrivateRedis::start();
    let replica = || {
        let mut command = Command::new(env::current_exe().expect("this test"));
        command.args(["a_thousand_rejecting_calls_each_get_what_there_is", "--exact", "--nocapture"]);
        command.env(URL, redis.url()).stdout(Stdio::piped()).spawn().expect("a process")
    };
    let (mut admitted, mut slots) = (0, vec![]);
    for replica in [replica(), replica()] {
        let output = replica.wait_with_output().expect("an end");
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("text");
        let number = |line: &str| line.trim().parse::<Micros>().expect("a number");
        admitted += text.lines().filter_map(|line| line.strip_prefix("admitted ")).map(number).sum::<i64>();
        slots.extend(text.lines().filter_map(|line| line.strip_prefix("slot ")).map(number));
    }
    assert_eq!(admitted, 100);

    // What is left is taken too, until nothing is.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let refused_at = runtime.block_on(async {
        let store = RedisStore::new(&redis.url()).expect("a URL").timeout(Duration::from_secs(10));
        for number in 0.. {
            let (more, now) = ask_the_bucket(&store, number).await;
            if more.is_empty() {
                return now;
            }
            slots.extend(more);
        }
        unreachable!()
    });
    slots.sort_unstable();
    let there = |time: Micros| 5 + 10 * (time - slots[0]) / SECOND;
    for (at, slot) in (1..).zip(&slots) {
        assert!(at <= there(*slot), "{at} permits until {slot}");
    }
    println!("100/min: {admitted}; 10/s burst 5: {} in {} us", slots.len(), refused_at - slots[0]);
    assert_eq!(slots.len() as i64, there(refused_at), "not all that came was given");
}
