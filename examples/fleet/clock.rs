//! The only file that reads a clock.
#![allow(clippy::disallowed_methods, reason = "the proof measures real time")]

use std::time::{Duration, Instant, SystemTime};

pub use crate::quota::Nanos;

/// Never steps, and is comparable between the processes of one machine: the wall clock when it was made,
/// and the time since.
#[derive(Clone, Copy)]
pub struct Clock {
    start: Instant,
    epoch: Duration,
}

impl Clock {
    pub fn new() -> Self {
        Self { start: Instant::now(), epoch: SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() }
    }

    pub fn now(&self) -> Nanos {
        nanos(self.epoch + self.start.elapsed())
    }
}

pub fn nanos(time: Duration) -> Nanos {
    Nanos::try_from(time.as_nanos()).unwrap_or(Nanos::MAX)
}
