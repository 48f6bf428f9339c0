//! What comes back is had by who asks about its far slot, as far as nobody else loses by that. Played to the decision
//! itself and to the scripts.

#[path = "support/history.rs"]
mod history;
#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;
#[cfg(feature = "redis")]
#[path = "support/scripts.rs"]
mod scripts;

use history::{EPOCH, Machine, Pure};
use tollgate::ledger::{
    Booked, Call, Class, Costs, Generation, Ledger, Micros, Named, Peek, Reply, Rule, SECOND, Want,
};

const MINUTE: Micros = 60 * SECOND;

/// How far ahead slots are near.
const NEAR: Micros = 40_000;

struct Fleet<'a> {
    machine: &'a mut dyn Machine,
    limits: Vec<Named>,
    number: i64,
    generation: Option<Generation>,
}

impl Fleet<'_> {
    fn call(&mut self, at: Micros, member: u64, call: Call) -> Vec<Option<Micros>> {
        self.number += 1;
        let places = Costs::same(0, self.limits.len());
        let generation = self.generation;
        let call = Call { member, number: self.number, generation, horizon: 50_000, places, ..call };
        let Reply::Booked(answer) = self.machine.book(EPOCH + at, &self.limits, &call) else {
            panic!("no calendars here")
        };
        self.generation = Some(answer.generation);
        let slots = answer.outcomes.iter().flat_map(|outcome| &outcome.slots).map(|slot| Some(slot - EPOCH));
        answer.confirmed.iter().map(|slot| slot.map(|slot| slot - EPOCH)).chain(slots).collect()
    }

    fn want(&mut self, at: Micros, member: u64, class: Class, cost: i64) -> Booked {
        let costs = Costs::same(cost, self.limits.len());
        let wants = vec![Want { costs: costs.clone(), class, budget: None, count: 1 }];
        let slot = self.call(at, member, Call { wants, ..Call::default() })[0].expect("a slot");
        // Somebody of the highest class was seen.
        Booked { slot: EPOCH + slot, costs, class, far: slot > at + NEAR && class > 0 }
    }

    fn confirm(&mut self, at: Micros, booked: &Booked) -> Option<Micros> {
        self.call(at, 1, Call { confirms: vec![booked.clone()], ..Call::default() })[0]
    }

    fn peek(&mut self, at: Micros) -> Peek {
        self.machine.peek(EPOCH + at, &self.limits).expect("no calendars")
    }
}

fn unpaced() -> Rule {
    Rule::rolling(10, MINUTE, 0, false)
}

/// All ten are booked, then two far ahead, a minute later; then five come back, and at 3 ms it begins.
fn half_comes_back(rules: &[Rule], class: Class, then: impl Fn(&mut Fleet<'_>, &Booked)) {
    let play = |machine: &mut dyn Machine| {
        let limits =
            rules.iter().enumerate().map(|(at, rule)| Named::new(format!("limit{at}"), rule.clone()));
        let mut fleet = Fleet { machine, limits: limits.collect(), number: 0, generation: None };
        fleet.limits[0].reserve = 3;
        let booked: Vec<_> = (0..10).map(|_| fleet.want(0, 9, 0, 1)).collect();
        let far = fleet.want(1_000, 1, class, 2);
        assert!(far.far && far.slot >= EPOCH + MINUTE);
        fleet.call(2_000, 9, Call { returns: booked[5..].to_vec(), ..Call::default() });
        then(&mut fleet, &far);
    };
    play(&mut Pure(Ledger::new(EPOCH)));
    #[cfg(feature = "redis")]
    {
        let redis = redis_server::PrivateRedis::start();
        let mut scripts = scripts::Scripts::on(&redis);
        scripts.forget();
        play(&mut scripts);
    }
}

#[test]
fn what_is_far_stays_where_it_was() {
    for rule in [unpaced(), Rule::rolling(10, MINUTE, 0, true)] {
        half_comes_back(&[rule], 1, |fleet, far| {
            assert_eq!(fleet.confirm(3_000, far), Some(3_000 + NEAR), "out of order and pace");
            assert_eq!(fleet.peek(3_000).limits[0].0, 10 - 5 - 2, "its old place is free");
        });
    }
}

/// Who gives back at once what it did not need, as hops booked ahead, would move up again and again: a window was spent
/// in a fraction of it.
#[test]
fn it_moves_up_to_now_at_once() {
    half_comes_back(&[Rule::rolling(10, MINUTE, 0, true)], 1, |fleet, far| {
        let moved = fleet.confirm(3_000, far).expect("a slot");
        assert!(moved >= 3_000 + NEAR, "{moved}");
    });
}

#[test]
fn it_moves_to_where_there_is_no_room() {
    half_comes_back(&[unpaced()], 1, |fleet, far| {
        assert_eq!(fleet.want(2_500, 2, 0, 4).slot, EPOCH + 2_500);
        assert_eq!(fleet.confirm(3_000, far), Some(MINUTE));
        assert_eq!(fleet.confirm(4_000, far), Some(MINUTE), "and it is still its own");
    });
}

#[test]
fn it_is_put_off_by_a_debt() {
    half_comes_back(&[unpaced()], 1, |fleet, far| {
        let more = Booked::new(EPOCH + 1, Costs::same(9, 1));
        fleet.call(2_500, 2, Call { settles: vec![more], ..Call::default() });
        assert_eq!(fleet.confirm(3_000, far), Some(MINUTE));
    });
}

#[test]
fn what_is_near_moves_up_with_its_places_taken_twice() {
    half_comes_back(&[unpaced(), Rule::in_flight(4, MINUTE)], 1, |fleet, far| {
        assert_eq!(fleet.confirm(MINUTE - 1_000, far), Some(MINUTE));
        assert_eq!(fleet.peek(MINUTE - 1_000).limits[1].0, 4 - 2, "it has its places");
    });
}

#[test]
fn all_move_to_the_end_of_a_pause() {
    half_comes_back(&[Rule::rolling(10, MINUTE, 0, true)], 1, |fleet, far| {
        fleet.machine.pause(EPOCH, None, SECOND);
        assert_eq!(fleet.confirm(3_000, far), Some(MINUTE));
        assert_eq!(fleet.confirm(SECOND + 1, far), Some(SECOND + 1 + NEAR), "it is over");
    });
}

#[test]
fn who_goes_last_moves_into_what_it_leaves_to_others() {
    half_comes_back(&[unpaced()], 2, |fleet, far| {
        assert_eq!(fleet.confirm(3_000, far), Some(3_000 + NEAR), "three of five are left");
    });
    half_comes_back(&[unpaced()], 2, |fleet, far| {
        assert_eq!(fleet.want(2_500, 2, 0, 1).slot, EPOCH + 2_500);
        assert_eq!(fleet.confirm(3_000, far), Some(MINUTE), "two of four would be");
    });
}

#[test]
fn a_bucket_loses_what_moves_up() {
    half_comes_back(&[unpaced(), Rule::bucket(60, MINUTE, 20, 0)], 1, |fleet, far| {
        let before = fleet.peek(3_000);
        assert_eq!(fleet.confirm(3_000, far), Some(MINUTE));
        assert_eq!(fleet.peek(3_000), before);
    });
}

#[test]
fn what_is_more_than_a_limit_has_by_now_moves_up() {
    half_comes_back(&[unpaced()], 1, |fleet, far| {
        fleet.limits[0].rule = Rule::rolling(1, MINUTE, 0, false);
        assert_eq!(fleet.confirm(3_000, far), Some(MINUTE));
    });
}

#[test]
fn it_takes_its_places_too_early() {
    // What another takes of both, where it is then, and how many places are left.
    for (max, taken, slot, left) in [(10, 4, MINUTE, 6), (2, 1, MINUTE, 1), (2, 0, 3_000 + NEAR, 0)] {
        half_comes_back(&[unpaced(), Rule::in_flight(max, MINUTE)], 1, |fleet, far| {
            if taken > 0 {
                assert_eq!(fleet.want(2_500, 2, 0, taken).slot, EPOCH + 2_500);
            }
            assert_eq!(fleet.confirm(3_000, far), Some(slot), "{max}, {taken}");
            assert_eq!(fleet.peek(3_000).limits[1].0, left, "{max}, {taken}: it has places when it is near");
        });
    }
}
