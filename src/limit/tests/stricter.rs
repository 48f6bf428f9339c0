//! Limits of one name in one: it admits more than one of them, or cannot be counted.

use proptest::prelude::*;

use super::limit;
use crate::limit::{Kind, Limit};

fn numbers(limit: &Limit) -> (u64, Option<u64>, u128, u128) {
    let (max, burst) = limit.grains();
    (max, burst, limit.guard().as_micros(), limit.window().as_micros())
}

#[test]
fn it_says_what_one_of_them_says_in_other_words() {
    for (one, other, both) in [
        ("100/min", "50/min", "50/min"),
        ("100/min share 50%", "50/min", "100/min share 50%"),
        ("100/min guard 10ms", "50/min guard 600ms", "50/min guard 600ms"),
        ("100/min guard 700ms", "50/min", "50/min guard 700ms"),
        ("100/min unpaced", "50/min unpaced", "50/min unpaced"),
        ("100/min unpaced", "50/min", "50/min"),
        ("100/min", "50/min unpaced", "50/min"),
        ("150000000 tokens/min", "140000000 tokens/min", "140000000 tokens/min"),
    ] {
        assert_eq!(limit(one).stricter(&limit(other)).to_string(), both, "{one}, {other}");
    }
}

#[test]
fn it_cannot_be_counted_as_the_other_one() {
    let of = |text: &str, other: &str| limit(text).counted_as(&limit(other));
    let grains = |text: &str, other: &str| of(text, other).map(|limit| limit.grains().0);
    assert_eq!(grains("100000000 tokens/min", "150000000 tokens/min"), Ok(50_000_000));
    assert_eq!(grains("80000000 tokens/min", "150000000 tokens/min"), Ok(40_000_000));
    assert_eq!(grains("2 tokens/min", "150000000 tokens/min"), Ok(1));
    assert!(of("1 tokens/min", "150000000 tokens/min").is_err(), "less than a grain");
    assert!(of("100000000 tokens/min", "1 tokens/min").is_err(), "more than are counted");
    let error = of("1000000007/day burst 90000001", "90000000/day burst 90000000").expect_err("too many");
    assert!(error.to_string().contains("nearer to that"), "{error}");
}

proptest! {
    #[test]
    fn it_admits_more_than_one_of_them(
        counts in prop::array::uniform2(prop_oneof![1..200_u64, 1..90_000_000_u64]),
        bursts in prop::array::uniform2(1..1_000_u64),
        guards in prop::array::uniform2(0..900_u64),
        paced in prop::array::uniform2(any::<bool>()),
        kind in 0..3,
    ) {
        let one = |at: usize| {
            let (count, burst, guard) = (counts[at], bursts[at], guards[at]);
            let kind = match kind {
                0 if paced[at] => String::new(),
                0 => "unpaced".to_owned(),
                1 => format!("burst {burst}"),
                _ => "aligned".to_owned(),
            };
            limit(&format!("{count}/s {kind} guard {guard}ms"))
        };
        let (one, other) = (one(0), one(1));
        let both = one.stricter(&other);
        prop_assert_eq!(numbers(&both), numbers(&other.stricter(&one)));
        for limit in [&one, &other] {
            let ((max, burst, guard, window), theirs) = (numbers(&both), numbers(limit));
            prop_assert!(max <= theirs.0 && burst <= theirs.1 && guard >= theirs.2 && window == theirs.3);
            if let (Kind::Rolling { paced }, Kind::Rolling { paced: theirs }) = (both.kind(), limit.kind()) {
                prop_assert!(paced || !theirs);
            }
        }
        prop_assert_eq!(both.stricter(&one), both.clone());
        // What goes over the wire is the text.
        prop_assert_eq!(both.to_string().parse::<Limit>(), Ok(both));
    }
}
