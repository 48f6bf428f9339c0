//! What upstreams count, as pure machines: time is an argument. Whole numbers only, so that a limit is not
//! one more or less by a rounding.

use std::collections::VecDeque;

use tollgate::{Limit, LimitKind};

use crate::price::Price;

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

/// There is no room in some limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Until there is room in all of them.
    pub wait: Nanos,
    pub by: Which,
}

/// Some of the limits, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Which(u64);

struct Meter {
    unit: String,
    max: u64,
    window: Nanos,
    state: State,
}

enum State {
    Rolling {
        accepted: VecDeque<(Nanos, u64)>,
        used: u64,
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

impl Which {
    /// So many limits can be told apart.
    pub const MOST: usize = 64;

    pub fn add(&mut self, limit: usize) {
        self.0 |= 1 << limit;
    }

    pub fn has(self, limit: usize) -> bool {
        self.0 >> limit & 1 == 1
    }
}

impl Quota {
    pub fn new(kind: UpstreamKind, limits: &[Limit]) -> Self {
        Self { meters: limits.iter().map(|limit| Meter::new(kind, limit)).collect(), latest: 0 }
    }

    /// A request. It counts under every limit, or under none and is told how long to wait.
    pub fn arrive(&mut self, now: Nanos, price: &Price) -> Result<(), Refusal> {
        self.latest = self.latest.max(now);
        let now = self.latest;
        let mut refusal = Refusal { wait: 0, by: Which::default() };
        for (at, meter) in self.meters.iter_mut().enumerate() {
            let wait = meter.wait(now, price.of(&meter.unit));
            if wait > 0 {
                refusal.wait = refusal.wait.max(wait);
                refusal.by.add(at);
            }
        }
        if refusal.wait > 0 {
            return Err(refusal);
        }
        self.meters.iter_mut().for_each(|meter| meter.count(now, price.of(&meter.unit)));
        Ok(())
    }
}

impl Meter {
    fn new(kind: UpstreamKind, limit: &Limit) -> Self {
        let (max, window) = (limit.max(), Nanos::try_from(limit.window().as_nanos()).unwrap_or(Nanos::MAX));
        let state = match kind {
            UpstreamKind::Rolling => State::Rolling { accepted: VecDeque::new(), used: 0 },
            UpstreamKind::Fixed => State::Fixed { index: 0, count: 0 },
            UpstreamKind::Counter => State::Counter { index: 0, before: 0, count: 0 },
            UpstreamKind::Bucket => {
                let burst = if let LimitKind::Bucket { burst } = limit.kind() { burst } else { max };
                let size = u128::from(burst) * u128::from(window);
                State::Bucket { size, level: size, at: 0 }
            }
        };
        Self { unit: limit.unit().to_owned(), max, window, state }
    }

    /// Moves on to `now`; how long until so much more fits, 0: it does. What never will is told some wait.
    fn wait(&mut self, now: Nanos, amount: u64) -> Nanos {
        let (max, window) = (self.max, self.window);
        let elapsed = now % window;
        match &mut self.state {
            State::Rolling { accepted, used } => {
                while let Some((_, count)) = accepted.front().filter(|(first, _)| now - first >= window) {
                    *used -= count;
                    accepted.pop_front();
                }
                let mut over = (*used + amount).saturating_sub(max);
                // Until enough of the oldest are out.
                for (at, count) in accepted.iter() {
                    if over > 0 && over <= *count {
                        return at + window - now;
                    }
                    over = over.saturating_sub(*count);
                }
                if over > 0 { window } else { 0 }
            }
            State::Fixed { index, count } => {
                if *index != now / window {
                    (*index, *count) = (now / window, 0);
                }
                if *count + amount <= max { 0 } else { window - elapsed }
            }
            State::Counter { index, before, count } => {
                match (now / window).saturating_sub(*index) {
                    0 => {}
                    1 => (*before, *count) = (*count, 0),
                    _ => (*before, *count) = (0, 0),
                }
                *index = now / window;
                match max.checked_sub(*count + amount) {
                    Some(room) => faded(*before, room, window).saturating_sub(elapsed),
                    None => window - elapsed + faded(*count, max.saturating_sub(amount), window),
                }
            }
            State::Bucket { size, level, at } => {
                let refill = u128::from(now - *at) * u128::from(max);
                (*level, *at) = ((*level + refill).min(*size), now);
                let missing = (u128::from(amount) * u128::from(window)).saturating_sub(*level);
                missing.div_ceil(u128::from(max)) as Nanos
            }
        }
    }

    fn count(&mut self, now: Nanos, amount: u64) {
        match &mut self.state {
            State::Rolling { accepted, used } => {
                accepted.push_back((now, amount));
                *used += amount;
            }
            State::Fixed { count, .. } | State::Counter { count, .. } => *count += amount,
            State::Bucket { level, .. } => *level -= u128::from(amount) * u128::from(self.window),
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
