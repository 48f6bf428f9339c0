//! Numbers outside of their range, and roundings in the wrong direction.

use std::time::Duration;

use super::{limit, refusal};
use crate::limit::{Kind, Limit, LimitError, Reset, Weekday};

#[test]
fn a_built_limit_has_no_text_that_means_the_same() {
    let mut random = fastrand::Rng::with_seed(11);
    let mut kept = 0;
    for _ in 0..50_000 {
        let count = |random: &mut fastrand::Rng| random.u64(0..=1_000_000_000_000_001) >> random.u32(0..50);
        let max = count(&mut random);
        let unit = random.choice([1, 1_000, 1_000_000, 60_000_000, 86_400_000_000]).unwrap();
        let window = Duration::from_micros(random.u64(0..4_000) * unit);
        let built = match random.u8(0..6) {
            0 => Limit::rolling(max, window),
            1 => Limit::rolling(max, window).and_then(Limit::unpaced),
            2 => Limit::bucket(max, window, count(&mut random)),
            3 => Limit::aligned(max, window),
            4 => Limit::calendar(max, Reset::weekly(Weekday::Friday, 1, 2, "Asia/Tokyo").unwrap()),
            _ => Limit::calendar(max, Reset::monthly(random.u8(1..=28), 23, 59, "UTC").unwrap()),
        };
        let built = built.and_then(|limit| match random.u8(0..3) {
            0 => limit.with_guard(Duration::from_micros(random.u64(0..2_000_000))),
            1 => limit.use_share(random.f64()),
            _ => Ok(limit),
        });
        let built = built.and_then(|limit| match random.bool() {
            true => limit.with_unit(&word(&mut random)),
            false => Ok(limit),
        });
        if let Ok(limit) = built {
            kept += 1;
            assert_eq!(limit.to_string().parse::<Limit>().as_ref(), Ok(&limit));
            assert!((1..=1_000_000_000_000_000).contains(&limit.max()));
            assert!(limit.guard() < limit.window());
        }
    }
    assert!(kept > 10_000, "only {kept} were limits");
}

/// What may be a unit, and sometimes is not.
fn word(random: &mut fastrand::Rng) -> String {
    let letters: Vec<char> = "abcdefghijklmnopqrstuvwxyzABC019__".chars().collect();
    (0..random.usize(1..=33)).map(|_| *random.choice(&letters).unwrap()).collect()
}

#[test]
fn a_builder_differs_from_the_text_or_accepts_more() {
    let minute = Duration::from_secs(60);
    assert_eq!(Limit::per_second(1), "1/s".parse());
    assert_eq!(Limit::per_minute(1), "1/min".parse());
    assert_eq!(Limit::per_hour(1), "1/h".parse());
    assert_eq!(Limit::per_day(1), "1/day".parse());
    let daily = Reset::daily(7, 5, "utc").unwrap();
    assert_eq!(Limit::per_minute(9).unwrap().with_unit("Tokens"), "9 tokens/min".parse());
    let tokens = limit("9 tokens/min share 50% guard 1s");
    assert_eq!(tokens.clone().with_unit("points").unwrap(), limit("9 points/min share 50% guard 1s"));
    assert_eq!(tokens.with_unit("requests").unwrap(), limit("9/min share 50% guard 1s"));
    assert_eq!(Limit::calendar(1, daily.clone()), "1/day resets 07:05 UTC".parse());

    let message = |result: Result<Limit, LimitError>| result.unwrap_err().to_string();
    let plain = || Limit::per_minute(100).unwrap();
    let bucket = || Limit::bucket(10, minute, 20).unwrap();
    assert!(message(Limit::per_minute(0)).starts_with(r#"invalid limit "0/min": the count"#));
    assert!(message(Limit::rolling(1, Duration::from_nanos(1_500_000_001))).contains("whole microseconds"));
    assert!(message(Limit::rolling(1, Duration::MAX)).contains("366 days"));
    assert!(message(Limit::rolling(1, Duration::ZERO)).contains("1 ms"));
    assert!(message(Limit::bucket(1, minute, 0)).contains("the burst must be"));
    assert!(
        message(bucket().unpaced()).starts_with(r#"invalid limit "10/min burst 20 unpaced": only a rolling"#)
    );
    assert!(message(plain().with_guard(minute)).contains("guard 1min"));
    assert!(message(plain().with_guard(Duration::from_nanos(1))).contains("whole microseconds"));
    assert!(message(plain().with_guard(Duration::MAX)).contains("guard"));
    for unit in
        ["", " ", "to kens", " tokens", "tokens ", "a/b", "7up", "_a", "é", "\n", "per", "per60s", "PER_call"]
    {
        let message = message(plain().with_unit(unit));
        assert!(
            message.starts_with(&format!("invalid limit {:?}: the unit ", format!("100 {unit}/min"))),
            "{message}"
        );
    }
    for share in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -0.5, 0.000_01, 1.000_000_1] {
        let message = message(plain().use_share(share));
        assert!(message.contains("the share must be from 0.0001 to 1"), "{message}");
    }
    assert!(message(Limit::per_minute(3).unwrap().use_share(0.33)).contains("less than 1 of 3"));
    for reset in [Reset::daily(24, 0, "UTC"), Reset::monthly(29, 0, 0, "UTC"), Reset::daily(0, 0, "")] {
        assert!(reset.unwrap_err().to_string().starts_with("invalid reset \""));
    }
}

#[test]
fn a_share_is_rounded_up() {
    let shared = |share: f64| Limit::per_minute(10_000).unwrap().use_share(share).unwrap().max();
    for percent in 1..=100_u32 {
        assert_eq!(shared(f64::from(percent) / 100.0), u64::from(percent) * 100);
    }
    assert_eq!(shared(1.0 / 6.0), 1_666);
    assert_eq!(shared(2.0 / 3.0), 6_666);
    let bucket = limit("10/s burst 3 share 25%");
    assert_eq!((bucket.max(), bucket.kind()), (2, Kind::Bucket { burst: 1 }));
    assert_eq!(limit("2/s burst 7 share 50%").kind(), Kind::Bucket { burst: 3 });
    assert_eq!(limit("17/day resets 00:00 UTC share 50%").max(), 8);
}

#[test]
fn a_burst_leaves_the_exact_numbers() {
    let largest = |text: &str| -> u64 {
        let message = refusal(&format!("{text} burst 90000000"));
        message.rsplit(' ').next().unwrap().parse().unwrap()
    };
    for text in ["7/366days", "7/366days share 50%", "999999/31days share 33.33%"] {
        let (head, tail) = text.split_once(" share").unwrap_or((text, ""));
        let with = |burst: u64| match tail {
            "" => format!("{head} burst {burst}"),
            tail => format!("{head} burst {burst} share{tail}"),
        };
        let most = largest(text);
        limit(&with(most));
        refusal(&with(most + 1));
    }
    limit("1000000/s burst 90000000");
}

#[test]
fn a_default_guard_is_too_long_for_its_window() {
    for (text, expected) in [
        ("1/1ms", 100),
        ("1/100ms", 10_000),
        ("1/s", 50_000),
        ("1/s burst 5", 50_000),
        ("1/min", 600_000),
        ("1/h", 1_000_000),
        ("1/s aligned", 100_000),
        ("1/min aligned", 1_000_000),
        ("1/day resets 00:00 UTC", 1_000_000),
        ("1/day resets 00:00 UTC guard 5s", 5_000_000),
        ("1/min guard 0", 0),
    ] {
        assert_eq!(limit(text).guard(), Duration::from_micros(expected), "{text}");
    }
    assert_eq!(limit("1/month resets 00:00 UTC").window(), Duration::from_secs(31 * 86_400));
}
