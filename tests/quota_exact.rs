//! Rates must be exact over time, however odd, and through the whole gate: a paused clock, equality.

#[path = "support/mod.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use support::{Watch, limiter, with};
use tokio::sync::Mutex;
use tollgate::{
    Provider,
    ledger::{Call, Costs, Ledger, Micros, Named, Reply, Rule, SECOND, Want},
};

const EPOCH: Micros = 1_700_000_000 * SECOND;

/// Slots of a member that always wants more, from the moment on at which the limit paces it.
fn paced(rule: Rule, count: usize) -> Vec<Micros> {
    let limits = [Named::new("it", rule)];
    let mut ledger = Ledger::new(EPOCH);
    let (mut now, mut number, mut slots) = (EPOCH, 0, Vec::new());
    while slots.len() < count {
        number += 1;
        let wants = vec![Want { costs: Costs::same(1, 1), class: 1, budget: None, count: 1_000 }];
        let call = Call { member: 1, number, horizon: 50_000, wants, ..Call::default() };
        let Reply::Booked(answer) = ledger.book(now, &limits, &call) else { panic!("stale") };
        slots.extend(answer.outcomes[0].slots.iter().map(|slot| slot - EPOCH));
        now = now.max(EPOCH + slots.last().copied().unwrap_or(0) - 25_000);
    }
    slots
}

#[test]
fn a_bucket_drifts_by_no_microsecond() {
    for (max, burst) in [(7, 1), (300, 3), (700_000, 10), (2_000_000, 100)] {
        let count = 3 * max.min(400_000) as usize;
        let slots = paced(Rule::bucket(max, SECOND, burst, 0), count);
        for (at, slot) in slots.iter().enumerate() {
            let tokens = (at as i64 + 1 - burst).max(0);
            let exact = (tokens * SECOND + max - 1) / max;
            assert_eq!(*slot, exact, "{max}/s burst {burst}: permit {at}");
        }
    }
}

#[test]
fn the_pace_of_a_window_drifts_by_no_microsecond() {
    for max in [7, 100, 250] {
        // At most one permit in a cell: only the pace decides, and its remainder must be carried.
        let slots = paced(Rule::rolling(max, SECOND, 0, true), 4 * max as usize);
        let stream = &slots[max as usize..];
        for (at, slot) in stream.iter().enumerate() {
            assert_eq!(*slot, SECOND + (at as i64 * SECOND) / max, "{max}/s: permit {at}");
        }
    }
    for max in [300, 700_000, 2_000_000] {
        // More: a cell comes back at once, which costs at most a cell, W/256, in each window.
        let slots = paced(Rule::rolling(max, SECOND, 0, true), 3 * max as usize + 1);
        let took = slots[3 * max as usize] - slots[max as usize];
        assert!(
            (2 * SECOND..=2 * (SECOND + SECOND / 256)).contains(&took),
            "{max}/s: {took} us for two windows"
        );
    }
}

#[test]
fn refused_calls_change_nothing_for_the_others() {
    let play = |noise: bool| {
        let limits = [
            Named::new("a", Rule::rolling(50, SECOND, 10_000, true)),
            Named::new("b", Rule::bucket(100, SECOND, 20, 10_000)),
        ];
        let mut ledger = Ledger::new(EPOCH);
        let (mut slots, mut number) = (Vec::new(), 0);
        for step in 0..4_000 {
            let now = EPOCH + step * 1_700;
            number += 1;
            let want = |budget, cost| vec![Want { costs: Costs::same(cost, 2), class: 1, budget, count: 1 }];
            let call = |number, wants| Call { member: 1, number, horizon: 50_000, wants, ..Call::default() };
            let Reply::Booked(answer) = ledger.book(now, &limits, &call(number, want(Some(20_000), 1)))
            else {
                panic!("stale")
            };
            slots.extend(answer.outcomes[0].slots.iter().copied());
            if noise {
                number += 1;
                let Reply::Booked(answer) = ledger.book(now, &limits, &call(number, want(Some(-1), 19)))
                else {
                    panic!("stale")
                };
                assert_eq!(answer.outcomes[0].slots, Vec::<Micros>::new(), "it would not wait at all");
            }
        }
        slots
    };
    let without = play(false);
    assert!(without.len() > 300, "{}", without.len());
    assert_eq!(play(true), without);
}

#[tokio::test(start_paused = true)]
async fn every_window_gives_what_was_promised() {
    for max in [300_u64, 1_000, 20_000] {
        let limiter = with(
            Provider::new("acme").queue(40_000).max_wait(Duration::from_secs(3_600)),
            &[&format!("{max}/s")],
        );
        let watch = Arc::new(Watch::start());
        let sent = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..(max / 5).max(100))
            .map(|_| {
                let (limiter, watch, sent) = (limiter.clone(), watch.clone(), sent.clone());
                tokio::spawn(async move {
                    while watch.read() < Duration::from_secs(20) {
                        limiter.acquire().await.unwrap_or_else(|error| panic!("{error}"));
                        sent.lock().await.push(watch.read().as_micros() as i64);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap_or_else(|error| panic!("{error}"));
        }
        let sent = sent.lock().await;
        let promised = max as f64 * 1.0 / (1.0 + 0.05 + 1.0 / 256.0);
        for window in 2..20 {
            let used = sent.iter().filter(|at| (window..window + 1).contains(&(*at / SECOND))).count() as f64;
            assert!((used / promised - 1.0).abs() <= 0.02, "{max}/s, window {window}: {used} of {promised}");
        }
        let mut first = 0;
        for (at, time) in sent.iter().enumerate() {
            while sent[first] <= time - SECOND {
                first += 1;
            }
            assert!((at + 1 - first) as u64 <= max, "{max}/s: over at {time}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_exact() {
    let limiter = limiter(&["3/s unpaced guard 100ms"]);
    for _ in 0..3 {
        limiter.acquire().or_reject().await.unwrap_or_else(|error| panic!("{error}"));
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    // The first token comes back 1.1 s after its slot, of which 0.3 s have passed.
    for left in [800, 799, 550, 1] {
        let refused = limiter.acquire().or_reject().await.expect_err("the window is full");
        assert!(refused.is_rejected() && !refused.is_store());
        assert_eq!(refused.retry_after(), Some(Duration::from_millis(left)));
        let next = [799, 550, 1, 0].into_iter().find(|next| *next < left).unwrap_or(0);
        tokio::time::advance(Duration::from_millis(left - next)).await;
    }
    limiter.acquire().or_reject().await.expect("it has come back");
}
