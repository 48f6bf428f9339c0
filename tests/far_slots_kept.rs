//! Who goes first has what lower classes have booked far ahead, and nobody flies in a slot that is another's now.

use tollgate::ledger::{
    Answer, Booked, Call, Class, Costs, Ledger, Micros, Named, Reply, Rule, SECOND, Want,
};

const EPOCH: Micros = 1_700_000_000 * SECOND;
const MINUTE: Micros = 60 * SECOND;

struct Fleet {
    ledger: Ledger,
    limits: Vec<Named>,
    number: i64,
}

impl Fleet {
    fn new(rules: Vec<Rule>) -> Self {
        let limits = rules.into_iter().enumerate().map(|(at, rule)| Named::new(format!("limit{at}"), rule));
        Self { ledger: Ledger::new(EPOCH), limits: limits.collect(), number: 0 }
    }

    fn call(&mut self, at: Micros, member: u64, call: Call) -> Answer {
        self.number += 1;
        let generation = Some(self.ledger.generation());
        let call = Call { member, number: self.number, generation, horizon: 50_000, ..call };
        match self.ledger.book(EPOCH + at, &self.limits, &call) {
            Reply::Booked(answer) => answer,
            Reply::Undecided(_) => panic!("no calendars here"),
        }
    }

    /// One permit each, and where: `None` if it was none.
    fn want(&mut self, at: Micros, member: u64, class: Class, cost: i64) -> Option<Booked> {
        let costs = Costs::same(cost, self.limits.len());
        let wants = vec![Want { costs: costs.clone(), class, budget: None, count: 1 }];
        let answer = self.call(at, member, Call { wants, ..Call::default() });
        let slot = *answer.outcomes[0].slots.first()?;
        let far = slot > answer.decided + 40_000 && class > answer.highest;
        Some(Booked { slot, costs, class, far })
    }

    fn confirm(&mut self, at: Micros, member: u64, booked: &Booked) -> Option<Micros> {
        let confirms = vec![booked.clone()];
        self.call(at, member, Call { confirms, ..Call::default() }).confirmed[0]
    }

    fn left(&self, at: Micros) -> i64 {
        self.ledger.peek(EPOCH + at, &self.limits).expect("no calendars").limits[0].0
    }
}

/// Full, and three of low class with a far slot each; a high one was seen.
fn full(rules: Vec<Rule>) -> (Fleet, Vec<Booked>) {
    let mut fleet = Fleet::new(rules);
    for _ in 0..10 {
        fleet.want(0, 9, 0, 1).expect("free");
    }
    let far: Vec<_> = (1..=3).map(|member| fleet.want(1_000, member, 2, 1).expect("a far slot")).collect();
    assert!(far.iter().all(|booked| booked.far) && far.windows(2).all(|pair| pair[0].slot < pair[1].slot));
    (fleet, far)
}

fn ten() -> Rule {
    Rule::rolling(10, MINUTE, 0, true)
}

#[test]
fn who_goes_first_stands_behind_a_batch() {
    let (mut fleet, far) = full(vec![ten()]);
    let high = fleet.want(2_000, 4, 0, 1).expect("a slot");
    assert_eq!(high.slot, far[0].slot, "the earliest far one of a lower class");
    let next = fleet.want(3_000, 5, 0, 1).expect("a slot");
    assert_eq!(next.slot, far[1].slot, "then the next");
    let normal = fleet.want(4_000, 6, 1, 1).expect("a slot");
    assert_eq!(normal.slot, far[2].slot, "the one in the middle goes before the lowest");
    let low = fleet.want(5_000, 7, 2, 1).expect("a slot");
    assert!(low.slot > far[2].slot, "its equals it does not rob");
}

#[test]
fn who_lost_its_slot_flies_in_it() {
    let (mut fleet, far) = full(vec![ten()]);
    fleet.want(2_000, 4, 0, 1).expect("a slot");
    let before = far[0].slot - EPOCH - 2_000;
    let anew = fleet.confirm(before, 1, &far[0]).expect("another one");
    assert!(anew > far[2].slot, "behind all that is booked: {anew}");
    let before = far[1].slot - EPOCH - 2_000;
    assert_eq!(fleet.confirm(before, 2, &far[1]), Some(far[1].slot), "nobody took that one");
    let late = fleet.want(before + 1_000, 8, 0, 1).expect("a slot");
    assert_eq!(late.slot, far[2].slot, "what is confirmed is nobody else's");
}

#[test]
fn who_lost_its_slot_gives_back_what_is_anothers() {
    let (mut fleet, far) = full(vec![ten()]);
    let high = fleet.want(2_000, 4, 0, 1).expect("a slot");
    fleet.call(3_000, 1, Call { returns: vec![far[0].clone()], ..Call::default() });
    // Ten are spent within the minute before `high`: it and two far ones are what there is at that time.
    let just_after = high.slot - EPOCH + 1;
    assert_eq!(fleet.left(just_after), 10 - 3);
    fleet.call(just_after, 2, Call { returns: vec![far[1].clone()], ..Call::default() });
    assert_eq!(fleet.left(just_after), 10 - 2, "its own it can give back");
}

#[test]
fn a_slot_is_taken_without_room_under_another_limit() {
    let narrow = Rule::rolling(13, 2 * MINUTE, 0, false);
    let (mut fleet, far) = full(vec![ten(), narrow]);
    let high = fleet.want(2_000, 4, 0, 1).expect("a slot");
    assert_eq!(high.slot, far[0].slot, "what the other has charged for it under both limits is its own now");
    let dear = fleet.want(3_000, 5, 0, 2).expect("a slot");
    assert!(dear.slot > far[2].slot, "a far slot of 1 is none of 2");
}

#[test]
fn nothing_is_noted_while_nobody_goes_first() {
    let mut fleet = Fleet::new(vec![ten()]);
    for _ in 0..10 {
        fleet.want(0, 9, 1, 1).expect("free");
    }
    let far = fleet.want(1_000, 1, 1, 1).expect("a far slot");
    assert!(!far.far, "who has the usual class need not ask whether it still has its slot");
    let high = fleet.want(2_000, 4, 0, 1).expect("a slot");
    assert!(high.slot > far.slot, "so nobody takes it: {} and {}", high.slot, far.slot);
}

#[test]
fn the_lowest_class_leaves_no_room_for_a_burst() {
    let fleet = |reserve| {
        let mut fleet = Fleet::new(vec![Rule::rolling(10, MINUTE, 0, false)]);
        fleet.limits[0].reserve = reserve;
        fleet
    };
    let free = |fleet: &mut Fleet, class| {
        let booked = fleet.want(1_000, 5, class, 1);
        booked.is_some_and(|booked| booked.slot == EPOCH + 1_000)
    };
    let mut with = fleet(3);
    assert!((0..10).all(|_| free(&mut with, 2)), "alone it has everything");
    let mut with = fleet(3);
    with.want(0, 4, 0, 1).expect("free");
    assert_eq!((0..10).filter(|_| free(&mut with, 2)).count(), 6, "of ten one is taken and three are left");
    assert!((0..3).all(|_| free(&mut with, 0)) && !free(&mut with, 0));
    let mut with = fleet(3);
    with.want(0, 4, 0, 1).expect("free");
    assert_eq!((0..10).filter(|_| free(&mut with, 1)).count(), 9, "the usual class leaves nothing");
}
