//! The only file that reads a clock.
#![allow(clippy::disallowed_methods)]

use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::ledger::Micros;

/// One reading: the monotonic clock, which waits obey, and the wall clock, which goes on while the machine
/// is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since the clock was made.
    pub mono: Micros,
    /// Since the epoch.
    pub wall: Micros,
}

impl Moment {
    /// The larger of what both clocks say has passed.
    pub fn since(self, earlier: Self) -> Micros {
        (self.mono - earlier.mono).max(self.wall - earlier.wall)
    }
}

/// Time as one process sees it. On tokio's paused clock it stands still with it.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    epoch: Micros,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    pub fn new() -> Self {
        Self { start: Instant::now(), epoch: wall() }
    }

    pub fn now(&self) -> Moment {
        Moment { mono: self.mono(), wall: wall() }
    }

    /// The monotonic half of it.
    pub fn mono(&self) -> Micros {
        micros(self.start.elapsed())
    }

    /// Since the epoch, never stepping: the wall clock when this clock was made, and the time since.
    pub fn steady(&self) -> Micros {
        self.epoch + self.mono()
    }

    pub fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    pub fn instant_now(&self) -> Instant {
        Instant::now()
    }

    /// An instant as this clock tells it.
    pub fn mono_at(&self, instant: Instant) -> Micros {
        micros(instant.saturating_duration_since(self.start))
    }

    /// When `mono` will be, for a timer.
    pub fn instant(&self, mono: Micros) -> Instant {
        self.start + Duration::from_micros(mono.max(0) as u64)
    }
}

fn wall() -> Micros {
    micros(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}

pub fn micros(time: Duration) -> Micros {
    Micros::try_from(time.as_micros()).unwrap_or(Micros::MAX)
}

pub fn duration(micros: Micros) -> Duration {
    Duration::from_micros(micros.max(0) as u64)
}
