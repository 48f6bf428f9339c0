//! Limits of calls in flight: at most so many at once, and no place is lost, whoever dies, comes late or is told twice.
//! What the store decides, at moments of the test's choice.

use tollgate::ledger::{Answer, Call, Costs, Generation, Ledger, Micros, Named, Reply, Rule, SECOND, Want};

const EPOCH: Micros = 1_700_000_000 * SECOND;
const LEASE: Micros = 10 * SECOND;

struct Desk {
    ledger: Ledger,
    limits: Vec<Named>,
    number: i64,
}

impl Desk {
    fn of(max: i64) -> Self {
        let limits = vec![Named::new("in_flight", Rule::in_flight(max, LEASE))];
        Self { ledger: Ledger::new(EPOCH), limits, number: 0 }
    }

    /// A member that has so many places tells it, and asks for more. How many it gets.
    fn call(&mut self, now: Micros, member: u64, places: i64, wants: u32, budget: Option<Micros>) -> usize {
        self.number += 1;
        let number = self.number;
        self.again(now, member, number, places, wants, budget).outcomes.iter().map(|it| it.slots.len()).sum()
    }

    fn again(
        &mut self,
        now: Micros,
        member: u64,
        number: i64,
        places: i64,
        wants: u32,
        budget: Option<Micros>,
    ) -> Answer {
        let wants = match wants {
            0 => vec![],
            count => vec![Want { costs: Costs::same(1, 1), class: 1, budget, count }],
        };
        let places = Costs::same(places, 1);
        let call = Call { member, number, places, horizon: 50_000, wants, ..Call::default() };
        match self.ledger.book(EPOCH + now, &self.limits, &call) {
            Reply::Booked(answer) => answer,
            Reply::Undecided(_) => panic!("no calendars here"),
        }
    }

    /// Now or not at all.
    fn take(&mut self, now: Micros, member: u64, places: i64, wants: u32) -> usize {
        self.call(now, member, places, wants, Some(0))
    }

    fn tell(&mut self, now: Micros, member: u64, places: i64) {
        self.call(now, member, places, 0, None);
    }

    fn left(&self, now: Micros) -> i64 {
        self.ledger.peek(EPOCH + now, &self.limits).expect("no calendars here").limits[0].0
    }

    /// When the next one could fly, after `now`.
    fn next(&self, now: Micros) -> Micros {
        self.ledger.peek(EPOCH + now, &self.limits).expect("no calendars here").limits[0].1 - EPOCH - now
    }
}

#[test]
fn a_place_is_free_when_that_is_told() {
    let mut desk = Desk::of(3);
    assert_eq!(desk.take(0, 1, 0, 2), 2);
    assert_eq!((desk.left(0), desk.next(0)), (1, 0));
    assert_eq!(desk.take(1, 2, 0, 3), 1);
    assert_eq!((desk.left(1), desk.next(1)), (0, LEASE - 1));
    desk.tell(2, 1, 1);
    assert_eq!((desk.left(2), desk.next(2)), (1, 0));
    desk.tell(3, 1, 0);
    assert_eq!(desk.left(3), 2);
}

#[test]
fn the_places_of_who_is_gone_are_free_when_their_lease_is_over() {
    let mut desk = Desk::of(20);
    assert_eq!(desk.take(0, 1, 0, 10), 10);
    desk.tell(4 * SECOND, 1, 10);
    assert_eq!(desk.take(5 * SECOND, 2, 0, 20), 10);
    // Heard of at 4 s for the last time.
    let over = 4 * SECOND + LEASE;
    desk.tell(over - 1, 2, 10);
    assert_eq!(desk.left(over - 1), 0);
    assert_eq!(desk.take(over - 1, 2, 10, 1), 0);
    assert_eq!(desk.left(over), 10);
    assert_eq!(desk.take(over, 2, 10, 20), 10);
    assert_eq!(desk.left(over), 0);
}

/// Its process stood still for longer than its lease; others have its places by now.
#[test]
fn what_comes_back_late_makes_no_room() {
    let mut desk = Desk::of(20);
    assert_eq!(desk.take(0, 1, 0, 10), 10);
    assert_eq!(desk.take(LEASE, 2, 0, 20), 20);
    for (late, left) in [(10, 0), (4, 0), (0, 0)] {
        desk.tell(LEASE + 1, 1, late);
        assert_eq!(desk.left(LEASE + 1), left, "with {late}");
        assert_eq!(desk.take(LEASE + 1, 3, 0, 1), 0, "with {late}");
    }
    // Those who fly know what they have.
    desk.tell(LEASE + 2, 2, 19);
    assert_eq!(desk.left(LEASE + 2), 1);
}

#[test]
fn what_is_told_twice_makes_no_room() {
    let mut desk = Desk::of(5);
    assert_eq!(desk.take(0, 1, 0, 3), 3);
    assert_eq!(desk.take(0, 2, 0, 5), 2);
    for _ in 0..3 {
        desk.tell(1, 1, 1);
        assert_eq!(desk.left(1), 2);
    }
    // The very same call: it may have been carried out the first time.
    for _ in 0..3 {
        let answer = desk.again(2, 2, 1_000, 2, 1, Some(0));
        assert_eq!(answer.outcomes[0].slots.len(), 1);
        assert_eq!(desk.left(2), 1);
    }
}

/// More calls fly than there are places, as after a loss: nothing becomes negative, nobody gets one too many.
#[test]
fn a_store_that_has_lost_its_state_hears_of_all_places_again() {
    let mut desk = Desk::of(10);
    assert_eq!(desk.take(0, 1, 0, 6), 6);
    assert_eq!(desk.take(0, 2, 0, 4), 4);
    let limits = desk.limits.clone();
    desk = Desk { ledger: Ledger::new(EPOCH + 1), limits, number: desk.number };
    assert_eq!(desk.left(1), 10);
    // Whoever is first may have what the others have.
    assert_eq!(desk.take(1, 3, 0, 3), 3);
    desk.tell(2, 1, 6);
    assert_eq!(desk.left(2), 1);
    assert_eq!(desk.take(3, 2, 4, 5), 0);
    assert_eq!(desk.left(3), 0);
    // 13 fly.
    for (member, places, left) in [(3, 1, 0), (3, 0, 0), (2, 3, 1), (1, 0, 7), (2, 0, 10)] {
        desk.tell(4, member, places);
        assert_eq!(desk.left(4), left, "{member} has {places}");
    }
}

/// What a member gives back or settles in a call is not among the places that it tells.
#[test]
fn what_is_returned_is_not_counted_twice() {
    let mut desk = Desk::of(5);
    let booked = |slot| tollgate::ledger::Booked::new(slot, Costs::same(1, 1));
    assert_eq!(desk.take(0, 1, 0, 3), 3);
    let generation = Some(Generation { ordinal: 1, since: EPOCH });
    let call = Call {
        member: 1,
        number: 100,
        generation,
        places: Costs::same(2, 1),
        returns: vec![booked(EPOCH)],
        settles: vec![booked(EPOCH)],
        ..Call::default()
    };
    assert!(matches!(desk.ledger.book(EPOCH + 1, &desk.limits, &call), Reply::Booked(_)));
    assert_eq!(desk.left(1), 3);
    // Also if the store knows nothing of what they were booked under.
    let call = Call { number: 101, generation: None, places: Costs::same(1, 1), ..call };
    assert!(matches!(desk.ledger.book(EPOCH + 2, &desk.limits, &call), Reply::Booked(_)));
    assert_eq!(desk.left(2), 4);
}

/// A smaller limit after a deploy: who has more than there are now waits until they have landed.
#[test]
fn a_smaller_limit_counts_what_flies_already() {
    let mut desk = Desk::of(10);
    assert_eq!(desk.take(0, 1, 0, 8), 8);
    desk.limits = vec![Named::new("in_flight", Rule::in_flight(4, LEASE))];
    assert_eq!(desk.left(1), 0);
    for (places, got) in [(7, 0), (4, 0), (3, 1)] {
        assert_eq!(desk.take(1, 1, places, 2), got, "with {places}");
    }
}
