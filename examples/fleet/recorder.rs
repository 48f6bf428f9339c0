//! What a replica has seen, noted by a layer inside the tollgate: it sees each attempt after its permit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use http::Extensions;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use tollgate::{
    reqwest::{Request, Response},
    reqwest_middleware::{Middleware, Next, Result},
};

use crate::{
    chance::Drawn,
    clock::{Clock, Nanos},
    price::Price,
    values::Jitter,
};

/// What a replica has seen; it tells the parent as one line of JSON.
#[derive(Default, Serialize, Deserialize)]
pub struct Tally {
    pub permits: Vec<Sent>,
    pub rejected: u64,
    pub store_errors: u64,
    pub send_errors: u64,
    pub late: u64,
    pub hops: u64,
    pub redis_calls: u64,
    /// When the store had the limit that this replica has set.
    pub changed: Option<Nanos>,
    /// Loops that waited when the run ended, by class, and for how long.
    pub unserved: Vec<(usize, Nanos)>,
    /// The class of each loop that waits, and since when, by the loop's number.
    #[serde(skip)]
    waiting: Vec<Option<(usize, Nanos)>>,
}

/// One attempt on the wire, with its permit and what became of it. The report takes from here when the replicas
/// sent and when they could know of a refusal. (Redirect hops are seen by the upstream alone.)
#[derive(Serialize, Deserialize)]
pub struct Sent {
    /// Of its priority.
    pub class: usize,
    /// What it takes, and what was booked for it.
    pub real: Price,
    pub booked: Price,
    pub granted: Nanos,
    pub waited: Nanos,
    /// Unless the run ended before that.
    pub sent: Option<Nanos>,
    /// When the head of the answer came, by this replica's clock; unless the run ended before that.
    pub answered: Option<Nanos>,
    /// Of the answer, unless the run ended before that.
    pub status: Option<u16>,
    /// When its loop had read all of the answer, unless the run ended before that.
    pub ended: Option<Nanos>,
}

/// When which loop asked, and for what: an extension of its request.
#[derive(Clone)]
pub struct Asked {
    pub at: Nanos,
    pub task: usize,
    pub class: usize,
    pub drawn: Drawn,
}

/// Which permit it was: an extension of the answer.
#[derive(Clone, Copy)]
pub struct Noted(usize);

#[derive(Clone)]
pub struct Recorder {
    pub clock: Clock,
    /// Delays each request on its way.
    pub jitter: Option<Jitter>,
    /// Never locked across an await.
    tally: Arc<Mutex<Tally>>,
}

impl Recorder {
    pub fn new(clock: Clock, jitter: Option<Jitter>) -> Self {
        Self { clock, jitter, tally: Arc::default() }
    }

    /// A loop begins to wait.
    pub fn ask(&self, task: usize, class: usize, drawn: Drawn) -> Asked {
        let at = self.clock.now();
        self.waits(task, Some((class, at)));
        Asked { at, task, class, drawn }
    }

    /// It has got nothing.
    pub fn give_up(&self, task: usize) {
        self.waits(task, None);
    }

    /// A loop has read its answer to the end.
    pub fn end(&self, noted: Noted) {
        self.tally().permits[noted.0].ended = Some(self.clock.now());
    }

    /// What was seen, when all is over.
    pub fn take(&self) -> Tally {
        let mut tally = std::mem::take(&mut *self.tally());
        let now = self.clock.now();
        tally.unserved = tally.waiting.iter().flatten().map(|(class, at)| (*class, now - at)).collect();
        tally
    }

    fn waits(&self, task: usize, since: Option<(usize, Nanos)>) {
        let waiting = &mut self.tally().waiting;
        if waiting.len() <= task {
            waiting.resize(task + 1, None);
        }
        waiting[task] = since;
    }

    pub fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Middleware for Recorder {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let granted = self.clock.now();
        let Some(asked) = extensions.get::<Asked>().cloned() else {
            return next.run(request, extensions).await;
        };
        self.waits(asked.task, None);
        let at = {
            let permits = &mut self.tally().permits;
            let (class, waited) = (asked.class, granted - asked.at);
            let Drawn { real, booked } = asked.drawn;
            let (sent, answered, status, ended) = (None, None, None, None);
            permits.push(Sent { class, real, booked, granted, waited, sent, answered, status, ended });
            permits.len() - 1
        };
        if let Some(Jitter { least, most }) = self.jitter {
            sleep(least + (most - least).mul_f64(fastrand::f64())).await;
        }
        self.tally().permits[at].sent = Some(self.clock.now());
        let mut response = next.run(request, extensions).await?;
        let sent = &mut self.tally().permits[at];
        (sent.status, sent.answered) = (Some(response.status().as_u16()), Some(self.clock.now()));
        response.extensions_mut().insert(Noted(at));
        Ok(response)
    }
}
