//! A trip: for a while the upstream refuses everything, and then it is seen how fast the fleet fell silent
//! and how it came back. Pure: time is an argument.

use std::{ops::Range, time::Duration};

use serde::Serialize;

use crate::quota::Nanos;

/// What was sent later than this after the first refusal had come was sent by somebody who could know.
const GRACE: Nanos = 60_000_000;
/// How long the fleet's return is watched.
pub const RETURN: Nanos = 200_000_000;

/// From `after` the first arrival on, for as long as it `lasts`.
#[derive(Clone, Copy)]
pub struct Trip {
    pub lasts: Duration,
    pub after: Duration,
}

impl Trip {
    pub fn span(&self, first: Nanos) -> Range<Nanos> {
        let from = first + self.after.as_nanos() as Nanos;
        from..from + self.lasts.as_nanos() as Nanos
    }
}

/// An attempt on the wire, as its replica saw it.
pub struct Attempt {
    pub sent: Nanos,
    /// When the 429 reached the replica, if it was refused.
    pub refused: Option<Nanos>,
}

/// What a trip did to the fleet, as JSON shows it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Aftermath {
    /// From the moment at which the first 429 of the trip reached a replica to the last send before the trip's
    /// end, which no pause ends before; 0: nothing was sent after it. `None`: no 429 has reached anybody.
    pub stop_ms: Option<f64>,
    /// Sent more than 60 ms after that first 429 and before the trip's end.
    pub during: usize,
    /// 429s for requests that arrived after the trip's end.
    pub refused_after: usize,
    /// Arrivals in the 200 ms from the first arrival after the trip's end on.
    pub first_200_ms: usize,
    /// What the tightest limit's paced rate allows in 200 ms.
    pub paced_200_ms: f64,
    /// From the trip's end to the first arrival after it. `None`: none came.
    pub resumed_ms: Option<f64>,
}

impl Aftermath {
    /// `arrivals`: when, and whether it was accepted, in the order of time. `rate`: permits a second.
    pub fn new(trip: Range<Nanos>, attempts: &[Attempt], arrivals: &[(Nanos, bool)], rate: f64) -> Self {
        // An answer may come after the trip's end, to what was sent before. It may not come before its
        // beginning: then it was a refusal by the quota.
        let of_trip = attempts.iter().filter(|attempt| attempt.sent < trip.end);
        let first = of_trip.filter_map(|attempt| attempt.refused).filter(|at| *at >= trip.start).min();
        let sends = || attempts.iter().map(|attempt| attempt.sent).filter(|sent| *sent < trip.end);
        let last = sends().max();
        let after = &arrivals[arrivals.partition_point(|(at, _)| *at < trip.end)..];
        let back = after.first().map(|(at, _)| *at);
        Self {
            stop_ms: first.zip(last).map(|(first, last)| millis(last.saturating_sub(first))),
            during: first.map_or(0, |first| sends().filter(|sent| *sent > first + GRACE).count()),
            refused_after: after.iter().filter(|(_, accepted)| !accepted).count(),
            first_200_ms: back.map_or(0, |back| after.partition_point(|(at, _)| *at < back + RETURN)),
            paced_200_ms: rate * RETURN as f64 / 1e9,
            resumed_ms: back.map(|back| millis(back - trip.end)),
        }
    }
}

fn millis(time: Nanos) -> f64 {
    time as f64 / 1e6
}
