//! The command line.

use std::{path::PathBuf, process::exit, time::Duration};

use clap::Parser;
use tollgate::{Answer, Limit, LimitKind, Provider, Tollgate};

use crate::{
    Outcome,
    chance::Cost,
    mix::{self, Mix, Tasks},
    price::{self, REQUESTS},
    quota::{UpstreamKind, Which},
    trip::Trip,
    values::{
        Change, Jitter, Policy, Spec, change, cost, duration, factor, jitter, policy, spec, trip, whole,
    },
};

/// The name of the provider that all replicas share.
pub const PROVIDER: &str = "fleet";

/// Starts real processes that share one quota through Redis, and counts what arrives at the upstream.
#[derive(Parser)]
#[command(name = "fleet")]
pub struct Args {
    /// How many processes share the quota
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = |it: &str| whole::<u32>(it, 1, 500))]
    pub replicas: u32,
    /// A limit of the upstream; may be given several times
    #[arg(long = "limit", value_name = "SPEC", default_value = "100/1s", value_parser = spec)]
    pub limits: Vec<Spec>,
    /// How much of a unit each request takes, by chance, e.g. tokens=50..350; may be given several times
    #[arg(long = "cost", value_name = "UNIT=LO..HI", value_parser = cost)]
    pub costs: Vec<Cost>,
    /// Replicas believe that a request takes up to F times more or less than it does, until its answer tells
    #[arg(long, value_name = "F", default_value_t = 1.0, value_parser = factor)]
    pub estimate_off: f64,
    /// Closed loops in each replica: get a permit, send, again
    #[arg(long, value_name = "T", default_value_t = 50, value_parser = |it: &str| whole::<u32>(it, 1, 9999))]
    pub tasks: u32,
    /// Loops by priority instead, e.g. high=1,low=50, in all replicas or in one of them, e.g. 0:high=1; may be
    /// given several times
    #[arg(long = "priority-mix", value_name = "[R:]P=N,..", value_parser = mix::parse)]
    pub mixes: Vec<Mix>,
    /// So long, give or take half of it, a loop of high priority does nothing after each call
    #[arg(long, value_name = "DUR", default_value = "0ms", value_parser = duration)]
    pub think: Duration,
    /// How long
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = |it: &str| whole::<u64>(it, 1, 9999))]
    pub seconds: u64,
    /// An existing Redis [default: a private one, ended with the run]
    #[arg(long, value_name = "URL")]
    pub redis: Option<String>,
    /// An existing upstream, asked for URL/hit [default: one in this process]
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// How the upstream in this process counts
    #[arg(long, value_enum, default_value_t = UpstreamKind::Rolling)]
    pub upstream_kind: UpstreamKind,
    /// The upstream refuses what comes while so many calls are in flight
    #[arg(long, value_name = "N", value_parser = |it: &str| whole::<usize>(it, 1, 9999))]
    pub in_flight: Option<usize>,
    /// The upstream takes so long to answer what it accepts
    #[arg(long, value_name = "DUR", default_value = "0ms", value_parser = duration)]
    pub call_time: Duration,
    /// The upstream refuses everything for so long, from so long after the first arrival on, e.g. 2s@4s
    #[arg(long, value_name = "DUR@DUR", value_parser = trip)]
    pub trip: Option<Trip>,
    /// The first replica sets this limit for all, so long after the start, e.g. 50/1s@4s: in the place of that with the
    /// same unit and window. The upstream keeps to what it had
    #[arg(long, value_name = "SPEC@DUR", value_parser = change)]
    pub change: Option<Change>,
    /// The upstream answers one in N of what it accepts with a redirect, which leads to one more request
    #[arg(long, value_name = "N", value_parser = |it: &str| whole::<u64>(it, 1, 9999))]
    pub redirect_every: Option<u64>,
    /// How many redirects of one request the replicas follow
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = |it: &str| whole::<u32>(it, 0, 20))]
    pub redirects: u32,
    /// The replicas do not hear at once of what others tell the store
    #[arg(long)]
    pub no_bell: bool,
    /// Delays each request on its way, e.g. 5..50ms [default: none]
    #[arg(long, value_name = "RANGE", value_parser = jitter)]
    pub jitter: Option<Jitter>,
    /// Stretches every window, e.g. 10ms [default: the limit's own guard]
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub guard: Option<Duration>,
    /// What a loop does without a permit: wait, reject or wait:DUR
    #[arg(long, default_value = "wait", value_parser = policy)]
    pub policy: Policy,
    /// Draws the arrivals as a picture
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// One JSON object as the last line; the table goes to stderr
    #[arg(long)]
    pub json: bool,

    /// This process is that replica.
    #[arg(long, hide = true)]
    pub child: Option<u32>,
    /// Keeps runs on one Redis apart.
    #[arg(long, hide = true, default_value = "fleet")]
    pub run: String,
}

impl Args {
    /// From the command line. What cannot be understood ends the process: one line, code 2.
    pub fn read() -> Self {
        let wrong = |message: &str| -> ! {
            eprintln!("{message}");
            exit(2)
        };
        let args = Self::try_parse().unwrap_or_else(|error| {
            if !error.use_stderr() {
                error.exit();
            }
            let text = error.to_string();
            let first = text.split("\n\n").next().unwrap_or_default();
            wrong(&format!("{}; see --help", first.split_whitespace().collect::<Vec<_>>().join(" ")))
        });
        if let Err(error) = args.check() {
            wrong(&format!("error: {error}"));
        }
        args
    }

    /// What the single values could not tell: whether they agree.
    fn check(&self) -> Outcome<()> {
        if self.limits.len() > Which::MOST {
            return Err(format!("--limit: at most {}", Which::MOST).into());
        }
        self.upstream_limits()?;
        self.check_costs()?;
        Tollgate::builder().provider(self.provider()?).build()?;
        if self.upstream.as_ref().is_some_and(|url| !url.starts_with("http://")) {
            return Err("--upstream expects a plain URL such as http://127.0.0.1:8080".into());
        }
        // A replica is always told an upstream.
        let foreign = self.child.is_none() && self.upstream.is_some();
        let ours = self.trip.is_some() || self.redirect_every.is_some();
        if foreign && (ours || self.in_flight.is_some() || self.settles() || !self.call_time.is_zero()) {
            return Err("--trip, --redirect-every, --estimate-off, --in-flight and --call-time need the \
                        upstream of this process"
                .into());
        }
        let run = Duration::from_secs(self.seconds);
        if self.trip.is_some_and(|trip| trip.after.saturating_add(trip.lasts) >= run) {
            return Err(format!("--trip must be over before the run is, after {run:?}").into());
        }
        if let Some(Change { limit, after }) = &self.change {
            if !self.limits.iter().any(|spec| spec.limit.name() == limit.name()) {
                return Err(
                    format!("--change: no --limit is one that {limit} could take the place of").into()
                );
            }
            if after.saturating_add(2 * limit.window()) >= run {
                return Err(
                    format!("--change must be two windows before the end of the run, at {run:?}").into()
                );
            }
        }
        match self.mixes.iter().filter_map(|mix| mix.replica).max() {
            Some(replica) if replica >= self.replicas => Err(format!(
                "--priority-mix: the last of {} replicas is {}",
                self.replicas,
                self.replicas - 1
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Each request must fit into each limit, or it would never be sent; and what no request takes has no limit.
    fn check_costs(&self) -> Outcome<()> {
        for (at, Cost { unit, most, .. }) in self.costs.iter().enumerate() {
            if self.costs[..at].iter().any(|other| other.unit == *unit) {
                return Err(format!("--cost: {unit} has two ranges").into());
            }
            let mut limits = self.limits.iter().map(|spec| &spec.limit).filter(|limit| limit.unit() == unit);
            let booked = *most as f64 * self.estimate_off;
            let Some(first) = limits.next() else {
                return Err(format!("--cost: no limit counts {unit}").into());
            };
            for limit in std::iter::once(first).chain(limits) {
                let most = if let LimitKind::Bucket { burst } = limit.kind() { burst } else { limit.max() };
                if booked > most as f64 {
                    return Err(format!("--cost: {booked} {unit} at once are never had of {limit}").into());
                }
            }
        }
        for unit in self.limits.iter().map(|spec| spec.limit.unit()).filter(|unit| *unit != REQUESTS) {
            if self.costs.iter().all(|cost| cost.unit != unit) {
                return Err(format!("no request takes any {unit}: add e.g. --cost {unit}=50..350").into());
            }
        }
        Ok(())
    }

    pub fn limit_texts(&self) -> String {
        self.limits.iter().map(|spec| spec.text.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Loops of a replica, by priority.
    pub fn tasks_of(&self, replica: u32) -> Tasks {
        let for_it = |mix: &&Mix| mix.replica == Some(replica);
        let for_all = |mix: &&Mix| mix.replica.is_none();
        let mix = self.mixes.iter().rfind(for_it).or_else(|| self.mixes.iter().rfind(for_all));
        mix.map_or([0, self.tasks, 0], |mix| mix.tasks)
    }

    pub fn all_tasks(&self) -> u32 {
        (0..self.replicas).flat_map(|replica| self.tasks_of(replica)).sum()
    }

    /// Whether what is booked differs from what is told afterwards.
    pub fn settles(&self) -> bool {
        self.estimate_off > 1.0 && !self.costs.is_empty()
    }

    /// How much of a unit a request takes in the mean.
    pub fn mean_cost(&self, unit: &str) -> f64 {
        let drawn = self.costs.iter().find(|cost| cost.unit == unit).map(Cost::mean);
        drawn.unwrap_or(if unit == REQUESTS { 1.0 } else { 0.0 })
    }

    /// The provider as the replicas see it.
    pub fn provider(&self) -> Outcome<Provider> {
        let host = self.upstream.as_deref().and_then(|url| url.strip_prefix("http://"));
        let host = host.map(|rest| rest.split('/').next().unwrap_or_default());
        let most = (0..self.replicas).map(|replica| self.tasks_of(replica).iter().sum::<u32>()).max();
        let mut provider = Provider::new(PROVIDER).hosts(host).queue(most.unwrap_or(0) as usize);
        provider = provider.redirects(self.redirects);
        let mut longest = Duration::ZERO;
        for Spec { limit, .. } in &self.limits {
            let limit = self.guarded(limit)?;
            longest = longest.max(limit.window() + limit.guard());
            provider = provider.limit(limit);
        }
        if let Some(places) = self.in_flight {
            provider = provider.limit(Limit::in_flight(places as u64)?);
        }
        for Cost { unit, .. } in self.costs.iter().filter(|_| self.settles()) {
            let header = price::header(unit);
            provider = provider.settle(unit, move |answer: &Answer<'_>| answer.header_number(&header));
        }
        Ok(provider.max_wait(Duration::from_secs(self.seconds) + 2 * longest))
    }

    /// A limit as the replicas have it.
    pub fn guarded(&self, limit: &Limit) -> Outcome<Limit> {
        Ok(self.guard.map_or(Ok(limit.clone()), |guard| limit.clone().with_guard(guard))?)
    }

    /// The limits as the upstream has them: it knows nothing of guards and shares.
    pub fn upstream_limits(&self) -> Outcome<Vec<Limit>> {
        self.limits.iter().map(|spec| Ok(spec.limit.clone().use_share(1.0)?)).collect()
    }
}
