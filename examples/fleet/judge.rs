//! What came of one limit, from the arrivals alone: a second count beside the upstream's own.

use std::{collections::VecDeque, time::Duration};

use serde::Serialize;
use tollgate::Limit;

use crate::quota::Nanos;

/// A request, as one limit sees it.
#[derive(Clone, Copy)]
pub struct Seen {
    pub at: Nanos,
    /// What it takes of this limit.
    pub amount: u64,
    pub accepted: bool,
    /// Whether it was this limit that refused it, perhaps with others.
    pub refused: bool,
}

/// As JSON shows it; amounts in the limit's unit.
#[derive(Debug, PartialEq, Serialize)]
pub struct Judged {
    pub limit: String,
    pub unit: String,
    pub max: u64,
    /// The most in any window of what was accepted or was refused by this limit: what others refused is not
    /// among it. Unknown of a foreign upstream.
    pub most: Option<u64>,
    /// How much that is above the quota.
    pub over: u64,
    /// Requests.
    pub refused: usize,
    /// Accepted, of what the limit allows from the first arrival to the last.
    pub used: f64,
}

impl Judged {
    /// `seen`: all that arrived, in the order of time.
    pub fn new(limit: &Limit, seen: &[Seen]) -> Self {
        let charged = seen.iter().filter(|one| one.accepted || one.refused);
        let window = limit.window().as_nanos() as Nanos;
        let most = most_within(charged.map(|one| (one.at, one.amount)), window);
        let accepted: u64 = seen.iter().filter(|one| one.accepted).map(|one| one.amount).sum();
        let span = seen.first().zip(seen.last()).map_or(0, |(first, last)| last.at - first.at);
        // All of a window's quota may come at once, however short the run.
        let windows = Duration::from_nanos(span).div_duration_f64(limit.window()).max(1.0);
        Self {
            limit: limit.to_string(),
            unit: limit.unit().to_owned(),
            max: limit.max(),
            most: Some(most),
            over: most.saturating_sub(limit.max()),
            refused: seen.iter().filter(|one| one.refused).count(),
            used: accepted as f64 / (limit.max() as f64 * windows),
        }
    }
}

/// Windows are half-open, so what is exactly one window apart is never in the same.
pub fn most_within(amounts: impl Iterator<Item = (Nanos, u64)>, window: Nanos) -> u64 {
    let (mut inside, mut sum, mut most) = (VecDeque::new(), 0, 0);
    for (time, amount) in amounts {
        inside.push_back((time, amount));
        sum += amount;
        while let Some((_, amount)) = inside.front().filter(|(first, _)| time - first >= window) {
            sum -= amount;
            inside.pop_front();
        }
        most = most.max(sum);
    }
    most
}
