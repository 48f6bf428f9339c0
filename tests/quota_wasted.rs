//! A saturated limit must give all it has: after the cold burst, at least promise 2's share of each window.

use tollgate::ledger::{Booked, Call, Costs, Ledger, Micros, Named, Reply, Rule, SECOND, Want};

const EPOCH: Micros = 1_700_000_000 * SECOND;

/// One member that books without end, as fast as the ledger lets it; slots from the first on.
fn saturate(rule: Rule, until: Micros) -> Vec<Micros> {
    let limits = [Named::new("it", rule)];
    let mut ledger = Ledger::new(EPOCH);
    let (mut now, mut slots, mut number) = (EPOCH, Vec::new(), 0);
    while now < EPOCH + until {
        number += 1;
        let call = Call {
            member: 1,
            number,
            horizon: 50_000,
            wants: vec![Want { costs: Costs::same(1, 1), class: 1, budget: None, count: 2_000 }],
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

/// A member under one limit, on a clock that the test sets.
struct Member {
    ledger: Ledger,
    limits: [Named; 1],
    number: i64,
}

impl Member {
    fn new(rule: Rule) -> Self {
        Self { ledger: Ledger::new(EPOCH), limits: [Named::new("it", rule)], number: 0 }
    }

    /// Gives back and books in one call.
    fn book(&mut self, now: Micros, returns: Vec<Booked>, want: Want) -> Vec<Micros> {
        self.number += 1;
        let generation = Some(self.ledger.generation());
        let (number, wants) = (self.number, vec![want]);
        let call = Call { member: 1, number, generation, horizon: 50_000, returns, wants, ..Call::default() };
        let Reply::Booked(answer) = self.ledger.book(now, &self.limits, &call) else { panic!("stale") };
        answer.outcomes[0].slots.clone()
    }
}

/// As a client does that books a redirect hop ahead with each call, and seldom needs it.
#[test]
fn what_is_booked_ahead_and_given_back_does_not_slow_the_stream() {
    let mut member = Member::new(Rule::rolling(100, SECOND, 50_000, true));
    let (mut held, mut sent): (Vec<Micros>, usize) = (Vec::new(), 0);
    for milli in 0..10_000 {
        let now = EPOCH + milli * 1_000;
        let (answered, flying): (Vec<_>, Vec<_>) = held.iter().partition(|&&slot| slot + 5_000 <= now);
        held = flying;
        let returns = answered.iter().map(|&slot| Booked::new(slot, Costs::same(1, 1))).collect();
        held.extend(member.book(
            now,
            returns,
            Want { costs: Costs::same(2, 1), class: 1, budget: Some(20_000), count: 50 },
        ));
        sent += answered.len();
    }
    // What is booked counts twice from its booking to its answer, for up to 25 ms of a second.
    assert!(sent > 850, "{sent} of 952 in ten windows");
}

#[test]
fn much_that_comes_back_at_once_is_no_burst() {
    let mut member = Member::new(Rule::rolling(1_000, SECOND, 50_000, true));
    let at_once = Want { costs: Costs::same(1, 1), class: 1, budget: Some(0), count: 2_000 };
    member.book(EPOCH, Vec::new(), at_once.clone());
    // Rejecting callers: one permit each 1.05 ms, from when the burst comes back.
    let mut taken = Vec::new();
    for step in 1_100..1_500 {
        taken.extend(member.book(EPOCH + step * 1_050, Vec::new(), at_once.clone()));
    }
    let now = EPOCH + 1_500 * 1_050;
    let returns = taken.iter().rev().take(50).map(|&slot| Booked::new(slot, Costs::same(1, 1))).collect();
    let free = member.book(now, returns, at_once.clone()).len();
    // This millisecond's own, and what the slack of 5 ms allows to catch up anyway.
    let calm = {
        let mut member = Member::new(Rule::rolling(1_000, SECOND, 50_000, true));
        member.book(EPOCH, Vec::new(), at_once.clone());
        (1_100..1_500).for_each(|step| _ = member.book(EPOCH + step * 1_050, Vec::new(), at_once.clone()));
        member.book(now, Vec::new(), at_once.clone()).len()
    };
    assert_eq!(free, calm);
}
