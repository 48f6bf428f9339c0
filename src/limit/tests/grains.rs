//! Counts that leave what a double holds exactly, or lose more than they must.

use std::time::Duration;

use super::limit;
use crate::limit::{Kind, Limit};

const MOST: u64 = 90_000_000;

#[test]
fn a_grain_is_too_small_for_doubles_or_larger_than_it_must_be() {
    for (text, grain, grains) in [
        ("1/min", 1, (1, None)),
        ("90000000/min", 1, (90_000_000, None)),
        ("90000001/min", 2, (45_000_000, None)),
        ("150000000 tokens/min", 2, (75_000_000, None)),
        ("180000001/min", 2, (90_000_000, None)),
        ("180000002/min", 3, (60_000_000, None)),
        ("150000000 tokens/min share 50%", 1, (75_000_000, None)),
        ("10000000000 bytes/day", 112, (89_285_714, None)),
        ("10000000000 bytes/day resets 00:00 UTC", 112, (89_285_714, None)),
        ("1000000000000000/366days aligned", 11_111_111, (90_000_000, None)),
        ("10/s burst 20", 1, (10, Some(20))),
        ("10/s burst 90000000", 1, (10, Some(90_000_000))),
        ("150000000/s burst 90000001", 2, (75_000_000, Some(45_000_000))),
        ("1000/s burst 900000009", 10, (100, Some(90_000_000))),
        ("1000000000/s burst 1200", 12, (83_333_333, Some(100))),
        ("1000000000000000/s burst 1000000000000000", 11_111_111, (90_000_000, Some(90_000_000))),
        // In grains of 12 or 112 these cannot be counted exactly.
        ("1000000000 tokens/day burst 1000000000", 16, (62_500_000, Some(62_500_000))),
        ("10000000000 bytes/day burst 1000000000", 116, (86_206_896, Some(8_620_689))),
    ] {
        assert_eq!((limit(text).grain(), limit(text).grains()), (grain, grains), "{text}");
    }
}

#[test]
fn a_call_is_counted_too_low_or_more_than_a_grain_too_high() {
    let tokens = limit("150000000 tokens/min");
    for (cost, grains) in [(0, 0), (1, 1), (2, 1), (3, 2), (150_000_000, 75_000_000), (u64::MAX, 1 << 63)] {
        assert_eq!(tokens.to_grains(cost), grains, "{cost}");
    }
    for cost in [0, 1, 17, u64::MAX] {
        assert_eq!(limit("90000000/min").to_grains(cost), cost);
    }
    // All of a count that is no whole number of grains does not fit.
    let odd = limit("150000001 tokens/min");
    assert_eq!((odd.to_grains(150_000_000), odd.to_grains(150_000_001)), (75_000_000, 75_000_001));
    assert_eq!(odd.grains().0, 75_000_000);
}

#[test]
fn rounding_takes_more_than_a_hundredth_or_lua_loses_exactness() {
    let mut random = fastrand::Rng::with_seed(17);
    let mut coarse = 0;
    for _ in 0..20_000 {
        let mut count = || random.u64(1..=1_000_000_000_000_000) >> random.u32(0..50);
        let (max, burst) = (count(), count());
        let window = random.choice([1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000]).unwrap();
        let built = match random.bool() {
            true => Limit::rolling(max, Duration::from_micros(window)),
            false => Limit::bucket(max, Duration::from_micros(window), burst),
        };
        let Ok(limit) = built.and_then(|limit| match random.bool() {
            true => limit.use_share(random.f64()),
            false => Ok(limit),
        }) else {
            continue;
        };
        let grain = limit.grain();
        let (max, burst) = limit.grains();
        for (units, grains) in [(Some(limit.max()), Some(max)), (full(&limit), burst)] {
            let (Some(units), Some(grains)) = (units, grains) else { continue };
            assert!((1..=MOST).contains(&grains), "{limit}");
            assert!(grains * grain <= units && units - grains * grain <= units / 100, "{limit}");
        }
        if let Some(burst) = burst {
            let (mut common, mut rest) = (window, max);
            while rest > 0 {
                (common, rest) = (rest, common % rest);
            }
            assert!(burst * (window / common) <= 1 << 53, "{limit}");
        }
        if grain > 1 {
            coarse += 1;
            assert!(burst.is_some() || limit.max() / (grain - 1) > MOST, "{limit}");
        }
    }
    assert!(coarse > 1_000, "only {coarse} were counted in grains");
}

fn full(limit: &Limit) -> Option<u64> {
    match limit.kind() {
        Kind::Bucket { burst } => Some(burst),
        _ => None,
    }
}
