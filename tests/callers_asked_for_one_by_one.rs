//! A call to the store grows with the callers it asks for, because each has a deadline of its own; or a deadline is
//! not kept because they are asked for together.

#[path = "support/lab.rs"]
mod lab;

use lab::{Lab, MILLI};
use tollgate::{
    gate::{Patience, Verdict},
    ledger::{Rule, SECOND},
};

#[test]
fn each_is_a_want_of_its_own() {
    let mut lab = Lab::new(Rule::rolling(1, SECOND, 0, false), 0);
    for at in 0..100 {
        lab.wait(MILLI + at * 500, "patient");
    }
    let call = lab.poll(60 * MILLI).call.expect("it asks");
    assert_eq!(call.wants.iter().map(|want| want.count).sum::<u32>(), 100);
    assert_eq!(call.wants.len(), 1, "{:?}", call.wants);
}

/// The store, which was told a little more time, grants a slot that is too late.
#[test]
fn who_cannot_wait_so_long_is_told_late() {
    // The next slot is a second after the first.
    let due = MILLI + SECOND;
    for (deadline, waits) in [(due - 1, false), (due, true), (due - 50 * MILLI, false)] {
        let mut lab = Lab::new(Rule::rolling(1, SECOND, 0, false), 0);
        lab.wait(MILLI, "first");
        let leaves = lab.wait(MILLI, "leaves");
        lab.turn(MILLI);
        lab.told();
        lab.core.leave(leaves);
        let call = lab.poll(2 * MILLI).call.expect("a far slot goes back");
        // Nobody knows any more that there is nothing for so long.
        lab.arrive(2 * MILLI, "hasty", Patience::Until(deadline)).expect("a place");
        lab.wait(2 * MILLI, "patient");
        let answer = lab.decide(2 * MILLI, &call);
        lab.answered(2 * MILLI, answer);
        lab.turn(2 * MILLI);
        let refused = |(name, verdict)| match verdict {
            Verdict::Granted(_) => None,
            Verdict::Later { retry_after, limit: Some(0) } => Some((name, retry_after)),
            other => panic!("{name} was told {other:?}"),
        };
        let refused: Vec<_> = lab.told().into_iter().filter_map(refused).collect();
        assert_eq!(refused, if waits { vec![] } else { vec![("hasty", due - 2 * MILLI)] }, "{deadline}");
        lab.turn(due - MILLI);
        lab.turn(due);
        let granted: Vec<_> = lab.granted().into_iter().map(|(name, _)| name).collect();
        assert_eq!(granted, [if waits { "hasty" } else { "patient" }], "the slot is used: {deadline}");
    }
}

/// Rounded, a budget is never less than it was, and not much more.
#[test]
fn who_has_no_time_is_given_some() {
    for (budget, most) in [(2, 3), (100, 112), (SECOND, SECOND + SECOND / 8)] {
        let mut lab = Lab::new(Rule::rolling(1, SECOND, 0, false), 0);
        lab.arrive(MILLI, "hasty", Patience::Until(MILLI + budget)).expect("a place");
        let call = lab.poll(MILLI).call.expect("it asks");
        let told = call.wants[0].budget.expect("a bound");
        assert!((budget..=most).contains(&told), "{told} of {budget}");
    }
}
