//! A store in this process decides a lone caller's usual call in place. It must say what a booking says.

use fastrand::Rng;
use tollgate::ledger::{Booked, Call, Costs, Ledger, Micros, Named, Reply, Rule, SECOND, Want};

const EPOCH: Micros = 1_700_000_000 * SECOND;

fn some_limits(rng: &mut Rng) -> Vec<Rule> {
    let kinds = (0..rng.usize(1..=2)).map(|_| {
        let (max, window) = (rng.i64(1..=12), SECOND * rng.i64(1..=3));
        let guard = [0, 10_000, window / 10][rng.usize(0..3)];
        match rng.u32(0..4) {
            0 => Rule::rolling(max, window, guard, true),
            1 => Rule::rolling(max, window, guard, false),
            2 => Rule::bucket(max, window, rng.i64(1..=max), guard),
            _ => Rule::calendar(max, guard, Vec::new()),
        }
    });
    kinds.collect()
}

/// The calendars as they stand at `now`.
fn named(rules: &[Rule], now: Micros) -> Vec<Named> {
    let named = rules.iter().enumerate().map(|(at, rule)| {
        let rule = match rule {
            Rule::Calendar(calendar) => {
                let first = now - now.rem_euclid(SECOND);
                Rule::calendar(calendar.max, calendar.guard, (0..5).map(|n| first + n * SECOND).collect())
            }
            rule => rule.clone(),
        };
        Named::new(format!("limit {at}"), rule)
    });
    named.collect()
}

/// A booking of one permit, now or not at all; the slot, if it was granted.
fn book(ledger: &mut Ledger, now: Micros, limits: &[Named], number: i64, cost: i64) -> Option<Micros> {
    let wants = vec![Want { costs: Costs::same(cost, limits.len()), class: 1, budget: Some(0), count: 1 }];
    let call = Call { member: 1, number, horizon: 50_000, wants, ..Call::default() };
    let Reply::Booked(answer) = ledger.book(now, limits, &call) else { panic!("the resets lie around now") };
    answer.outcomes[0].slots.first().copied()
}

fn give_back(ledger: &mut Ledger, now: Micros, limits: &[Named], number: i64, booked: Booked) {
    let generation = Some(ledger.generation());
    let call = Call { member: 1, number, generation, returns: vec![booked], ..Call::default() };
    ledger.book(now, limits, &call);
}

#[test]
fn from_the_decision_it_stands_for() {
    let (mut granted, mut refused) = (0, 0);
    for seed in 0..2_000 {
        let mut rng = Rng::with_seed(seed);
        let rules = some_limits(&mut rng);
        let (mut direct, mut plain) = (Ledger::new(EPOCH), Ledger::new(EPOCH));
        let mut now = EPOCH + rng.i64(0..SECOND);
        let mut last: Option<Booked> = None;
        for step in 0..150 {
            now += [0, 1, rng.i64(0..50_000), rng.i64(0..SECOND), 4 * SECOND][rng.usize(0..5)];
            let limits = named(&rules, now);
            let number = 2 * step;
            match rng.u32(0..20) {
                0 => {
                    let until = now + rng.i64(0..2 * SECOND);
                    assert_eq!(direct.pause(until), plain.pause(until));
                }
                1 => {
                    if let Some(booked) = last.take() {
                        give_back(&mut direct, now, &limits, number, booked.clone());
                        give_back(&mut plain, now, &limits, number, booked);
                    }
                }
                _ => {
                    let cost = rng.i64(1..=3);
                    let expected = book(&mut plain, now, &limits, number, cost);
                    let at_once = direct.take_now(now, &limits, &Costs::same(cost, limits.len()), 1, &[]);
                    let slot = match at_once {
                        Some(_) => Some(now),
                        None => book(&mut direct, now, &limits, number, cost),
                    };
                    assert_eq!(slot, expected, "seed {seed}, step {step}, cost {cost}: {rules:?}");
                    // Whatever is free now is free by the short way, too: else it would be of no use.
                    assert_eq!(
                        at_once.is_some(),
                        expected == Some(now),
                        "seed {seed}, step {step}: {rules:?}"
                    );
                    let left = direct.peek(now, &limits).map(|look| look.limits);
                    if let (Some((tightest, remaining)), Ok(left)) = (at_once, &left) {
                        assert_eq!(remaining, left[tightest].0);
                        let max = |at: usize| limits[at].rule.max();
                        let least =
                            (0..left.len()).all(|at| remaining * max(at) <= left[at].0 * max(tightest));
                        assert!(least, "{remaining} of {} is not the least of {left:?}", max(tightest));
                    }
                    last = slot.map(|slot| Booked::new(slot, Costs::same(cost, limits.len()))).or(last);
                    granted += u32::from(slot.is_some());
                    refused += u32::from(slot.is_none());
                }
            }
            assert_eq!(
                direct.peek(now, &limits),
                plain.peek(now, &limits),
                "seed {seed}, step {step}: {rules:?}"
            );
        }
    }
    println!("{granted} granted, {refused} refused");
    assert!(granted > 50_000 && refused > 50_000, "{granted} granted, {refused} refused");
}
