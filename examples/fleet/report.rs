//! The numbers: what arrived, who got how much, how long it took.

use std::ops::Range;

use serde::Serialize;
use tollgate::Limit;

use crate::{
    args::Args,
    change::Changed,
    classes::{Class, classes},
    clock::{Nanos, nanos},
    figures::{Spread, jain, rate, spread, wait, wait_ratio, windows},
    flights::InFlight,
    judge::{Judged, Seen, most_within},
    quota::Which,
    recorder::{Sent, Tally},
    rules::Page,
    trip::{Aftermath, Attempt},
    unsettled::{Guess, Unsettled},
    upstream::{Arrival, Log},
    values::Change,
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
    /// Only of a run in which a limit was set.
    pub change: Option<Changed>,
    /// How many requests were answered with a redirect.
    pub redirects: usize,
    /// How many arrived where that led.
    pub landed: usize,
    /// The most arrivals in any window of the first limit, in its unit, accepted or not; unknown of a foreign
    /// upstream.
    pub max_in_window: Option<u64>,
    /// Accepted, of what the tightest limit allows from the first arrival to the last.
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
    /// The most permits handed out in any such window. Fewer than arrived: the rest bunched up on the way.
    pub max_granted_in_window: u64,
    /// Each limit by itself.
    pub limits: Vec<Judged>,
    /// Of each unit of which estimates were off.
    pub unsettled: Vec<Unsettled>,
    /// If the upstream counts calls in flight.
    pub in_flight: Option<InFlight>,
    pub priorities: Vec<Class>,
    /// Arrivals in each window after the first arrival, in the unit of the first limit.
    pub windows: Vec<u64>,
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

impl Report {
    /// Also returns the arrivals in the order of time. A foreign upstream tells none: they are then what the
    /// replicas have sent.
    pub fn new(args: &Args, limits: &[Limit], tallies: &[Tally], log: Option<Log>) -> (Self, Vec<Arrival>) {
        let own = log.is_some();
        let Log { arrivals: mut trace, redirects, trip, in_flight } = log.unwrap_or_else(|| Log {
            arrivals: as_sent(tallies),
            redirects: 0,
            trip: None,
            in_flight: None,
        });
        trace.sort_by_key(|arrival| arrival.at);
        let (window, unit) = (nanos(limits[0].window()), limits[0].unit());
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
        // Who began to wait before that has the cold burst's idle window in its wait.
        let begun = steady.iter().copied().filter(|sent| sent.granted - sent.waited >= settled);
        let begun: Vec<_> = begun.collect();
        let judged = judged(limits, &trace, own);
        let in_trip = |arrival: &Arrival| trip.as_ref().is_some_and(|trip| trip.contains(&arrival.at));
        let report = Self {
            replicas: args.replicas,
            limit: args.limit_texts(),
            seconds: args.seconds,
            permits: granted.len(),
            rejected: total(|tally| tally.rejected),
            upstream_429: trace.iter().filter(|arrival| !arrival.accepted).count(),
            upstream_429_outside_trip: trace.iter().filter(|one| !one.accepted && !in_trip(one)).count(),
            trip: trip.clone().map(|trip| aftermath(trip, tallies, &trace, rate(args, limits))),
            change: changed(args, tallies, &trace),
            redirects,
            landed: trace.iter().filter(|arrival| arrival.page == Page::Landed).count(),
            max_in_window: own
                .then(|| most_within(trace.iter().map(|one| (one.at, one.price.of(unit))), window)),
            utilization: judged.iter().map(|limit| limit.used).fold(0.0, f64::max),
            jain: jain(&trace, tallies.len()),
            redis_calls: total(|tally| tally.redis_calls),
            late: total(|tally| tally.late),
            wait_p50_ms: wait(granted.iter().copied(), 0.5),
            wait_p99_ms: wait(granted.iter().copied(), 0.99),
            per_replica: tallies.iter().enumerate().map(part).collect(),
            store_errors: total(|tally| tally.store_errors),
            send_errors: total(|tally| tally.send_errors),
            spread: spread(trace.iter().map(|arrival| arrival.at), window),
            wait_ratio: wait_ratio(args, steady, &begun, settled),
            max_granted_in_window: most_within(
                granted.iter().map(|sent| (sent.granted, sent.real.of(unit))),
                window,
            ),
            limits: judged,
            unsettled: unsettled(args, tallies),
            in_flight,
            priorities: classes(args, tallies, &begun, rate(args, limits)),
            windows: windows(&trace, &limits[0]),
        };
        (report, trace)
    }
}

/// `None`: nothing was to be set, or it was not.
fn changed(args: &Args, tallies: &[Tally], trace: &[Arrival]) -> Option<Changed> {
    let Change { limit, .. } = args.change.as_ref()?;
    let at = tallies.first()?.changed?;
    let arrivals: Vec<_> = trace.iter().map(|one| (one.at, one.price.of(limit.unit()))).collect();
    Some(Changed::new(limit, at, &arrivals))
}

fn as_sent(tallies: &[Tally]) -> Vec<Arrival> {
    let mut trace = Vec::new();
    for (pod, tally) in tallies.iter().enumerate() {
        let arrival = |sent: &Sent| {
            let (at, accepted, price) = (sent.sent?, sent.status? != 429, sent.real.clone());
            Some(Arrival { at, pod, page: Page::Hit, price, accepted, by: Which::default() })
        };
        trace.extend(tally.permits.iter().filter_map(arrival));
    }
    trace
}

fn judged(limits: &[Limit], trace: &[Arrival], own: bool) -> Vec<Judged> {
    let judge = |(at, limit): (usize, &Limit)| {
        let seen = |one: &Arrival| Seen {
            at: one.at,
            amount: one.price.of(limit.unit()),
            accepted: one.accepted,
            refused: one.by.has(at),
        };
        let judged = Judged::new(limit, &trace.iter().map(seen).collect::<Vec<_>>());
        Judged { most: judged.most.filter(|_| own), ..judged }
    };
    limits.iter().enumerate().map(judge).collect()
}

fn unsettled(args: &Args, tallies: &[Tally]) -> Vec<Unsettled> {
    let unit = |unit: &str| {
        // What is refused takes nothing.
        let sent = tallies.iter().flat_map(|tally| &tally.permits).filter(|one| one.status != Some(429));
        let guess = |one: &Sent| {
            let (booked, real) = (one.booked.of(unit), one.real.of(unit));
            Some(Guess { granted: one.granted, sent: one.sent?, ended: one.ended, booked, real })
        };
        Unsettled::new(unit, &sent.filter_map(guess).collect::<Vec<_>>())
    };
    let costs = args.costs.iter().filter(|_| args.settles());
    costs.map(|cost| unit(&cost.unit)).collect()
}

fn aftermath(trip: Range<Nanos>, tallies: &[Tally], trace: &[Arrival], rate: f64) -> Aftermath {
    let attempt = |one: &Sent| {
        Some(Attempt { sent: one.sent?, refused: one.answered.filter(|_| one.status == Some(429)) })
    };
    let attempts: Vec<_> = tallies.iter().flat_map(|tally| &tally.permits).filter_map(attempt).collect();
    let arrivals: Vec<_> = trace.iter().map(|arrival| (arrival.at, arrival.accepted)).collect();
    Aftermath::new(trip, &attempts, &arrivals, rate)
}
