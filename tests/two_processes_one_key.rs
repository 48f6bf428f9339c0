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
    RedisStore,
    ledger::{Call, Micros, SECOND, Want},
    store::{Quota, Store},
};

const URL: &str = "TOLLGATE_TEST_URL";
const PROCESSES: u64 = 3;

/// One process: books all that it can get of a window in which nothing comes back, and of one in which it does;
/// prints the slots of the second.
fn replica(url: &str) {
    let store = RedisStore::new(url).expect("a URL").timeout(Duration::from_secs(10));
    let member = u64::from(std::process::id());
    let quota = |provider: &str, limit: &str| {
        let limits = vec![limit.parse().expect("a limit")];
        Quota { provider: Arc::from(provider), limits }
    };
    let call = |number: i64, count| {
        let wants = vec![Want { cost: 1, budget: None, count }];
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
            let new = answer.expect("an answer").outcomes[0].slots.clone();
            last = *new.last().expect("at least one");
            slots.extend(new);
        }
        let mut closed = 0;
        loop {
            number += 1;
            let mut call = call(number, 7);
            call.wants[0].budget = Some(0);
            let answer = store.book(&quota("closed", "100/366day"), &call).await.expect("an answer");
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
