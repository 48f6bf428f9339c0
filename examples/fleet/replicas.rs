//! The replicas as the parent sees them: started together, stopped whatever happens.

use std::{
    env,
    ffi::OsString,
    io::{IsTerminal, stderr},
    process::Stdio,
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    signal::unix::{SignalKind, signal},
    time::{interval, timeout},
};

use crate::{Outcome, args::Args, recorder::Tally, upstream::Upstream};

/// For everything that a healthy replica does within a second or two.
const PATIENCE: Duration = Duration::from_secs(20);

struct Replica {
    number: u32,
    /// Ends with it.
    _process: Child,
    /// Stays open: a replica whose input closes ends itself, should this process be killed.
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

/// Runs the fleet once.
#[tokio::main(flavor = "current_thread")]
pub async fn run(args: &Args, options: &[OsString], upstream: Option<&Upstream>) -> Outcome<Vec<Tally>> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        tallies = play(args, options, upstream) => tallies,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        _ = terminated.recv() => Err("terminated".into()),
    }
}

async fn play(args: &Args, options: &[OsString], upstream: Option<&Upstream>) -> Outcome<Vec<Tally>> {
    eprintln!("{}", args.title());
    let mut fleet = Vec::new();
    for number in 0..args.replicas {
        fleet.push(Replica::start(number, options)?);
    }
    for replica in &mut fleet {
        let answer = replica.answer(PATIENCE).await?;
        if answer != "ready" {
            return Err(format!("replica {} said \"{answer}\", not \"ready\"", replica.number).into());
        }
    }
    for replica in &mut fleet {
        replica.orders.write_all(b"go\n").await?;
    }
    watch(args.seconds, upstream).await;
    let mut tallies = Vec::new();
    for replica in &mut fleet {
        tallies.push(serde_json::from_str(&replica.answer(PATIENCE).await?)?);
    }
    Ok(tallies)
}

impl Replica {
    fn start(number: u32, options: &[OsString]) -> Outcome<Self> {
        let mut process = Command::new(env::current_exe()?)
            .args(options)
            .args(["--child", &number.to_string()])
            // A refusal is no failure: reqwest-middleware would take a backtrace of each.
            .env("RUST_LIB_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start replica {number}: {error}"))?;
        let (Some(orders), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("replica {number} has no pipes").into());
        };
        Ok(Self { number, _process: process, orders, answers: BufReader::new(answers).lines() })
    }

    async fn answer(&mut self, patience: Duration) -> Outcome<String> {
        match timeout(patience, self.answers.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => Err(format!("replica {} has ended too early", self.number).into()),
            Err(_) => Err(format!("replica {} does not answer", self.number).into()),
        }
    }
}

/// Shows each second how far it is: a bar, or lines where stderr is no terminal.
async fn watch(seconds: u64, upstream: Option<&Upstream>) {
    let bar = stderr().is_terminal().then(|| {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} s  {msg}");
        ProgressBar::new(seconds).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    });
    let mut ticks = interval(Duration::from_secs(1));
    ticks.tick().await;
    for second in 1..=seconds {
        ticks.tick().await;
        let counts = upstream.map_or_else(String::new, |upstream| {
            let (accepted, refused) = upstream.counts();
            format!("accepted {accepted}, refused {refused}")
        });
        match &bar {
            Some(bar) => {
                bar.set_message(counts);
                bar.set_position(second);
            }
            None => eprintln!("{}", format!("{second:>4} s  {counts}").trim_end()),
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}
