//! Knows when every request was on the wire, and holds that against the limits as the upstream means them.

use tollgate::ledger::Micros;

use crate::world::{EPOCH, Sent};

/// A limit as the upstream counts it.
#[derive(Clone, Copy, Debug)]
pub enum Law {
    /// At most `max` in any half-open interval of `window`.
    Rolling { max: i64, window: Micros },
    /// At most `burst + max * t / window` in any `t`.
    Bucket { max: i64, window: Micros, burst: i64 },
    /// At most `max` between two multiples of `window`.
    Aligned { max: i64, window: Micros },
}

impl Law {
    pub fn max(&self) -> i64 {
        match self {
            Self::Rolling { max, .. } | Self::Bucket { max, .. } | Self::Aligned { max, .. } => *max,
        }
    }

    pub fn window(&self) -> Micros {
        match self {
            Self::Rolling { window, .. } | Self::Bucket { window, .. } | Self::Aligned { window, .. } => {
                *window
            }
        }
    }
}

/// By how much the worst interval is over, if any is. `arrivals`: time and cost, in the order of time.
pub fn over(law: Law, arrivals: &[(Micros, i64)]) -> Option<i64> {
    let worst = match law {
        Law::Rolling { max, window } => most_within(arrivals, window) - max,
        Law::Aligned { max, window } => {
            let mut used = std::collections::HashMap::new();
            for (at, cost) in arrivals {
                *used.entry(at / window).or_insert(0) += cost;
            }
            used.into_values().max().unwrap_or(0) - max
        }
        Law::Bucket { max, window, burst } => {
            // In parts of a token, so that nothing is rounded.
            let (mut level, mut last, mut worst) = (burst * window, 0, 0);
            for (at, cost) in arrivals {
                level = (level + (at - last) * max).min(burst * window);
                level -= cost * window;
                worst = worst.max(-level);
                last = *at;
            }
            (worst + window - 1) / window
        }
    };
    (worst > 0).then_some(worst)
}

/// The most that a window held when something was sent: what those cost that had ended, and the guesses of the others.
/// Of a bucket nobody can tell.
pub fn most_held(law: Law, sent: &[Sent]) -> i64 {
    let (mut first, mut most) = (0, 0);
    for (at, last) in sent.iter().enumerate() {
        let before = match law {
            Law::Rolling { window, .. } => last.at - window,
            Law::Aligned { window, .. } => last.at - (EPOCH + last.at).rem_euclid(window) - 1,
            Law::Bucket { .. } => return 0,
        };
        while sent[first].at <= before {
            first += 1;
        }
        let held = |sent: &Sent| if sent.ended <= last.at { sent.real } else { sent.cost };
        most = most.max(sent[first..=at].iter().map(held).sum());
    }
    most
}

pub fn most_within(arrivals: &[(Micros, i64)], window: Micros) -> i64 {
    let (mut first, mut sum, mut most) = (0, 0, 0);
    for (at, cost) in arrivals {
        sum += cost;
        while arrivals[first].0 <= at - window {
            sum -= arrivals[first].1;
            first += 1;
        }
        most = most.max(sum);
    }
    most
}

#[test]
fn sees_one_too_many() {
    let arrivals = [(0, 1), (5, 1), (9, 1), (10, 1)];
    assert_eq!(over(Law::Rolling { max: 3, window: 10 }, &arrivals), None);
    assert_eq!(over(Law::Rolling { max: 2, window: 10 }, &arrivals), Some(1));
    assert_eq!(over(Law::Bucket { max: 1, window: 5, burst: 2 }, &arrivals), None);
    assert_eq!(over(Law::Bucket { max: 1, window: 6, burst: 2 }, &arrivals), Some(1));
    assert_eq!(over(Law::Aligned { max: 3, window: 10 }, &arrivals), None);
    assert_eq!(over(Law::Aligned { max: 2, window: 10 }, &arrivals), Some(1));
}
