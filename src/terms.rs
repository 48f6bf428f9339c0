//! On which terms a call asks for its permit: the same for a request and for what is not HTTP.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    clock::Clock,
    gate::{Patience, Priority},
};

#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub cost: u64,
    pub priority: Priority,
    pub wait: Wait,
}

/// How long a call waits, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As long as the provider allows.
    Longest,
    AtMost(Duration),
    Until(Instant),
    /// Not at all.
    Reject,
}

impl Default for Terms {
    fn default() -> Self {
        Self { cost: 1, priority: Priority::Normal, wait: Wait::Longest }
    }
}

impl Terms {
    /// Until when a call waits that has begun at `begun`, never longer than `longest`. Who has no time, or none
    /// left, has it for a look at the store: now or not at all.
    pub fn patience(&self, clock: &Clock, begun: Instant, longest: Duration) -> Patience {
        // So far ahead that nobody waits that long, and far from what an instant can hold.
        let latest = begun + longest.min(Duration::from_secs(100 * 366 * 86_400));
        let end = match self.wait {
            Wait::Longest => latest,
            Wait::AtMost(time) => begun.checked_add(time).map_or(latest, |end| end.min(latest)),
            Wait::Until(end) => end.min(latest),
            Wait::Reject => return Patience::Reject,
        };
        let end = clock.mono_at(end);
        if end > clock.mono() { Patience::Until(end) } else { Patience::Reject }
    }
}
