//! A limit that is set in mid-run, and what arrived after that. Pure: time is an argument.

use std::time::Duration;

use serde::Serialize;
use tollgate::Limit;

use crate::{judge::most_within, quota::Nanos};

/// As JSON shows it; amounts in the limit's unit.
#[derive(Debug, PartialEq, Serialize)]
pub struct Changed {
    pub limit: String,
    pub max: u64,
    /// The most in any window that begins a window after the limit was set, or later.
    pub most_after: u64,
    /// Of what it allows from then on.
    pub used_after: f64,
}

impl Changed {
    /// `at`: when the store had it. `arrivals`: when, and how much of the unit, in the order of time.
    pub fn new(limit: &Limit, at: Nanos, arrivals: &[(Nanos, u64)]) -> Self {
        let window = limit.window().as_nanos() as Nanos;
        let begin = at + window;
        let after = &arrivals[arrivals.partition_point(|(arrived, _)| *arrived < begin)..];
        let amount: u64 = after.iter().map(|(_, amount)| amount).sum();
        let span = after.last().map_or(0, |(last, _)| last - begin);
        let windows = Duration::from_nanos(span).div_duration_f64(limit.window()).max(1.0);
        Self {
            limit: limit.to_string(),
            max: limit.max(),
            most_after: most_within(after.iter().copied(), window),
            used_after: amount as f64 / (limit.max() as f64 * windows),
        }
    }
}
