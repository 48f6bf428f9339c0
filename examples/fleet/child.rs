//! One replica: a process with its own limiter and its own connections.

use std::{
    error::Error as _,
    io::{Write, stdin, stdout},
    process::exit,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::{sync::oneshot, task::JoinSet, time::sleep};
use tollgate::{Error, Limiter, Permit, RedisStore, Tollgate};

use crate::{
    Outcome,
    args::{Args, Jitter, PROVIDER, Policy},
    clock::{Clock, Nanos, nanos},
};

/// The longest a loop sleeps after a refusal, and how long where nobody knows better.
const PAUSE: Duration = Duration::from_millis(10);

/// What a replica has seen; it tells the parent as one line of JSON.
#[derive(Default, Serialize, Deserialize)]
pub struct Tally {
    pub permits: Vec<Sent>,
    pub rejected: u64,
    pub store_errors: u64,
    pub send_errors: u64,
    pub late: u64,
    pub redis_calls: u64,
}

/// One attempt on the wire, with its permit and what became of it. Who sends again, or follows a redirect by a
/// request that the limiter has let through, records that as one more: the report takes from here when the
/// replicas sent and when they could know of a refusal. (A hop that the HTTP client takes by itself is unseen.)
#[derive(Serialize, Deserialize)]
pub struct Sent {
    pub granted: Nanos,
    pub waited: Nanos,
    /// Unless the run ended before that.
    pub sent: Option<Nanos>,
    /// When the head of the answer came, by this replica's clock; unless the run ended before that.
    pub answered: Option<Nanos>,
    /// Of the answer, unless the run ended before that.
    pub status: Option<u16>,
}

struct Replica {
    limiter: Limiter,
    http: reqwest::Client,
    url: String,
    number: u32,
    policy: Policy,
    jitter: Option<Jitter>,
    clock: Clock,
    /// Never held across an await.
    tally: Mutex<Tally>,
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
    let store = Arc::new(RedisStore::new(redis)?.prefix(&args.run));
    let tollgate = Tollgate::builder().store(store.clone()).provider(args.provider()?).build()?;
    let limiter = tollgate.provider(PROVIDER)?;
    let replica = Arc::new(Replica {
        limiter: limiter.clone(),
        http: client(args.tasks as usize)?,
        url: format!("{}/hit", upstream.trim_end_matches('/')),
        number,
        policy: args.policy,
        jitter: args.jitter,
        clock: Clock::new(),
        tally: Mutex::default(),
    });
    // Sent after this replica was announced to the store; the answer says that this is done.
    if let Err(error) = limiter.peek().await {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        eprintln!("replica {number}: {error}{cause}");
    }
    let go = told_to_go();
    say("ready")?;
    go.await?;

    let mut loops: JoinSet<()> = (0..args.tasks).map(|_| replica.clone().work()).collect();
    sleep(Duration::from_secs(args.seconds)).await;
    loops.shutdown().await;
    tollgate.shutdown().await;

    let mut tally = std::mem::take(&mut *replica.tally());
    (tally.late, tally.redis_calls) = (limiter.late(), store.calls());
    say(&serde_json::to_string(&tally)?)
}

impl Replica {
    async fn work(self: Arc<Self>) {
        loop {
            match self.acquire().await {
                Ok(permit) => self.send(permit).await,
                Err(error) if error.is_closed() => return,
                Err(error) if error.is_store() => {
                    self.tally().store_errors += 1;
                    sleep(PAUSE).await;
                }
                Err(error) => {
                    self.tally().rejected += 1;
                    sleep(error.retry_after().unwrap_or(PAUSE).min(PAUSE)).await;
                }
            }
        }
    }

    async fn acquire(&self) -> Result<Permit, Error> {
        match self.policy {
            Policy::Wait => self.limiter.acquire().await,
            Policy::Reject => self.limiter.acquire().or_reject().await,
            Policy::WaitAtMost(time) => self.limiter.acquire().wait_at_most(time).await,
        }
    }

    async fn send(&self, permit: Permit) {
        let granted = self.clock.now();
        let waited = nanos(permit.waited());
        let at = {
            let permits = &mut self.tally().permits;
            permits.push(Sent { granted, waited, sent: None, answered: None, status: None });
            permits.len() - 1
        };
        if let Some(Jitter { least, most }) = self.jitter {
            sleep(least + (most - least).mul_f64(fastrand::f64())).await;
        }
        self.tally().permits[at].sent = Some(self.clock.now());
        match self.get().await {
            Ok((status, answered)) => {
                let sent = &mut self.tally().permits[at];
                (sent.status, sent.answered) = (Some(status), Some(answered));
            }
            Err(_) => self.tally().send_errors += 1,
        }
    }

    /// The status, and when it came.
    async fn get(&self) -> reqwest::Result<(u16, Nanos)> {
        let response = self.http.get(&self.url).header("x-pod", self.number).send().await?;
        let answer = (response.status().as_u16(), self.clock.now());
        // A connection whose answer was not read to its end cannot be used again.
        response.bytes().await?;
        Ok(answer)
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn client(tasks: usize) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder().http1_only().no_proxy().tcp_nodelay(true).pool_max_idle_per_host(tasks).build()
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
