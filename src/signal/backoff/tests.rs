//! Pauses that grow without need, do not grow, or end too early.

use super::*;
use crate::ledger::SECOND;

/// Doubles from 1 s to 60 s, exactly.
fn plain() -> Schedule {
    let builder = ExponentialBuilder::new().without_max_times();
    Schedule(Kind::Exponential(builder))
}

fn delays(schedule: &Schedule, count: usize) -> Vec<Micros> {
    let mut delays = schedule.start();
    (0..count).map(|_| micros(delays.next())).collect()
}

#[test]
fn a_delay_is_shorter_than_meant_or_ends() {
    let doubling = [1, 2, 4, 8, 16, 32, 60, 60, 60].map(|delay| delay * SECOND);
    assert_eq!(delays(&plain(), 9), doubling);
    let mut apart = 0;
    for _ in 0..200 {
        for (delay, least) in delays(&Schedule::default(), 9).into_iter().zip(doubling) {
            assert!((least..2 * least).contains(&delay), "{delay} of {least}");
            apart += i32::from(delay > least + least / 2);
        }
    }
    assert!((600..1_200).contains(&apart), "{apart} of 1,800 in the upper half");
}

#[test]
fn a_schedule_that_cannot_be_is_taken() {
    let range = |min, max| {
        let delays = delays(&Schedule::exponential(min, max), 50);
        (delays[0], *delays.iter().max().unwrap())
    };
    let (second, month) = (Duration::from_secs(1), micros(LONGEST));
    let (first, most) = range(Duration::ZERO, Duration::ZERO);
    // A float's rounding of 1 ms may reach the end of the jitter.
    assert!(first >= 1_000 && most <= 2_000, "{first}, {most}");
    let (first, most) = range(10 * second, second);
    assert!(first >= 10 * SECOND && most < 20 * SECOND, "{first}, {most}");
    let (first, most) = range(Duration::MAX, Duration::MAX);
    assert!(first >= month && most < 2 * month, "{first}, {most}");
    let (first, most) = range(second, Duration::MAX);
    assert!(first < 2 * SECOND && most >= month, "{first}, {most}");
}

#[test]
fn an_incident_counts_as_many() {
    let (mut refusals, schedule) = (Refusals::default(), plain());
    assert_eq!(refusals.refused(0, 100, &schedule), SECOND);
    // In flight with it, refused later: the same pause, not another second.
    assert_eq!(refusals.refused(50, 100, &schedule), SECOND);
    assert_eq!(refusals.refused(100, 200, &schedule), SECOND - 100);
    assert_eq!(refusals.refused(99, 600_100, &schedule), 400_000);
    assert_eq!(refusals.refused(99, SECOND + 100, &schedule), 0);
    assert_eq!(refusals.refused(99, 9 * SECOND, &schedule), 0);
    // It was one: the next is the second.
    assert_eq!(refusals.refused(10 * SECOND, 11 * SECOND, &schedule), 2 * SECOND);
    // Left before that pause was over, against it: no third.
    assert_eq!(refusals.refused(11 * SECOND + 1, 12 * SECOND, &schedule), SECOND);
    assert_eq!(refusals.refused(13 * SECOND - 1, 14 * SECOND, &schedule), 0);
}

#[test]
fn a_refusal_after_the_pause_gets_no_longer_delay() {
    let (mut refusals, schedule) = (Refusals::default(), plain());
    let mut now = 0;
    for delay in [1, 2, 4, 8, 16, 32, 60, 60] {
        let sent = now;
        now += 10;
        assert_eq!(refusals.refused(sent, now, &schedule), delay * SECOND);
        now += delay * SECOND;
    }
}

#[test]
fn the_growth_is_kept_or_lost_by_an_accepted_request() {
    let (mut refusals, schedule) = (Refusals::default(), plain());
    refusals.accepted(0);
    assert_eq!(refusals.refused(0, 100, &schedule), SECOND);
    // In flight before the pause, or sent against it: they say nothing about what it cured.
    for sent in [0, 100, 101, SECOND + 99] {
        refusals.accepted(sent);
    }
    assert_eq!(refusals.refused(SECOND + 100, 2 * SECOND, &schedule), 2 * SECOND);
    refusals.accepted(4 * SECOND);
    // A straggler of that incident begins no new one.
    assert_eq!(refusals.refused(SECOND + 200, 5 * SECOND, &schedule), 0);
    assert_eq!(refusals.refused(5 * SECOND, 6 * SECOND, &schedule), SECOND);
    assert_eq!(refusals.refused(7 * SECOND, 8 * SECOND, &schedule), 2 * SECOND);
}

#[cfg(feature = "backoff")]
mod crate_backoff {
    use super::*;

    fn schedule(max_elapsed_time: Option<Duration>) -> Schedule {
        Schedule::from(::backoff::ExponentialBackoff {
            initial_interval: Duration::from_secs(100),
            multiplier: 3.0,
            max_interval: Duration::from_secs(1_000),
            randomization_factor: 0.0,
            max_elapsed_time,
            ..Default::default()
        })
    }

    #[test]
    fn its_delays_are_not_its_own() {
        assert_eq!(delays(&schedule(None), 5), [100, 300, 900, 1_000, 1_000].map(|delay| delay * SECOND));
        for (interval, delay) in [(Duration::ZERO, 1_000), (Duration::MAX, micros(LONGEST))] {
            let always = ::backoff::ExponentialBackoff {
                initial_interval: interval,
                max_interval: interval,
                max_elapsed_time: None,
                ..Default::default()
            };
            assert_eq!(delays(&Schedule::from(always), 2), [delay; 2]);
        }
    }

    #[test]
    fn its_end_ends_the_pauses() {
        let ends = |seconds| delays(&schedule(Some(Duration::from_secs(seconds))), 4);
        assert_eq!(ends(500), [100, 300, 300, 300].map(|delay| delay * SECOND));
        assert_eq!(ends(0), [100; 4].map(|delay| delay * SECOND));
    }

    #[test]
    fn it_goes_on_growing_after_a_success() {
        let (mut refusals, schedule) = (Refusals::default(), schedule(None));
        assert_eq!(refusals.refused(0, 1, &schedule), 100 * SECOND);
        assert_eq!(refusals.refused(101 * SECOND, 102 * SECOND, &schedule), 300 * SECOND);
        refusals.accepted(500 * SECOND);
        assert_eq!(refusals.refused(501 * SECOND, 502 * SECOND, &schedule), 100 * SECOND);
    }
}
