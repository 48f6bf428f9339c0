//! The command line.

use std::{path::PathBuf, process::exit, time::Duration};

use clap::Parser;
use tollgate::{Limit, Provider, Tollgate};

use crate::{Outcome, quota::UpstreamKind};

/// The name of the provider that all replicas share.
pub const PROVIDER: &str = "fleet";

/// Starts real processes that share one quota through Redis, and counts what arrives at the upstream.
#[derive(Parser)]
#[command(name = "fleet")]
pub struct Args {
    /// How many processes share the quota
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = |it: &str| whole::<u32>(it, 500))]
    pub replicas: u32,
    /// A limit of the upstream; may be given several times
    #[arg(long = "limit", value_name = "SPEC", default_value = "100/1s", value_parser = spec)]
    pub limits: Vec<Spec>,
    /// Closed loops in each replica: get a permit, send, again
    #[arg(long, value_name = "T", default_value_t = 50, value_parser = |it: &str| whole::<u32>(it, 9999))]
    pub tasks: u32,
    /// How long
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = |it: &str| whole::<u64>(it, 9999))]
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
        Ok(())
    }

    /// The provider as the replicas see it.
    pub fn provider(&self) -> Outcome<Provider> {
        let mut provider = Provider::new(PROVIDER).queue(self.tasks as usize);
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

fn whole<T: TryFrom<u64>>(text: &str, most: u64) -> Result<T, String> {
    let number = text.parse::<u64>().ok().filter(|number| (1..=most).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number from 1 to {most}"))
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
