//! One replica: a process with its own client and its own connections.

use std::{
    error::Error as _,
    io::{Write, stdin, stdout},
    process::exit,
    sync::Arc,
    time::Duration,
};

use tokio::{sync::oneshot, task::JoinSet, time::sleep};
use tollgate::{
    Error, RedisStore, RequestBuilderExt, Tollgate, reqwest,
    reqwest_middleware::{self, ClientBuilder, ClientWithMiddleware},
};

use crate::{
    Outcome,
    args::{Args, PROVIDER},
    chance::{Cost, Drawn},
    clock::Clock,
    mix::{CLASSES, HIGH, priority},
    price,
    recorder::{Noted, Recorder},
    values::{Change, Policy},
};

/// The longest a loop sleeps after a refusal, and how long where nobody knows better.
const PAUSE: Duration = Duration::from_millis(10);

struct Replica {
    http: ClientWithMiddleware,
    url: String,
    number: u32,
    policy: Policy,
    costs: Vec<Cost>,
    estimate_off: f64,
    think: Duration,
    recorder: Recorder,
}

/// Runs replica `number` until its time is over.
pub fn run(args: &Args, number: u32) -> Outcome<()> {
    // Looks at its sockets often: else the first request of a cold burst waits until all have been begun.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().event_interval(4).build()?;
    runtime.block_on(replica(args, number))
}

async fn replica(args: &Args, number: u32) -> Outcome<()> {
    let (Some(redis), Some(upstream)) = (&args.redis, &args.upstream) else {
        return Err("a child needs --redis and --upstream".into());
    };
    let store = RedisStore::new(redis)?.prefix(&args.run);
    let store = Arc::new(if args.no_bell { store.no_bell() } else { store });
    let tollgate = Tollgate::builder().store(store.clone()).provider(args.provider()?).build()?;
    let limiter = tollgate.provider(PROVIDER)?;
    let builder = reqwest::Client::builder().http1_only().no_proxy().tcp_nodelay(true);
    let tasks = args.tasks_of(number);
    let client = tollgate.client(builder.pool_max_idle_per_host(tasks.iter().sum::<u32>() as usize))?;
    let recorder = Recorder::new(Clock::new(), args.jitter);
    let replica = Arc::new(Replica {
        http: ClientBuilder::from_client(client).with(recorder.clone()).build(),
        url: format!("{}/hit", upstream.trim_end_matches('/')),
        number,
        policy: args.policy,
        costs: args.costs.clone(),
        estimate_off: args.estimate_off,
        think: args.think,
        recorder: recorder.clone(),
    });
    // Sent after this replica was announced to the store; the answer says that this is done.
    if let Err(error) = limiter.peek().await {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        eprintln!("replica {number}: {error}{cause}");
    }
    let go = told_to_go();
    say("ready")?;
    go.await?;

    let classes = (0..CLASSES).flat_map(|class| std::iter::repeat_n(class, tasks[class] as usize));
    let mut loops: JoinSet<()> =
        classes.enumerate().map(|(task, class)| replica.clone().work(task, class)).collect();
    if let Some(Change { limit, after }) = args.change.as_ref().filter(|_| number == 0) {
        let (limit, after, recorder) = (args.guarded(limit)?, *after, recorder.clone());
        loops.spawn(async move {
            sleep(after).await;
            match limiter.set_limit(limit).await {
                Ok(()) => recorder.tally().changed = Some(recorder.clock.now()),
                Err(error) => eprintln!("replica 0: the limit was not set: {error}"),
            }
        });
    }
    sleep(Duration::from_secs(args.seconds)).await;
    loops.shutdown().await;
    tollgate.shutdown().await;

    let mut tally = recorder.take();
    let counts = tollgate.provider(PROVIDER)?.counts();
    (tally.late, tally.hops, tally.redis_calls) = (counts.late, counts.hops, store.calls());
    say(&serde_json::to_string(&tally)?)
}

impl Replica {
    async fn work(self: Arc<Self>, task: usize, class: usize) {
        loop {
            if class == HIGH && !self.think.is_zero() {
                sleep(self.think.mul_f64(0.5 + fastrand::f64())).await;
            }
            let Err(error) = self.get(task, class).await else { continue };
            self.recorder.give_up(task);
            match Error::find(&error) {
                Some(error) if error.is_closed() => return,
                Some(error) if error.is_store() => {
                    self.recorder.tally().store_errors += 1;
                    sleep(PAUSE).await;
                }
                Some(error) => {
                    self.recorder.tally().rejected += 1;
                    sleep(error.retry_after().unwrap_or(PAUSE).min(PAUSE)).await;
                }
                None => self.recorder.tally().send_errors += 1,
            }
        }
    }

    async fn get(&self, task: usize, class: usize) -> reqwest_middleware::Result<()> {
        let drawn = Drawn::new(&self.costs, self.estimate_off);
        let mut request = self.http.get(&self.url).header("x-pod", self.number).priority(priority(class));
        for (unit, amount) in &drawn.real.0 {
            request = request.header(price::header(unit), *amount);
        }
        for (unit, amount) in &drawn.booked.0 {
            request = request.cost(unit, *amount);
        }
        let request = match self.policy {
            Policy::Wait => request,
            Policy::Reject => request.or_reject(),
            Policy::WaitAtMost(time) => request.wait_at_most(time),
        };
        let response = request.with_extension(self.recorder.ask(task, class, drawn)).send().await?;
        let noted = response.extensions().get::<Noted>().copied();
        // A connection whose answer was not read to its end cannot be used again.
        response.bytes().await?;
        noted.into_iter().for_each(|noted| self.recorder.end(noted));
        Ok(())
    }
}

/// Resolves at the parent's word. When its end of the pipe closes, however it came to that, so do we.
fn told_to_go() -> oneshot::Receiver<()> {
    let (go, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut lines = stdin().lines();
        if lines.next().is_some_and(|line| line.is_ok_and(|line| line == "go")) {
            // Nobody listens only if the replica has failed already.
            let _ = go.send(());
            lines.next();
        }
        exit(1);
    });
    told
}

fn say(line: &str) -> Outcome<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
