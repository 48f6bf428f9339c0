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
    args::Jitter,
    clock::{Clock, Nanos},
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
}

/// One attempt on the wire, with its permit and what became of it. The report takes from here when the replicas
/// sent and when they could know of a refusal. (Redirect hops are seen by the upstream alone.)
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

/// When the task asked: an extension of its request.
#[derive(Clone, Copy)]
pub struct Asked(pub Nanos);

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
        let asked = extensions.get().map_or(granted, |Asked(asked)| *asked);
        let at = {
            let permits = &mut self.tally().permits;
            let waited = granted - asked;
            permits.push(Sent { granted, waited, sent: None, answered: None, status: None });
            permits.len() - 1
        };
        if let Some(Jitter { least, most }) = self.jitter {
            sleep(least + (most - least).mul_f64(fastrand::f64())).await;
        }
        self.tally().permits[at].sent = Some(self.clock.now());
        let response = next.run(request, extensions).await?;
        let sent = &mut self.tally().permits[at];
        (sent.status, sent.answered) = (Some(response.status().as_u16()), Some(self.clock.now()));
        Ok(response)
    }
}
