//! The numbers: what arrived, who got how much, how long it took.

use std::{collections::VecDeque, ops::Range, time::Duration};

use serde::Serialize;
use tollgate::Limit;

use crate::{
    args::{Args, Policy},
    clock::{Nanos, nanos},
    recorder::{Sent, Tally},
    rules::Page,
    trip::{Aftermath, Attempt},
    upstream::{Arrival, Log},
};

/// The outcome of a run, as JSON shows it.
#[derive(Serialize)]
pub struct Report {
    pub replicas: u32,
    pub limit: String,
    pub seconds: u64,
    pub permits: usize,
    pub rejected: u64,
    pub upstream_429: usize,
    /// Of these, what came before or after the trip.
    pub upstream_429_outside_trip: usize,
    /// Only of a run with one.
    pub trip: Option<Aftermath>,
    /// How many requests were answered with a redirect.
    pub redirects: usize,
    /// How many arrived where that led.
    pub landed: usize,
    /// The most arrivals in any window, accepted or not; unknown of a foreign upstream.
    pub max_in_window: Option<usize>,
    /// Accepted, of what the limits allow from the first arrival to the last.
    pub utilization: f64,
    /// Of what the replicas got accepted: 1 is even, 1/replicas is all for one.
    pub jain: f64,
    pub redis_calls: u64,
    pub late: u64,
    pub wait_p50_ms: f64,
    pub wait_p99_ms: f64,
    pub per_replica: Vec<Part>,
    pub store_errors: u64,
    pub send_errors: u64,
    pub spread: Option<Spread>,
    /// p99 of the waits after two windows, over the time in which a full queue is served.
    pub wait_ratio: Option<f64>,
    /// The most permits handed out in any window. Fewer than arrived: the rest bunched up on the way.
    pub max_granted_in_window: usize,
    /// Arrivals in each window after the first arrival.
    pub windows: Vec<usize>,
}

#[derive(Serialize)]
pub struct Part {
    pub replica: usize,
    pub permits: usize,
    pub rejected: u64,
    pub upstream_429: usize,
    pub wait_p50_ms: f64,
    pub wait_p99_ms: f64,
}

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

impl Report {
    /// Also returns the arrivals in the order of time. A foreign upstream tells none: they are then what the
    /// replicas have sent.
    pub fn new(args: &Args, limits: &[Limit], tallies: &[Tally], log: Option<Log>) -> (Self, Vec<Arrival>) {
        let own = log.is_some();
        let Log { arrivals: mut trace, redirects, trip } =
            log.unwrap_or_else(|| Log { arrivals: as_sent(tallies), redirects: 0, trip: None });
        trace.sort_by_key(|arrival| arrival.at);
        let window = nanos(limits[0].window());
        let mut granted: Vec<&Sent> = tallies.iter().flat_map(|tally| &tally.permits).collect();
        granted.sort_by_key(|sent| sent.granted);
        let total = |count: fn(&Tally) -> u64| tallies.iter().map(count).sum();
        let refused = |pod| trace.iter().filter(|one| one.pod == pod && !one.accepted).count();
        let part = |(replica, tally): (usize, &Tally)| Part {
            replica,
            permits: tally.permits.len(),
            rejected: tally.rejected,
            upstream_429: refused(replica),
            wait_p50_ms: wait(&tally.permits, 0.5),
            wait_p99_ms: wait(&tally.permits, 0.99),
        };
        let settled = granted.first().map_or(0, |first| first.granted + 2 * window);
        let late_start = granted.partition_point(|sent| sent.granted < settled);
        let steady = &granted[late_start..];
        let in_trip = |arrival: &Arrival| trip.as_ref().is_some_and(|trip| trip.contains(&arrival.at));
        let report = Self {
            replicas: args.replicas,
            limit: args.limit_texts(),
            seconds: args.seconds,
            permits: granted.len(),
            rejected: total(|tally| tally.rejected),
            upstream_429: trace.iter().filter(|arrival| !arrival.accepted).count(),
            upstream_429_outside_trip: trace.iter().filter(|one| !one.accepted && !in_trip(one)).count(),
            trip: trip.clone().map(|trip| aftermath(trip, tallies, &trace, limits)),
            redirects,
            landed: trace.iter().filter(|arrival| arrival.page == Page::Landed).count(),
            max_in_window: own.then(|| most_within(trace.iter().map(|arrival| arrival.at), window)),
            utilization: utilization(&trace, limits),
            jain: jain(&trace, tallies.len()),
            redis_calls: total(|tally| tally.redis_calls),
            late: total(|tally| tally.late),
            wait_p50_ms: wait(granted.iter().copied(), 0.5),
            wait_p99_ms: wait(granted.iter().copied(), 0.99),
            per_replica: tallies.iter().enumerate().map(part).collect(),
            store_errors: total(|tally| tally.store_errors),
            send_errors: total(|tally| tally.send_errors),
            spread: spread(trace.iter().map(|arrival| arrival.at), window),
            wait_ratio: wait_ratio(args, steady, settled),
            max_granted_in_window: most_within(granted.iter().map(|sent| sent.granted), window),
            windows: windows(&trace, window),
        };
        (report, trace)
    }
}

fn as_sent(tallies: &[Tally]) -> Vec<Arrival> {
    let mut trace = Vec::new();
    for (pod, tally) in tallies.iter().enumerate() {
        let answered = tally.permits.iter().filter_map(|sent| Some((sent.sent?, sent.status?)));
        let arrival = |(at, status)| Arrival { at, pod, page: Page::Hit, accepted: status != 429 };
        trace.extend(answered.map(arrival));
    }
    trace
}

fn aftermath(trip: Range<Nanos>, tallies: &[Tally], trace: &[Arrival], limits: &[Limit]) -> Aftermath {
    let attempt = |one: &Sent| {
        Some(Attempt { sent: one.sent?, refused: one.answered.filter(|_| one.status == Some(429)) })
    };
    let attempts: Vec<_> = tallies.iter().flat_map(|tally| &tally.permits).filter_map(attempt).collect();
    let arrivals: Vec<_> = trace.iter().map(|arrival| (arrival.at, arrival.accepted)).collect();
    let rate = |limit: &Limit| limit.max() as f64 / limit.window().as_secs_f64();
    let tightest = limits.iter().map(rate).fold(f64::INFINITY, f64::min);
    Aftermath::new(trip, &attempts, &arrivals, tightest)
}

/// Windows are half-open, so what is exactly one window apart is never in the same.
fn most_within(times: impl Iterator<Item = Nanos>, window: Nanos) -> usize {
    let (mut inside, mut most) = (VecDeque::new(), 0);
    for time in times {
        inside.push_back(time);
        while inside.front().is_some_and(|first| time - first >= window) {
            inside.pop_front();
        }
        most = most.max(inside.len());
    }
    most
}

fn utilization(trace: &[Arrival], limits: &[Limit]) -> f64 {
    let (Some(first), Some(last)) = (trace.first(), trace.last()) else { return 0.0 };
    let span = Duration::from_nanos(last.at - first.at);
    // All of a window's quota may come at once, however short the run.
    let allowed = |limit: &Limit| limit.max() as f64 * span.div_duration_f64(limit.window()).max(1.0);
    let least = limits.iter().map(allowed).fold(f64::INFINITY, f64::min);
    let accepted = trace.iter().filter(|arrival| arrival.accepted).count();
    accepted as f64 / least
}

fn jain(trace: &[Arrival], replicas: usize) -> f64 {
    let mut parts = vec![0.0; replicas];
    for arrival in trace.iter().filter(|arrival| arrival.accepted) {
        if let Some(part) = parts.get_mut(arrival.pod) {
            *part += 1.0;
        }
    }
    let (sum, squares) = (parts.iter().sum::<f64>(), parts.iter().map(|part| part * part).sum::<f64>());
    if squares > 0.0 { sum * sum / (replicas as f64 * squares) } else { 0.0 }
}

fn windows(trace: &[Arrival], window: Nanos) -> Vec<usize> {
    let mut counts = Vec::new();
    for arrival in trace {
        let at = ((arrival.at - trace[0].at) / window) as usize;
        counts.resize(counts.len().max(at + 1), 0);
        counts[at] += 1;
    }
    counts
}

fn spread(arrivals: impl Iterator<Item = Nanos> + Clone, window: Nanos) -> Option<Spread> {
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

fn wait_ratio(args: &Args, steady: &[&Sent], from: Nanos) -> Option<f64> {
    let seconds = (steady.last()?.granted - from) as f64 / 1e9;
    if args.policy == Policy::Reject || seconds <= 0.0 {
        return None;
    }
    let full_queue = f64::from(args.tasks * args.replicas);
    let served_in_ms = full_queue / (steady.len() as f64 / seconds) * 1e3;
    // Who began to wait before that has the cold burst's idle window in its wait.
    let begun = steady.iter().filter(|sent| sent.granted - sent.waited >= from);
    Some(wait(begun.copied(), 0.99) / served_in_ms)
}

/// A quantile of the waits, in milliseconds; 0 if there are none.
fn wait<'a>(permits: impl IntoIterator<Item = &'a Sent>, part: f64) -> f64 {
    let mut waits: Vec<Nanos> = permits.into_iter().map(|sent| sent.waited).collect();
    waits.sort_unstable();
    let rank = (waits.len() as f64 * part).ceil() as usize;
    waits.get(rank.saturating_sub(1)).map_or(0.0, |wait| *wait as f64 / 1e6)
}
