//! The way to Redis: a connection made on first use, and made anew when it turns out to be dead.

use std::{
    pin::Pin,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use ::redis::{
    AsyncConnectionConfig, Client, Cmd, RedisResult, aio::ConnectionLike, aio::MultiplexedConnection,
};

use crate::store::StoreError;

pub(super) type Sent<'a> = Pin<Box<dyn Future<Output = RedisResult<String>> + Send + 'a>>;

/// Something that commands can be sent on.
pub(super) trait Wire: Send + Sync {
    fn send<'a>(&'a self, command: &'a Cmd) -> Sent<'a>;
}

/// A connection of the caller, which knows by itself how to come back.
pub(super) struct Given<C>(pub(super) C);

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Wire for Given<C> {
    fn send<'a>(&'a self, command: &'a Cmd) -> Sent<'a> {
        let mut connection = self.0.clone();
        Box::pin(async move { command.query_async(&mut connection).await })
    }
}

pub(super) enum Link {
    Own(Box<Own>),
    Given(Box<dyn Wire>),
}

/// A server by its address. What drives a connection lives on the runtime that opened it, and dies with it;
/// so nothing here is more than a guess that has to be tried.
pub(super) struct Own {
    client: Client,
    /// The connection in use and its ordinal. Never locked across an await.
    open: Mutex<Option<(u64, MultiplexedConnection)>>,
    opened: AtomicU64,
}

impl Own {
    /// Reads the URL and connects to nothing.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        // It is not repeated in the error: the password may be part of it.
        let client = Client::open(url).map_err(|_| {
            StoreError::answer(if url.starts_with("rediss:") {
                "invalid Redis URL: rediss:// needs the crate redis with a TLS feature, e.g. tokio-rustls-comp"
            } else {
                "invalid Redis URL: write redis://[user:password@]host[:port][/database]"
            })
        })?;
        Ok(Self { client, open: Mutex::default(), opened: AtomicU64::new(0) })
    }

    pub(super) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    /// The connection in use, else a new one.
    pub(super) async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        if let Some(open) = self.open().clone() {
            return Ok(open);
        }
        // Whoever waits has a limit of its own.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let fresh = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        let ordinal = self.opened.fetch_add(1, Relaxed) + 1;
        Ok(self.open().get_or_insert((ordinal, fresh)).clone())
    }

    /// The next call opens another one. A newer one stays.
    pub(super) fn discard(&self, ordinal: u64) {
        self.open().take_if(|(open, _)| *open == ordinal);
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Option<(u64, MultiplexedConnection)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
