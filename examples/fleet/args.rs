//! The command line.

use std::{path::PathBuf, process::exit, time::Duration};

use clap::Parser;
use tollgate::{Limit, Provider, Tollgate};

use crate::{Outcome, quota::UpstreamKind, trip::Trip};

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
    /// Closed loops in each replica: get a permit, send, again
    #[arg(long, value_name = "T", default_value_t = 50, value_parser = |it: &str| whole::<u32>(it, 1, 9999))]
    pub tasks: u32,
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
    /// The upstream refuses everything for so long, from so long after the first arrival on, e.g. 2s@4s
    #[arg(long, value_name = "DUR@DUR", value_parser = trip)]
    pub trip: Option<Trip>,
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

/// A limit, and how it was written.
#[derive(Clone)]
pub struct Spec {
    pub text: String,
    limit: Limit,
}

#[derive(Clone, Copy)]
pub struct Jitter {
    pub least: Duration,
    pub most: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Wait,
    Reject,
    WaitAtMost(Duration),
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
        self.upstream_limits()?;
        Tollgate::builder().provider(self.provider()?).build()?;
        if self.upstream.as_ref().is_some_and(|url| !url.starts_with("http://")) {
            return Err("--upstream expects a plain URL such as http://127.0.0.1:8080".into());
        }
        // A replica is always told an upstream.
        let foreign = self.child.is_none() && self.upstream.is_some();
        if foreign && (self.trip.is_some() || self.redirect_every.is_some()) {
            return Err("--trip and --redirect-every need the upstream of this process".into());
        }
        let run = Duration::from_secs(self.seconds);
        if self.trip.is_some_and(|trip| trip.after.saturating_add(trip.lasts) >= run) {
            return Err(format!("--trip must be over before the run is, after {run:?}").into());
        }
        Ok(())
    }

    /// The run in one line.
    pub fn title(&self) -> String {
        let mut title = format!(
            "{} replicas, {} tasks each, {} s, limit {}",
            self.replicas,
            self.tasks,
            self.seconds,
            self.limit_texts()
        );
        if let Some(Trip { lasts, after }) = self.trip {
            title += &format!(", trip {lasts:?}@{after:?}");
        }
        if let Some(every) = self.redirect_every {
            title += &format!(", one in {every} redirected, {} followed", self.redirects);
        }
        if self.no_bell {
            title += ", no bell";
        }
        title
    }

    pub fn limit_texts(&self) -> String {
        self.limits.iter().map(|spec| spec.text.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The provider as the replicas see it.
    pub fn provider(&self) -> Outcome<Provider> {
        let host = self.upstream.as_deref().and_then(|url| url.strip_prefix("http://"));
        let host = host.map(|rest| rest.split('/').next().unwrap_or_default());
        let mut provider = Provider::new(PROVIDER).hosts(host).queue(self.tasks as usize);
        provider = provider.redirects(self.redirects);
        let mut longest = Duration::ZERO;
        for Spec { limit, .. } in &self.limits {
            let limit = self.guard.map_or(Ok(limit.clone()), |guard| limit.clone().with_guard(guard))?;
            longest = longest.max(limit.window() + limit.guard());
            provider = provider.limit(limit);
        }
        Ok(provider.max_wait(Duration::from_secs(self.seconds) + 2 * longest))
    }

    /// The limits as the upstream has them: it knows nothing of guards and shares.
    pub fn upstream_limits(&self) -> Outcome<Vec<Limit>> {
        self.limits.iter().map(|spec| Ok(spec.limit.clone().use_share(1.0)?)).collect()
    }
}

fn whole<T: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Result<T, String> {
    let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

fn spec(text: &str) -> Result<Spec, tollgate::LimitError> {
    Ok(Spec { text: text.to_owned(), limit: text.parse()? })
}

fn policy(text: &str) -> Result<Policy, String> {
    match text.split_once(':') {
        None if text == "wait" => Ok(Policy::Wait),
        None if text == "reject" => Ok(Policy::Reject),
        Some(("wait", time)) => duration(time).map(Policy::WaitAtMost),
        _ => Err("expected wait, reject or wait:DUR, e.g. wait:500ms".into()),
    }
}

fn trip(text: &str) -> Result<Trip, String> {
    let expected = || format!("expected how long and from when on, e.g. 2s@4s, not \"{text}\"");
    let (lasts, after) = text.split_once('@').ok_or_else(expected)?;
    let (lasts, after) =
        duration(lasts).and_then(|lasts| Ok((lasts, duration(after)?))).map_err(|_| expected())?;
    if lasts.is_zero() { Err(expected()) } else { Ok(Trip { lasts, after }) }
}

fn jitter(text: &str) -> Result<Jitter, String> {
    let expected = || format!("expected a range such as 5..50ms, not \"{text}\"");
    let (least, most) = text.split_once("..").ok_or_else(expected)?;
    let unit = most.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let least = duration(least).or_else(|_| duration(&format!("{least}{unit}"))).map_err(|_| expected())?;
    let most = duration(most).map_err(|_| expected())?;
    if least > most { Err(expected()) } else { Ok(Jitter { least, most }) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let micros = match &text[digits..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" | "min" => 60_000_000,
        _ => 0,
    };
    match text[..digits].parse::<u64>().ok().and_then(|count| count.checked_mul(micros)) {
        Some(time) if micros > 0 => Ok(Duration::from_micros(time)),
        _ => Err(format!("expected a whole number and us, ms, s or min, e.g. 10ms, not \"{text}\"")),
    }
}
