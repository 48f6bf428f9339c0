//! A saturated limit must give all it has: after the cold burst, at least promise 2's share of each window.

use tollgate::ledger::{Call, Ledger, Micros, Named, Reply, Rule, SECOND, Want};

const EPOCH: Micros = 1_700_000_000 * SECOND;

/// One member that books without end, as fast as the ledger lets it; slots from the first on.
fn saturate(rule: Rule, until: Micros) -> Vec<Micros> {
    let limits = [Named { name: "it".into(), rule }];
    let mut ledger = Ledger::new(EPOCH);
    let (mut now, mut slots, mut number) = (EPOCH, Vec::new(), 0);
    while now < EPOCH + until {
        number += 1;
        let call = Call {
            member: 1,
            number,
            horizon: 50_000,
            wants: vec![Want { cost: 1, budget: None, count: 2_000 }],
            ..Call::default()
        };
        let Reply::Booked(answer) = ledger.book(now, &limits, &call) else { panic!("stale") };
        slots.extend(&answer.outcomes[0].slots);
        now = now.max(slots.last().copied().unwrap_or(now) - 25_000) + 1;
    }
    slots.iter().map(|slot| slot - EPOCH).collect()
}

fn most_within(slots: &[Micros], window: Micros) -> usize {
    let mut first = 0;
    let mut most = 0;
    for (at, slot) in slots.iter().enumerate() {
        while slots[first] <= slot - window {
            first += 1;
        }
        most = most.max(at + 1 - first);
    }
    most
}

#[test]
fn no_window_is_left_unused_whatever_its_size() {
    for max in [1, 7, 100, 300, 1_000, 5_000, 20_000] {
        let (window, guard) = (SECOND, 50_000);
        let slots = saturate(Rule::rolling(max, window, guard, true), 20 * window);
        assert!(most_within(&slots, window) <= max as usize, "{max}: over");
        let promised = max as f64 * window as f64 / (window + guard + window / 256) as f64;
        for at in 2..20 {
            let used = slots.iter().filter(|&&slot| (at..at + 1).contains(&(slot / window))).count();
            assert!(used as f64 >= 0.98 * promised - 1.0, "{max}, window {at}: {used} of {promised}");
        }
    }
}
