//! How long to pause when an upstream refuses and does not say for how long.

#[cfg(test)]
mod tests;

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

use super::LONGEST;
use crate::{clock::micros, ledger::Micros};

/// Anything shorter would double from nothing to nothing and ask an upstream that refuses without end.
const SHORTEST: Duration = Duration::from_millis(1);

/// The delays of a provider that refuses without a hint: one for each refusal in a row.
///
/// The default begins at 1 s and doubles up to 60 s. To each delay comes a random part of up to as much again, so
/// that replicas do not return together; it is never taken off, as a pause shorter than meant costs a refusal.
#[derive(Clone, Debug)]
pub struct Schedule(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Exponential(ExponentialBuilder),
    #[cfg(feature = "backoff")]
    Backoff(::backoff::ExponentialBackoff),
}

impl Schedule {
    /// Begins at `min` and doubles up to `max`, with jitter on top. A `min` below 1 ms counts as 1 ms, a `max`
    /// below `min` as `min`, and either above 31 days as 31 days.
    pub fn exponential(min: Duration, max: Duration) -> Self {
        let min = min.clamp(SHORTEST, LONGEST);
        Self(Kind::Exponential(
            ExponentialBuilder::new()
                .with_min_delay(min)
                .with_max_delay(max.clamp(min, LONGEST))
                .without_max_times()
                .with_jitter(),
        ))
    }

    fn start(&self) -> Delays {
        match &self.0 {
            Kind::Exponential(builder) => {
                Delays { source: Source::Exponential(builder.build()), last: SHORTEST }
            }
            #[cfg(feature = "backoff")]
            Kind::Backoff(backoff) => {
                let mut backoff = backoff.clone();
                ::backoff::backoff::Backoff::reset(&mut backoff);
                Delays {
                    last: backoff.initial_interval.clamp(SHORTEST, LONGEST),
                    source: Source::Backoff(backoff),
                }
            }
        }
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self::exponential(Duration::from_secs(1), Duration::from_secs(60))
    }
}

/// As it is, with its own jitter, which may also shorten a delay, but from 1 ms to 31 days. When it ends, its last
/// delay repeats; `max_elapsed_time` counts from the first refusal in a row, by that crate's own clock.
#[cfg(feature = "backoff")]
impl From<::backoff::ExponentialBackoff> for Schedule {
    fn from(backoff: ::backoff::ExponentialBackoff) -> Self {
        Self(Kind::Backoff(backoff))
    }
}

/// A schedule under way.
#[derive(Debug)]
struct Delays {
    source: Source,
    /// Repeated when the source has ended.
    last: Duration,
}

#[derive(Debug)]
enum Source {
    Exponential(ExponentialBackoff),
    #[cfg(feature = "backoff")]
    Backoff(::backoff::ExponentialBackoff),
}

impl Delays {
    fn next(&mut self) -> Duration {
        let next = match &mut self.source {
            Source::Exponential(delays) => delays.next(),
            #[cfg(feature = "backoff")]
            Source::Backoff(backoff) => {
                ::backoff::backoff::Backoff::next_backoff(backoff).map(|delay| delay.clamp(SHORTEST, LONGEST))
            }
        };
        self.last = next.unwrap_or(self.last);
        self.last
    }
}

/// The refusals of one provider, as one replica has seen them.
///
/// Requests that were in flight together are refused together: that is one incident, and one delay. A longer one
/// is due only when a request that knew of the pause is refused again.
#[derive(Debug, Default)]
pub struct Refusals {
    /// From the first refusal until a request that waited out the pause is accepted.
    delays: Option<Delays>,
    /// The end of the last pause. Kept after that: stragglers of its incident may still come.
    until: Option<Micros>,
}

impl Refusals {
    /// How long to pause from `now`, because a request that left at `sent` was refused without a hint. Zero if it
    /// belongs to a pause that is over.
    ///
    /// Both times by one clock that does not step. Another `schedule` than before counts from the next growth on.
    pub fn refused(&mut self, sent: Micros, now: Micros, schedule: &Schedule) -> Micros {
        // Who did not wait out the pause teaches nothing new.
        if let Some(until) = self.until.filter(|until| sent < *until) {
            return (until - now).max(0);
        }
        let wait = micros(self.delays.get_or_insert_with(|| schedule.start()).next());
        self.until = Some(now.saturating_add(wait));
        wait
    }

    /// A request that left at `sent` was accepted. If it had waited out the pause, the next refusal begins with
    /// the first delay again; if it was in flight before, it says nothing.
    pub fn accepted(&mut self, sent: Micros) {
        if self.until.is_some_and(|until| sent >= until) {
            self.delays = None;
        }
    }
}
