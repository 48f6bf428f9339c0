//! A limit changes while a gate holds permits or has a call under way: what the call told is lost, or what was granted
//! under the limit before is used.

#[path = "support/lab.rs"]
mod lab;

use lab::{Lab, MILLI, at};
use tollgate::{
    gate::{Patience, Permit, Ticket},
    ledger::{Costs, Micros, Rule, SECOND},
};

const GUARD: Micros = 10 * MILLI;

fn rolling(max: i64) -> Rule {
    Rule::rolling(max, SECOND, GUARD, false)
}

/// When the far slot of c is due, and when it is confirmed.
const DUE: Micros = MILLI + SECOND + GUARD;
const SOON: Micros = DUE - MILLI;

/// With two permits that fly, a far one for c, and nothing for d.
fn saturated() -> (Lab, Vec<Permit>, [Ticket; 2]) {
    let mut lab = Lab::new(rolling(2), GUARD);
    let [_, _, c, d] = ["a", "b", "c", "d"].map(|name| lab.wait(MILLI, name));
    lab.turn(MILLI);
    let flying = lab.granted().into_iter().map(|(_, permit)| permit).collect();
    (lab, flying, [c, d])
}

#[test]
fn a_far_slot_of_before_is_kept() {
    let (mut lab, ..) = saturated();
    lab.change(rolling(1), GUARD);
    let call = lab.poll(10 * MILLI).call.expect("it gives back");
    assert_eq!(call.returns.len(), 1, "the far slot of c");
    assert_eq!(call.wants.iter().map(|want| want.count).sum::<u32>(), 2, "c and d ask anew");
    let answer = lab.decide(10 * MILLI, &call);
    lab.answered(10 * MILLI, answer);
    lab.turn(5 * SECOND);
    assert_eq!(lab.granted().len(), 1, "one in a window now");
}

#[test]
fn what_was_granted_under_way_is_used() {
    let (mut lab, ..) = saturated();
    let call = lab.poll(SOON).call.expect("the far slot is confirmed");
    assert_eq!(call.confirms.len(), 1);
    let answer = lab.decide(SOON, &call);
    assert!(answer.confirmed[0].is_some() && !answer.outcomes[0].slots.is_empty(), "one for c and d each");
    lab.change(rolling(1), GUARD);
    lab.answered(DUE, answer);
    assert_eq!(lab.granted(), []);
    lab.turn(DUE);
    assert_eq!(lab.granted().len(), 1, "one in a window now");
}

#[test]
fn what_a_call_told_is_lost() {
    let (mut lab, flying, waiting) = saturated();
    lab.core.settle(&flying[0], Costs::same(3, 1));
    assert!(waiting.into_iter().all(|ticket| lab.core.leave(ticket)));
    let told = lab.poll(60 * MILLI).call.expect("it tells");
    assert_eq!((told.settles.len(), told.returns.len()), (1, 1), "{told:?}");
    lab.change(rolling(1), GUARD);
    lab.core.undecided();
    let again = lab.poll(61 * MILLI).call.expect("it tells again");
    assert_eq!((&again.settles, &again.returns), (&told.settles, &told.returns));
    assert!(again.number > told.number, "nothing is known by its number");
}

#[test]
fn what_is_being_confirmed_is_lost() {
    let (mut lab, ..) = saturated();
    let told = lab.poll(SOON).call.expect("the far slot is confirmed");
    assert_eq!(told.confirms.len(), 1);
    lab.change(rolling(1), GUARD);
    lab.core.undecided();
    let again = lab.poll(SOON).call.expect("it gives back");
    assert_eq!((&again.returns, again.confirms.len()), (&told.confirms, 0));
    assert_eq!(again.wants.iter().map(|want| want.count).sum::<u32>(), 2, "c and d ask anew");
}

#[test]
fn a_place_that_is_free_again_is_not_told() {
    let mut lab = Lab::new(Rule::in_flight(1, 30 * SECOND), SECOND);
    lab.wait(MILLI, "a");
    lab.turn(MILLI);
    lab.core.landed(&Costs::same(1, 1));
    lab.poll(2 * MILLI).call.expect("it tells");
    lab.change(Rule::in_flight(2, 30 * SECOND), SECOND);
    lab.core.undecided();
    let again = lab.poll(2 * MILLI).call.expect("it tells again");
    assert_eq!(again.places, Costs::same(0, 1));
}

#[test]
fn who_is_late_is_forgiven_by_the_guard_of_before() {
    for (guard, flies) in [(100 * MILLI, true), (GUARD, false)] {
        let mut lab = Lab::new(Rule::rolling(2, SECOND, 100 * MILLI, false), 100 * MILLI);
        lab.change(Rule::rolling(2, SECOND, guard, false), guard);
        lab.arrive(MILLI, "a", Patience::Until(SECOND)).expect("a place");
        lab.turn(MILLI);
        let (_, permit) = lab.granted().remove(0);
        assert_eq!(lab.core.may_fly(&permit, at(41 * MILLI)), flies, "{guard}");
    }
}

#[test]
fn places_are_renewed_as_of_the_lease_of_before() {
    for (lease, due) in [(30, 10), (6, 2)] {
        let mut lab = Lab::new(Rule::in_flight(2, 30 * SECOND), SECOND);
        lab.wait(MILLI, "a");
        lab.turn(MILLI);
        assert_eq!(lab.granted().len(), 1);
        lab.change(Rule::in_flight(2, lease * SECOND), SECOND);
        assert!(lab.poll(due * SECOND).call.is_none(), "{lease}");
        assert!(lab.poll(due * SECOND + 2 * MILLI).call.is_some(), "{lease}");
    }
}
