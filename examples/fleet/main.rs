//! The proof: real processes share one quota through a real Redis, and an upstream that counts for itself
//! tells how many requests arrived in which window.
//!
//! ```text
//! cargo run --release --example fleet -- --replicas 8 --limit 100/1s --tasks 50 --seconds 10
//! ```
//!
//! This process is upstream and judge; it starts itself once more for each replica.

mod args;
mod chance;
mod change;
mod child;
mod classes;
mod clock;
mod draw;
mod figures;
mod flights;
mod judge;
mod mix;
mod place;
mod plot;
mod price;
mod quota;
mod recorder;
mod redis;
mod replicas;
mod report;
mod rules;
mod title;
mod trip;
mod unsettled;
mod upstream;
mod values;

use std::{env, error::Error, ffi::OsString, process::ExitCode};

use self::{args::Args, quota::Quota, redis::Redis, report::Report, rules::Rules, upstream::Upstream};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args = Args::read();
    let outcome = match args.child {
        Some(number) => child::run(&args, number),
        None => prove(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fleet: {error}");
            ExitCode::FAILURE
        }
    }
}

fn prove(args: &Args) -> Outcome<()> {
    let limits = args.upstream_limits()?;
    let upstream = match args.upstream {
        Some(_) => None,
        None => {
            let quota = Quota::new(args.upstream_kind, &limits);
            let rules = Rules::new(quota, args.in_flight, args.trip, args.redirect_every);
            let units = args.costs.iter().map(|cost| cost.unit.as_str());
            Some(Upstream::start(rules, units, args.call_time)?)
        }
    };
    let redis = match args.redis {
        Some(_) => None,
        None => Some(Redis::start()?),
    };

    // The replicas get what we got, and where things are.
    let mut options: Vec<OsString> = env::args_os().skip(1).collect();
    let mut add = |name: &str, value: &str| options.extend([name.into(), value.into()]);
    add("--run", &format!("fleet-{}-{:04x}", std::process::id(), fastrand::u16(..)));
    if let Some(upstream) = &upstream {
        add("--upstream", &upstream.url);
    }
    if let Some(redis) = &redis {
        add("--redis", &redis.url);
    }
    let tallies = replicas::run(args, &options, upstream.as_ref())?;
    drop(redis);

    let log = upstream.map(|upstream| upstream.log());
    let (report, trace) = Report::new(args, &limits, &tallies, log);
    let table = draw::text(&report, &limits[0]);
    if let Some(file) = &args.plot {
        plot::draw(file, &trace, &limits[0])
            .map_err(|error| format!("cannot draw {}: {error}", file.display()))?;
    }
    if args.json {
        eprint!("{table}");
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{table}");
    }
    Ok(())
}
