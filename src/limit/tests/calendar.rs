//! Resets that come at the wrong time.

use jiff::Timestamp;

use super::limit;
use crate::limit::{Limit, Reset, Weekday};

const LA: &str = "America/Los_Angeles";

fn micros(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

/// The resets around an instant, as text.
fn resets(text: &str, around: &str) -> Vec<String> {
    let told = limit(text).boundaries(micros(around));
    told.into_iter().map(|reset| Timestamp::from_microsecond(reset).unwrap().to_string()).collect()
}

#[test]
fn a_day_of_23_or_25_hours_is_taken_for_one_of_24() {
    let text = format!("9/day resets 00:00 {LA}");
    assert_eq!(
        resets(&text, "2024-03-10T08:00:00Z"),
        [
            "2024-03-10T08:00:00Z",
            "2024-03-11T07:00:00Z",
            "2024-03-12T07:00:00Z",
            "2024-03-13T07:00:00Z",
            "2024-03-14T07:00:00Z"
        ]
    );
    assert_eq!(resets(&text, "2024-03-10T07:59:59.999999Z")[0], "2024-03-09T08:00:00Z");
    assert_eq!(resets(&text, "2024-11-03T12:00:00Z")[..2], ["2024-11-03T07:00:00Z", "2024-11-04T08:00:00Z"]);
}

#[test]
fn a_local_time_that_is_missing_or_comes_twice_moves_the_wrong_way() {
    let text = format!("9/day resets 02:30 {LA}");
    assert_eq!(
        resets(&text, "2024-03-10T00:00:00Z")[..3],
        ["2024-03-09T10:30:00Z", "2024-03-10T10:30:00Z", "2024-03-11T09:30:00Z"]
    );
    let text = format!("9/day resets 01:30 {LA}");
    assert_eq!(resets(&text, "2024-11-03T08:30:00Z")[..2], ["2024-11-03T08:30:00Z", "2024-11-04T09:30:00Z"]);
    // Samoa crossed the date line and had no 30th: that reset and the next fall together.
    assert_eq!(
        resets("9/day resets 00:00 Pacific/Apia", "2011-12-30T09:59:00Z")[..3],
        ["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"]
    );
}

#[test]
fn a_week_or_month_begins_on_the_wrong_day() {
    assert_eq!(
        resets("9/week resets wed 12:00 UTC", "2024-05-15T11:59:59Z")[..2],
        ["2024-05-08T12:00:00Z", "2024-05-15T12:00:00Z"]
    );
    assert_eq!(
        resets("9/month resets 28 00:00 UTC", "2024-01-31T00:00:00Z"),
        [
            "2024-01-28T00:00:00Z",
            "2024-02-28T00:00:00Z",
            "2024-03-28T00:00:00Z",
            "2024-04-28T00:00:00Z",
            "2024-05-28T00:00:00Z"
        ]
    );
    assert_eq!(
        resets("9/min aligned", "2024-01-31T00:00:59.999999Z")[..2],
        ["2024-01-31T00:00:00Z", "2024-01-31T00:01:00Z"]
    );
    assert!(limit("9/min").boundaries(0).is_empty());
    assert!(limit("9/min burst 5").boundaries(0).is_empty());
}

#[test]
fn an_instant_or_zone_breaks_the_order_of_resets() {
    let mut random = fastrand::Rng::with_seed(13);
    let last = micros("2200-12-31T23:59:59.999999Z");
    let mut instants = vec![i64::MIN, -1, 0, 1, last, last + 1, i64::MAX];
    // The days on which a zone crossed the date line or repeated a day.
    instants.extend(["1993-08-21T00:00:00Z", "1994-12-31T12:00:00Z", "2011-12-30T10:00:00Z"].map(micros));
    let mut limits = vec![limit("9/1ms aligned"), limit("9/366days aligned")];
    for name in jiff::tz::db().available() {
        let name = name.as_str();
        let (hour, minute) = (random.u8(0..24), random.u8(0..60));
        for reset in [
            Reset::daily(hour, minute, name),
            Reset::daily(0, 0, name),
            Reset::weekly(Weekday::Sunday, 2, 30, name),
            Reset::monthly(random.u8(1..=28), hour, minute, name),
        ] {
            // The names that are refused are not resets.
            limits.extend(reset.ok().map(|reset| Limit::calendar(9, reset).unwrap()));
        }
    }
    assert!(limits.len() > 1_000);
    for limit in limits {
        let some = (0..20).map(|_| random.i64(0..=last)).collect::<Vec<_>>();
        for around in instants.iter().copied().chain(some) {
            let told = limit.boundaries(around);
            let within = around.clamp(0, last);
            assert_eq!(told.len(), 5, "{limit} around {around}");
            assert!(told.is_sorted_by(|a, b| a < b), "{limit} around {around}");
            assert!(told[0] <= within && within < told[1], "{limit} around {around}");
        }
    }
}
