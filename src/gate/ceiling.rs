//! The ceiling of one replica: a runaway loop neither empties the quota nor floods the store.

use std::{num::NonZeroU32, time::Duration};

use governor::{
    Quota, RateLimiter,
    clock::{Clock as _, Reference},
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed},
};

use super::{Patience, Verdict};
use crate::clock::{Clock, duration, micros};

/// Permits a second that one replica may ask for, whatever they cost; as many at once.
pub struct Ceiling {
    limiter: RateLimiter<NotKeyed, InMemoryState, Time, NoOpMiddleware<Duration>>,
}

/// Governor on the crate's clock, so that it stands still with a paused one.
#[derive(Clone, Debug)]
struct Time(Clock);

impl governor::clock::Clock for Time {
    type Instant = Duration;

    fn now(&self) -> Duration {
        duration(self.0.now().mono)
    }
}

impl Ceiling {
    pub fn new(per_second: NonZeroU32, clock: Clock) -> Self {
        Self { limiter: RateLimiter::direct_with_clock(Quota::per_second(per_second), Time(clock)) }
    }

    /// Waits until the replica may ask again, as long as its caller would.
    pub async fn pass(&self, patience: Patience) -> Result<(), Verdict> {
        loop {
            let Err(not_until) = self.limiter.check() else { return Ok(()) };
            let now = self.limiter.clock().now();
            let wait: Duration = not_until.earliest_possible().duration_since(now).into();
            let retry_after = micros(wait).max(1);
            let in_time = match patience {
                Patience::Reject => false,
                Patience::Until(deadline) => micros(now) + retry_after <= deadline,
            };
            if !in_time {
                return Err(Verdict::Ceiling { retry_after });
            }
            tokio::time::sleep(wait).await;
        }
    }
}
