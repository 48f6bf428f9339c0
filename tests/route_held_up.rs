//! A saturated route must not hold up another: a slot that waits for one limit moves neither order nor pace
//! of the others it is charged to.

use tollgate::ledger::{Call, Costs, Ledger, Micros, Named, Reply, Rule, SECOND, Want};

const EPOCH: Micros = 1_700_000_000 * SECOND;
const MINUTE: Micros = 60 * SECOND;

struct Provider {
    ledger: Ledger,
    number: i64,
    all: Rule,
}

impl Provider {
    fn new(all: Rule) -> Self {
        Self { ledger: Ledger::new(EPOCH), number: 0, all }
    }

    /// Books one permit on a route and tells how long it waits.
    fn book(&mut self, now: Micros, route: &str, rule: Rule) -> Micros {
        let limits = [Named::new("all", self.all.clone()), Named::new(route, rule)];
        self.number += 1;
        let wants = vec![Want { costs: Costs::same(1, 2), class: 1, budget: None, count: 1 }];
        let call = Call { member: 1, number: self.number, horizon: 50_000, wants, ..Call::default() };
        let Reply::Booked(answer) = self.ledger.book(now, &limits, &call) else { panic!("stale") };
        answer.outcomes[0].slots[0] - now
    }
}

#[test]
fn by_a_route_whose_window_is_full() {
    let guard = MINUTE / 100;
    for all in [Rule::rolling(100, MINUTE, guard, true), Rule::bucket(100, MINUTE, 100, 0)] {
        let mut provider = Provider::new(all);
        let narrow = || Rule::rolling(10, MINUTE, guard, true);
        for _ in 0..10 {
            assert_eq!(provider.book(EPOCH, "narrow", narrow()), 0);
        }
        for _ in 0..5 {
            assert!(provider.book(EPOCH, "narrow", narrow()) >= MINUTE);
        }
        for _ in 0..80 {
            assert_eq!(provider.book(EPOCH, "wide", Rule::rolling(1_000, MINUTE, guard, true)), 0);
        }
    }
}

#[test]
fn by_a_route_that_stays_saturated() {
    let guard = MINUTE / 100;
    let mut provider = Provider::new(Rule::rolling(100, MINUTE, guard, true));
    let mut worst = 0;
    for second in 0..600 {
        let now = EPOCH + second * SECOND;
        let waits_already = provider.book(now, "narrow", Rule::rolling(10, MINUTE, guard, true));
        if waits_already < 5 * MINUTE {
            worst = worst.max(provider.book(now, "wide", Rule::rolling(1_000, MINUTE, guard, true)));
        }
    }
    assert_eq!(worst, 0);
}
