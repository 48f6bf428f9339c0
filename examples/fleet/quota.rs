//! What upstreams count, as pure machines: time is an argument. Whole numbers only, so that a limit is not
//! one more or less by a rounding.

use std::collections::VecDeque;

use tollgate::{Limit, LimitKind};

/// Nanoseconds since the epoch, by the upstream's own clock.
pub type Nanos = u64;

/// How an upstream counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum UpstreamKind {
    /// At most max accepted in any window, wherever it begins.
    Rolling,
    /// Windows one after the other, each counted from zero.
    Fixed,
    /// Two counters, as CDNs and gateways do: the last window fades while the current one counts.
    Counter,
    /// A token bucket; of a limit without a burst it holds max.
    Bucket,
}

/// The limits of an upstream. Only what is accepted counts.
pub struct Quota {
    meters: Vec<Meter>,
    latest: Nanos,
}

struct Meter {
    max: u64,
    window: Nanos,
    state: State,
}

enum State {
    Rolling {
        accepted: VecDeque<Nanos>,
    },
    Fixed {
        index: u64,
        count: u64,
    },
    /// `before` is the count of the window before the one with this index.
    Counter {
        index: u64,
        before: u64,
        count: u64,
    },
    /// Tokens times the window, so that a nanosecond refills exactly `max` of them.
    Bucket {
        size: u128,
        level: u128,
        at: Nanos,
    },
}

impl Quota {
    pub fn new(kind: UpstreamKind, limits: &[Limit]) -> Self {
        Self { meters: limits.iter().map(|limit| Meter::new(kind, limit)).collect(), latest: 0 }
    }

    /// A request. It counts under every limit, or under none and is told how long to wait.
    pub fn arrive(&mut self, now: Nanos) -> Result<(), Nanos> {
        self.latest = self.latest.max(now);
        let now = self.latest;
        let wait = self.meters.iter_mut().map(|meter| meter.wait(now)).max().unwrap_or(0);
        if wait > 0 {
            return Err(wait);
        }
        self.meters.iter_mut().for_each(|meter| meter.count(now));
        Ok(())
    }
}

impl Meter {
    fn new(kind: UpstreamKind, limit: &Limit) -> Self {
        let (max, window) = (limit.max(), Nanos::try_from(limit.window().as_nanos()).unwrap_or(Nanos::MAX));
        let state = match kind {
            UpstreamKind::Rolling => State::Rolling { accepted: VecDeque::new() },
            UpstreamKind::Fixed => State::Fixed { index: 0, count: 0 },
            UpstreamKind::Counter => State::Counter { index: 0, before: 0, count: 0 },
            UpstreamKind::Bucket => {
                let burst = if let LimitKind::Bucket { burst } = limit.kind() { burst } else { max };
                let size = u128::from(burst) * u128::from(window);
                State::Bucket { size, level: size, at: 0 }
            }
        };
        Self { max, window, state }
    }

    /// Moves on to `now`; how long until one more fits, 0: it does.
    fn wait(&mut self, now: Nanos) -> Nanos {
        let (max, window) = (self.max, self.window);
        let elapsed = now % window;
        match &mut self.state {
            State::Rolling { accepted } => {
                while accepted.front().is_some_and(|first| now - first >= window) {
                    accepted.pop_front();
                }
                let full = accepted.len() as u64 >= max;
                accepted.front().filter(|_| full).map_or(0, |first| first + window - now)
            }
            State::Fixed { index, count } => {
                if *index != now / window {
                    (*index, *count) = (now / window, 0);
                }
                if *count < max { 0 } else { window - elapsed }
            }
            State::Counter { index, before, count } => {
                match (now / window).saturating_sub(*index) {
                    0 => {}
                    1 => (*before, *count) = (*count, 0),
                    _ => (*before, *count) = (0, 0),
                }
                *index = now / window;
                if *count < max {
                    faded(*before, max - *count - 1, window).saturating_sub(elapsed)
                } else {
                    window - elapsed + faded(*count, max - 1, window)
                }
            }
            State::Bucket { size, level, at } => {
                let refill = u128::from(now - *at) * u128::from(max);
                (*level, *at) = ((*level + refill).min(*size), now);
                let missing = u128::from(window).saturating_sub(*level);
                missing.div_ceil(u128::from(max)) as Nanos
            }
        }
    }

    fn count(&mut self, now: Nanos) {
        match &mut self.state {
            State::Rolling { accepted } => accepted.push_back(now),
            State::Fixed { count, .. } | State::Counter { count, .. } => *count += 1,
            State::Bucket { level, .. } => *level -= u128::from(self.window),
        }
    }
}

/// From when on in a window what the one before counted has faded to `room`.
fn faded(before: u64, room: u64, window: Nanos) -> Nanos {
    if before <= room {
        return 0;
    }
    window - (u128::from(room) * u128::from(window) / u128::from(before)) as Nanos
}
