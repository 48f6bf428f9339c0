//! The referees of the proof must themselves be right: each kind of upstream accepts what it says and not
//! one more.

#[path = "../examples/fleet/quota.rs"]
mod quota;

use quota::{Nanos, Quota, UpstreamKind};

const MILLI: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MILLI;

fn upstream(kind: UpstreamKind, limits: &[&str]) -> Quota {
    let limits: Vec<_> = limits.iter().map(|text| text.parse().expect("a limit")).collect();
    Quota::new(kind, &limits)
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
