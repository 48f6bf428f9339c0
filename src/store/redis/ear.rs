//! The bell on a second connection, for those whose first one cannot bring it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::redis::Client;
use futures_util::StreamExt;
use tokio::task::JoinHandle;

use super::link::{PATIENCE, client};
use crate::store::{StoreError, bell::Bells};

/// Between two attempts to connect: the first, and what it doubles up to while they fail.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(8));

/// A task that listens, on the runtime of whoever called last when there was none. It ends with the store.
pub(super) struct Ear {
    client: Client,
    bells: Arc<Bells>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Ear {
    /// Reads the URL and connects to nothing.
    pub(super) fn new(url: &str, bells: Arc<Bells>) -> Result<Self, StoreError> {
        Ok(Self { client: client(url)?, bells, task: Mutex::default() })
    }

    /// Sees to it that somebody listens: the task may have ended with its runtime.
    pub(super) fn attend(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(listen(self.client.clone(), self.bells.clone())));
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

async fn listen(client: Client, bells: Arc<Bells>) {
    let mut pause = PAUSES.0;
    loop {
        // Whatever goes wrong: only the bell is missing meanwhile.
        let heard = hear(&client, &bells).await.is_some();
        pause = if heard { PAUSES.0 } else { (2 * pause).min(PAUSES.1) };
        tokio::time::sleep(pause).await;
    }
}

/// Until the connection breaks; `None`: it did not come to that.
async fn hear(client: &Client, bells: &Bells) -> Option<()> {
    let connecting = tokio::time::timeout(PATIENCE, client.get_async_pubsub());
    let (mut sink, mut messages) = connecting.await.ok()?.ok()?.split();
    let (mut hung, mut known) = (bells.names(), 0);
    loop {
        let names: Vec<_> = hung.borrow_and_update().iter().skip(known).cloned().collect();
        if !names.is_empty() {
            known += names.len();
            tokio::time::timeout(PATIENCE, sink.subscribe(names)).await.ok()?.ok()?;
        }
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => bells.heard(message.get_channel_name(), message.get_payload_bytes()),
                None => return Some(()),
            },
            _ = hung.changed() => {}
        }
    }
}
