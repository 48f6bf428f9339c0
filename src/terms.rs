//! On which terms a call asks for its permit: the same for a request and for what is not HTTP.

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    clock::Clock,
    gate::{Patience, Priority},
    price::Price,
};

#[derive(Clone, Debug, Default)]
pub struct Terms {
    pub price: Price,
    /// Values of keys, given by hand.
    pub keys: Vec<(Arc<str>, Hidden)>,
    /// Routes by name, for what has no path.
    pub routes: Vec<Arc<str>>,
    pub priority: Priority,
    pub wait: Wait,
}

/// What may be a secret: it is not shown.
#[derive(Clone)]
pub struct Hidden(Arc<[u8]>);

impl Hidden {
    pub fn new(value: &[u8]) -> Self {
        Self(value.into())
    }
}

impl AsRef<[u8]> for Hidden {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hidden")
    }
}

/// How long a call waits, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// As long as the provider allows.
    #[default]
    Longest,
    AtMost(Duration),
    Until(Instant),
    /// Not at all.
    Reject,
}

impl Terms {
    pub fn set_key(&mut self, key: &str, value: &[u8]) {
        self.keys.retain(|(named, _)| **named != *key);
        self.keys.push((key.into(), Hidden::new(value)));
    }

    pub fn key(&self, key: &str) -> Option<&[u8]> {
        self.keys.iter().find(|(named, _)| **named == *key).map(|(_, value)| value.as_ref())
    }

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
