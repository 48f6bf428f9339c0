//! An all-knowing judge over every permit that flies: no limit is ever exceeded, whatever the history.
//! `CASES=20000 cargo test --release --test windows_exceeded` plays more.

#[path = "support/history.rs"]
mod history;
#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;
#[cfg(feature = "redis")]
#[path = "support/scripts.rs"]
mod scripts;

use std::collections::HashMap;

use history::{Flight, History, Kind, Pure, Wild, config, histories, play, reset};
use proptest::prelude::*;
use tollgate::ledger::{Ledger, Micros, Rule};

/// By how much the worst interval is over the limit. `sent`: time and cost, in the order of time.
fn over(kind: Kind, sent: &[(Micros, i64)]) -> i64 {
    match kind {
        // Even with the guard on top.
        Kind::Rolling { max, window, guard, .. } => {
            let (mut first, mut sum, mut most) = (0, 0, 0);
            for (at, cost) in sent {
                sum += cost;
                while sent[first].0 <= at - (window + guard) {
                    sum -= sent[first].1;
                    first += 1;
                }
                most = most.max(sum);
            }
            most - max
        }
        // Charged as it comes, in parts of a token, it never runs below empty by more than comes in one
        // microsecond, the grain of all slots.
        Kind::Bucket { .. } => {
            let Rule::Bucket(rule) = kind.rule(0) else { unreachable!() };
            let full = i128::from(rule.capacity * rule.period);
            let (mut level, mut last, mut worst) = (full, 0, 0);
            for &(at, cost) in sent {
                level = full.min(level + i128::from(at - last) * i128::from(rule.tokens));
                level -= i128::from(cost * rule.period);
                worst = worst.max(-level);
                last = at;
            }
            i64::try_from(
                (worst - i128::from(rule.tokens) + i128::from(rule.period) - 1) / i128::from(rule.period),
            )
            .unwrap_or(i64::MAX)
        }
        // Judged as it is played.
        Kind::Flight { .. } => 0,
        // What flies within the guard of a reset may land on either side.
        Kind::Calendar { max, period, guard } => {
            let mut used = HashMap::new();
            for (at, cost) in sent {
                let about = at / period;
                for k in about - 2..about + 3 {
                    if reset(period, k) - guard <= *at && *at < reset(period, k + 1) + guard {
                        *used.entry(k).or_insert(0) += cost;
                    }
                }
            }
            used.into_values().max().unwrap_or(0) - max
        }
    }
}

fn judge(history: &History, flights: &[Flight], time: fn(&Flight) -> Micros) {
    for (at, &kind) in history.limits.iter().enumerate() {
        let under = flights.iter().filter(|flight| flight.set & (1 << at) != 0);
        let mut sent: Vec<_> = under.map(|flight| (time(flight), flight.costs[at])).collect();
        sent.sort_unstable();
        let over = over(kind, &sent);
        assert!(over <= 0, "over by {over}: {kind:?}\n{sent:?}");
    }
}

fn is_calendar(kind: &Kind) -> bool {
    matches!(kind, Kind::Calendar { .. })
}

#[test]
fn no_window_is_exceeded() {
    let wild = Wild { steps: 40, wrong: false, back: false, changes: false };
    proptest!(config(1_000), |(history in histories(wild))| {
        let mut flights = play(&history, &mut Pure(Ledger::new(history::EPOCH)));
        if history.has_classes() {
            flights.retain(|flight| !flight.far);
        }
        judge(&history, &flights, |flight| flight.slot);
    });
}

/// By a clock that never steps. What is far flies only if it was confirmed when it was near; a calendar hangs on
/// the clock itself.
#[test]
fn no_window_is_exceeded_while_the_clock_steps_back() {
    let wild = Wild { steps: 40, wrong: false, back: true, changes: false };
    proptest!(config(1_000), |(mut history in histories(wild))| {
        history.limits.retain(|kind| !is_calendar(kind));
        if history.limits.is_empty() {
            return Ok(());
        }
        let mut flights = play(&history, &mut Pure(Ledger::new(history::EPOCH)));
        flights.retain(|flight| !flight.far);
        judge(&history, &flights, |flight| flight.flies);
    });
}

/// What was granted last into a window was granted when all of it was within the limit of that moment. Without classes:
/// a far slot that is taken over was granted before.
#[test]
fn no_window_is_exceeded_while_limits_change() {
    let wild = Wild { steps: 60, wrong: false, back: false, changes: true };
    proptest!(config(1_000), |(mut history in histories(wild))| {
        history.forget_the_classes();
        let flights = play(&history, &mut Pure(Ledger::new(history::EPOCH)));
        for (at, &kind) in history.limits.iter().enumerate() {
            let Kind::Rolling { window, guard, .. } = kind else { continue };
            let under = flights.iter().filter(|flight| flight.set & (1 << at) != 0);
            let mut sent: Vec<_> = under.map(|flight| (flight.slot, flight.costs[at], flight)).collect();
            sent.sort_by_key(|(slot, ..)| *slot);
            let mut first = 0;
            for end in 0..sent.len() {
                while sent[first].0 <= sent[end].0 - window - guard {
                    first += 1;
                }
                let within = &sent[first..=end];
                let sum: i64 = within.iter().map(|(_, cost, _)| cost).sum();
                let last = within.iter().filter(|(_, cost, _)| *cost > 0).max_by_key(|(.., flight)| flight.order);
                let most = last.map_or(0, |(.., flight)| flight.most[at]);
                assert!(sum <= most, "{sum} of {most} until {}: {kind:?}\n{within:?}", sent[end].0);
            }
        }
    });
}

#[cfg(feature = "redis")]
#[test]
fn no_window_is_exceeded_by_the_scripts() {
    let redis = redis_server::PrivateRedis::start();
    let scripts = std::cell::RefCell::new(scripts::Scripts::on(&redis));
    let wild = Wild { steps: 40, wrong: false, back: false, changes: false };
    proptest!(config(50), |(history in histories(wild))| {
        let mut scripts = scripts.borrow_mut();
        scripts.forget();
        let mut flights = play(&history, &mut *scripts);
        if history.has_classes() {
            flights.retain(|flight| !flight.far);
        }
        judge(&history, &flights, |flight| flight.slot);
    });
}
