//! The referees of the proof must themselves be right: each kind of upstream accepts what it says and not
//! one more.

#[path = "../examples/fleet/quota.rs"]
mod quota;
#[path = "../examples/fleet/rules.rs"]
mod rules;
#[path = "../examples/fleet/trip.rs"]
mod trip;

use std::time::Duration;

use quota::{Nanos, Quota, UpstreamKind};
use rules::{Answer, Page, Rules};
use trip::{Aftermath, Attempt, RETURN, Trip};

const MILLI: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MILLI;

fn upstream(kind: UpstreamKind, limits: &[&str]) -> Quota {
    let limits: Vec<_> = limits.iter().map(|text| text.parse().expect("a limit")).collect();
    Quota::new(kind, &limits)
}

/// Three a second; from 4 s after the first arrival on nothing for two seconds.
fn tripping() -> Rules {
    let trip = Trip { lasts: Duration::from_secs(2), after: Duration::from_secs(4) };
    Rules::new(upstream(UpstreamKind::Rolling, &["3/s"]), Some(trip), None)
}

fn refused(retry_after: u64) -> Answer {
    Answer::Refused { retry_after }
}

/// How many of `count` requests at one moment are accepted.
fn burst(quota: &mut Quota, now: Nanos, count: usize) -> usize {
    (0..count).filter(|_| quota.arrive(now).is_ok()).count()
}

#[test]
fn rolling_window_is_half_open() {
    let mut quota = upstream(UpstreamKind::Rolling, &["3/s"]);
    assert_eq!(burst(&mut quota, 0, 2), 2);
    assert_eq!(burst(&mut quota, 400 * MILLI, 2), 1);
    assert_eq!(quota.arrive(SECOND - 1), Err(1));
    // What came exactly one window ago is out; what came later is not.
    assert_eq!(burst(&mut quota, SECOND, 3), 2);
    assert_eq!(quota.arrive(SECOND), Err(400 * MILLI));
    assert_eq!(burst(&mut quota, 1_400 * MILLI, 2), 1);
}

#[test]
fn refused_requests_do_not_count() {
    for kind in [UpstreamKind::Rolling, UpstreamKind::Fixed, UpstreamKind::Bucket] {
        let mut quota = upstream(kind, &["3/s"]);
        assert_eq!(burst(&mut quota, 0, 50), 3, "{kind:?}");
        assert_eq!(burst(&mut quota, SECOND, 50), 3, "{kind:?}");
    }
}

#[test]
fn fixed_windows_forget_at_their_boundary() {
    let mut quota = upstream(UpstreamKind::Fixed, &["3/s"]);
    assert_eq!(burst(&mut quota, SECOND - 1, 5), 3);
    assert_eq!(quota.arrive(SECOND - 1), Err(1));
    // Twice the quota within a nanosecond: that is what this kind allows.
    assert_eq!(burst(&mut quota, SECOND, 5), 3);
    assert_eq!(quota.arrive(1_250 * MILLI), Err(750 * MILLI));
}

#[test]
fn two_counters_let_the_last_window_fade() {
    let mut quota = upstream(UpstreamKind::Counter, &["10/s"]);
    assert_eq!(burst(&mut quota, 990 * MILLI, 20), 10);
    // The estimate is 10 at the boundary, 9 a tenth later: room for one; 5 at the half: room for four more.
    assert_eq!(quota.arrive(SECOND), Err(100 * MILLI));
    assert_eq!(quota.arrive(1_100 * MILLI - 1), Err(1));
    assert_eq!(burst(&mut quota, 1_100 * MILLI, 5), 1);
    assert_eq!(burst(&mut quota, 1_500 * MILLI, 9), 4);
    // Of the five, half is left at the half of the next window; then room for seven and a half.
    assert_eq!(burst(&mut quota, 2_500 * MILLI, 20), 7);
    assert_eq!(burst(&mut quota, 9 * SECOND, 20), 10, "two windows later all is forgotten");
}

#[test]
fn two_counters_tell_a_wait_after_which_one_fits() {
    let mut quota = upstream(UpstreamKind::Counter, &["7/s"]);
    let mut now = 300 * MILLI;
    for _ in 0..100 {
        if let Err(wait) = quota.arrive(now) {
            assert!(quota.arrive(now + wait - 1).is_err());
            now += wait;
            assert_eq!(quota.arrive(now), Ok(()));
        }
    }
}

#[test]
fn bucket_gives_its_burst_then_its_rate() {
    let mut quota = upstream(UpstreamKind::Bucket, &["10/s burst 20"]);
    assert_eq!(burst(&mut quota, 0, 50), 20);
    assert_eq!(quota.arrive(0), Err(100 * MILLI));
    assert_eq!(quota.arrive(100 * MILLI - 1), Err(1));
    assert_eq!(burst(&mut quota, 100 * MILLI, 3), 1);
    assert_eq!(burst(&mut quota, 600 * MILLI, 9), 5);
    assert_eq!(burst(&mut quota, 60 * SECOND, 50), 20, "never more than the burst");
}

#[test]
fn bucket_of_a_rolling_limit_holds_max() {
    let mut quota = upstream(UpstreamKind::Bucket, &["5/s"]);
    assert_eq!(burst(&mut quota, 7, 50), 5);
    assert_eq!(burst(&mut quota, 7 + SECOND, 50), 5);
}

#[test]
fn bucket_of_seven_per_second_is_exact() {
    let mut quota = upstream(UpstreamKind::Bucket, &["7/s burst 1"]);
    let accepted = (0..10_000u64).filter(|step| quota.arrive(step * MILLI).is_ok()).count();
    // Asked each millisecond for ten seconds: every 143 ms one is ready.
    assert_eq!(accepted, 70);
}

#[test]
fn several_limits_are_charged_together_or_not_at_all() {
    let mut quota = upstream(UpstreamKind::Rolling, &["3/s", "5/10s"]);
    assert_eq!(burst(&mut quota, 0, 50), 3);
    assert_eq!(burst(&mut quota, SECOND, 50), 2, "the long window has two left");
    assert_eq!(quota.arrive(SECOND), Err(9 * SECOND));
    // The refusals by the long window took nothing from the short one.
    assert_eq!(burst(&mut quota, 10 * SECOND, 50), 3);
    assert_eq!(burst(&mut quota, 11 * SECOND, 50), 2);
}

#[test]
fn a_step_back_of_the_clock_is_no_gift() {
    for kind in [UpstreamKind::Rolling, UpstreamKind::Fixed, UpstreamKind::Counter, UpstreamKind::Bucket] {
        let mut quota = upstream(kind, &["3/s"]);
        assert_eq!(burst(&mut quota, 5 * SECOND, 50), 3, "{kind:?}");
        assert_eq!(burst(&mut quota, 4 * SECOND, 50), 0, "{kind:?}");
    }
}

#[test]
fn trip_refuses_everything_from_its_first_moment_to_its_last() {
    let mut rules = tripping();
    assert_eq!(rules.trip(), None, "it depends on the first arrival");
    assert_eq!(rules.answer(7 * SECOND, Page::Hit), Answer::Accepted);
    assert_eq!(rules.trip(), Some(11 * SECOND..13 * SECOND));
    assert_eq!(rules.answer(11 * SECOND - 1, Page::Hit), Answer::Accepted);
    for page in [Page::Hit, Page::Landed] {
        assert_eq!(rules.answer(11 * SECOND, page), refused(2));
        assert_eq!(rules.answer(13 * SECOND - 1, page), refused(1));
    }
    assert_eq!(rules.answer(13 * SECOND, Page::Hit), Answer::Accepted);
}

#[test]
fn trip_tells_what_is_left_of_it_rounded_up() {
    let mut rules = tripping();
    rules.answer(0, Page::Hit);
    let told =
        [(4 * SECOND, 2), (5 * SECOND - 1, 2), (5 * SECOND, 1), (5 * SECOND + 1, 1), (6 * SECOND - 1, 1)];
    for (now, seconds) in told {
        assert_eq!(rules.answer(now, Page::Hit), refused(seconds), "at {now}");
    }
}

#[test]
fn trip_charges_nothing() {
    let mut rules = tripping();
    rules.answer(0, Page::Hit);
    for _ in 0..50 {
        assert_eq!(rules.answer(6 * SECOND - 1, Page::Hit), refused(1));
    }
    for _ in 0..3 {
        assert_eq!(rules.answer(6 * SECOND, Page::Hit), Answer::Accepted);
    }
    assert_eq!(rules.answer(6 * SECOND, Page::Hit), refused(1), "by the quota, and at least a second");
}

#[test]
fn one_in_so_many_accepted_is_redirected() {
    let mut rules = Rules::new(upstream(UpstreamKind::Rolling, &["5/s"]), None, Some(3));
    let mut burst = |now| (0..7).map(|_| rules.answer(now, Page::Hit)).collect::<Vec<_>>();
    let (yes, elsewhere) = (Answer::Accepted, Answer::Redirected);
    assert_eq!(burst(0), [yes, yes, elsewhere, yes, yes, refused(1), refused(1)]);
    // The sixth that is accepted, whatever was refused in between.
    assert_eq!(burst(SECOND), [elsewhere, yes, yes, elsewhere, yes, refused(1), refused(1)]);
}

#[test]
fn where_a_redirect_leads_costs_as_much_and_leads_no_further() {
    let mut rules = Rules::new(upstream(UpstreamKind::Rolling, &["3/s"]), None, Some(1));
    assert_eq!(rules.answer(0, Page::Hit), Answer::Redirected);
    assert_eq!(rules.answer(0, Page::Landed), Answer::Accepted);
    assert_eq!(rules.answer(0, Page::Landed), Answer::Accepted);
    assert_eq!(rules.answer(0, Page::Landed), refused(1));
    assert_eq!(rules.answer(0, Page::Hit), refused(1));
}

#[test]
fn without_flags_nothing_trips_and_nothing_redirects() {
    let mut rules = Rules::new(upstream(UpstreamKind::Rolling, &["1000/s"]), None, None);
    assert!((0..1000).all(|now| rules.answer(now, Page::Hit) == Answer::Accepted));
    assert_eq!(rules.trip(), None);
}

const TRIP: std::ops::Range<Nanos> = 4 * SECOND..6 * SECOND;

fn sent(milli: Nanos, refused: Option<Nanos>) -> Attempt {
    Attempt { sent: milli * MILLI, refused: refused.map(|milli| milli * MILLI) }
}

#[test]
fn a_fleet_that_stops_is_timed_from_the_first_refusal_it_saw() {
    // The quota's refusal at 3,990 is none of the trip's; what was sent before the first answer could not know.
    let attempts = [
        sent(3_980, Some(3_990)),
        sent(3_999, Some(4_002)),
        sent(4_000, Some(4_001)),
        sent(4_061, Some(4_062)),
        sent(4_062, Some(6_010)),
        sent(6_000, None),
    ];
    let arrivals = [(4_000 * MILLI, false), (6_005 * MILLI, true), (6_205 * MILLI - 1, false)];
    let late = [(6_005 * MILLI + RETURN, true)];
    let seen = Aftermath::new(TRIP, &attempts, &[&arrivals[..], &late[..]].concat(), 100.0);
    let expected = Aftermath {
        stop_ms: Some(61.0),
        during: 1,
        refused_after: 1,
        first_200_ms: 2,
        paced_200_ms: 20.0,
        resumed_ms: Some(5.0),
    };
    assert_eq!(seen, expected);
}

#[test]
fn a_fleet_that_never_comes_back_says_so() {
    let silent = Aftermath::new(TRIP, &[], &[(0, true)], 5.0);
    assert_eq!((silent.stop_ms, silent.resumed_ms), (None, None));
    assert_eq!((silent.during, silent.refused_after, silent.first_200_ms), (0, 0, 0));
    let at_once = Aftermath::new(TRIP, &[sent(4_000, Some(4_005))], &[], 5.0);
    assert_eq!((at_once.stop_ms, at_once.during), (Some(0.0), 0));
}
