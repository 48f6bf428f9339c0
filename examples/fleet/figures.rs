//! Figures of which a report is made.

use serde::Serialize;
use tollgate::Limit;

use crate::{
    args::Args,
    clock::{Nanos, nanos},
    recorder::Sent,
    upstream::Arrival,
    values::Policy,
};

/// Permits per fortieth of a window, from the third window on.
#[derive(Serialize)]
pub struct Spread {
    pub bins: usize,
    pub min: usize,
    pub mean: f64,
    pub max: usize,
    /// In permits.
    pub worst_deviation: f64,
}

/// Requests a second that the tightest limit allows, in the mean.
pub fn rate(args: &Args, limits: &[Limit]) -> f64 {
    let rate =
        |limit: &Limit| limit.max() as f64 / limit.window().as_secs_f64() / args.mean_cost(limit.unit());
    limits.iter().map(rate).fold(f64::INFINITY, f64::min)
}

pub fn jain(trace: &[Arrival], replicas: usize) -> f64 {
    let mut parts = vec![0.0; replicas];
    for arrival in trace.iter().filter(|arrival| arrival.accepted) {
        if let Some(part) = parts.get_mut(arrival.pod) {
            *part += 1.0;
        }
    }
    let (sum, squares) = (parts.iter().sum::<f64>(), parts.iter().map(|part| part * part).sum::<f64>());
    if squares > 0.0 { sum * sum / (replicas as f64 * squares) } else { 0.0 }
}

/// What arrived in each window after the first arrival, in the limit's unit.
pub fn windows(trace: &[Arrival], limit: &Limit) -> Vec<u64> {
    let window = nanos(limit.window());
    let mut counts = Vec::new();
    for arrival in trace {
        let at = ((arrival.at - trace[0].at) / window) as usize;
        counts.resize(counts.len().max(at + 1), 0);
        counts[at] += arrival.price.of(limit.unit());
    }
    counts
}

pub fn spread(arrivals: impl Iterator<Item = Nanos> + Clone, window: Nanos) -> Option<Spread> {
    let width = (window / 40).max(1);
    let from = arrivals.clone().next()? + 2 * window;
    let bins = (arrivals.clone().last()?.checked_sub(from)? / width) as usize;
    let mut counts = vec![0usize; bins];
    for at in arrivals.filter(|&at| at >= from) {
        // What is in the last, unfinished bin is left out.
        if let Some(count) = counts.get_mut(((at - from) / width) as usize) {
            *count += 1;
        }
    }
    let (min, max) = (*counts.iter().min()?, *counts.iter().max()?);
    let mean = counts.iter().sum::<usize>() as f64 / bins as f64;
    Some(Spread { bins, min, mean, max, worst_deviation: (mean - min as f64).max(max as f64 - mean) })
}

/// `steady`: granted from `from` on; `begun`: those of them that have not waited longer than since then.
pub fn wait_ratio(args: &Args, steady: &[&Sent], begun: &[&Sent], from: Nanos) -> Option<f64> {
    let seconds = (steady.last()?.granted - from) as f64 / 1e9;
    if args.policy == Policy::Reject || seconds <= 0.0 {
        return None;
    }
    let full_queue = f64::from(args.all_tasks());
    let served_in_ms = full_queue / (steady.len() as f64 / seconds) * 1e3;
    Some(wait(begun.iter().copied(), 0.99) / served_in_ms)
}

/// A quantile of the waits, in milliseconds; 0 if there are none.
pub fn wait<'a>(permits: impl IntoIterator<Item = &'a Sent>, part: f64) -> f64 {
    let mut waits: Vec<Nanos> = permits.into_iter().map(|sent| sent.waited).collect();
    waits.sort_unstable();
    let rank = (waits.len() as f64 * part).ceil() as usize;
    waits.get(rank.saturating_sub(1)).map_or(0.0, |wait| *wait as f64 / 1e6)
}
