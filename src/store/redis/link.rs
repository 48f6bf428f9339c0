//! The way to Redis: a connection made on first use, and made anew when it turns out to be dead.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};

use ::redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, Msg, ProtocolVersion, PushInfo, RedisError, RedisResult,
    aio::ConnectionLike, aio::MultiplexedConnection,
};

use crate::store::{StoreError, bell::Bells};

/// The longest that asking for a bell may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

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
    /// The same in RESP3, which brings the bell on the same connection; not if the URL asks for RESP2.
    hearing: Option<Client>,
    /// The server has refused RESP3.
    refused: AtomicBool,
    bells: Arc<Bells>,
    /// Never locked across an await.
    open: Mutex<Option<Open>>,
    opened: AtomicU64,
}

/// The connection in use.
struct Open {
    ordinal: u64,
    connection: MultiplexedConnection,
    /// Bells that it was asked to hear; `None`: it cannot.
    heard: Option<usize>,
}

impl Own {
    /// Reads the URL and connects to nothing.
    pub(super) fn new(url: &str, bells: Arc<Bells>) -> Result<Self, StoreError> {
        let client = client(url)?;
        let info = client.get_connection_info();
        let asked = redis::parse_redis_url(url).is_some_and(|url| {
            // A choice made in the URL stands.
            url.query_pairs().any(|(name, _)| name == "protocol")
        });
        let hearing = if !asked {
            let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
            Client::open(info.clone().set_redis_settings(settings)).ok()
        } else {
            (info.redis_settings().protocol() != ProtocolVersion::RESP2).then(|| client.clone())
        };
        let (open, opened) = (Mutex::default(), AtomicU64::new(0));
        Ok(Self { client, hearing, refused: AtomicBool::new(false), bells, open, opened })
    }

    pub(super) fn address(&self) -> String {
        self.client.get_connection_info().addr().to_string()
    }

    pub(super) fn can_hear(&self) -> bool {
        self.hearing.is_some()
    }

    pub(super) fn no_bell(&mut self) {
        self.hearing = None;
    }

    /// The connection in use, else a new one.
    pub(super) async fn connection(&self) -> RedisResult<(u64, MultiplexedConnection)> {
        if let Some(open) = &mut *self.open() {
            return Ok(self.hand_out(open));
        }
        let (connection, hears) = self.connect().await?;
        let ordinal = self.opened.fetch_add(1, Relaxed) + 1;
        let fresh = Open { ordinal, connection, heard: hears.then_some(0) };
        Ok(self.hand_out(self.open().get_or_insert(fresh)))
    }

    /// The next call opens another one. A newer one stays.
    pub(super) fn discard(&self, ordinal: u64) {
        self.open().take_if(|open| open.ordinal == ordinal);
    }

    /// In RESP3 if the server speaks it, and whether it does.
    async fn connect(&self) -> RedisResult<(MultiplexedConnection, bool)> {
        if let Some(client) = self.hearing.as_ref().filter(|_| !self.refused.load(SeqCst)) {
            let bells = self.bells.clone();
            let ring = move |push: PushInfo| {
                let message = Msg::from_push_info(push).ok_or(())?;
                bells.heard(message.get_channel_name(), message.get_payload_bytes());
                Ok::<_, ()>(())
            };
            match client.get_multiplexed_async_connection_with_config(&config().set_push_sender(ring)).await {
                Ok(connection) => return Ok((connection, true)),
                Err(error) if error.is_connection_refusal() => return Err(error),
                // Whatever else is wrong the older protocol says as well; if that works, it was RESP3.
                Err(error) => _ = self.refused.fetch_or(is_refusal(&error), SeqCst),
            }
        }
        Ok((self.client.get_multiplexed_async_connection_with_config(&config()).await?, false))
    }

    /// The connection in use, which is asked to hear the bells that are new. Nobody waits for that, and if it is
    /// refused only the bells are missing.
    fn hand_out(&self, open: &mut Open) -> (u64, MultiplexedConnection) {
        if let Some(heard) = &mut open.heard {
            let names = self.bells.names_after(*heard);
            if !names.is_empty() {
                *heard += names.len();
                let mut connection = open.connection.clone();
                tokio::spawn(
                    async move { tokio::time::timeout(PATIENCE, connection.subscribe(names)).await },
                );
            }
        }
        (open.ordinal, open.connection.clone())
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a URL. It is not repeated in the error: the password may be part of it.
pub(super) fn client(url: &str) -> Result<Client, StoreError> {
    Client::open(url).map_err(|_| {
        StoreError::answer(if url.starts_with("rediss:") {
            "invalid Redis URL: rediss:// needs the crate redis with a TLS feature, e.g. tokio-rustls-comp"
        } else {
            "invalid Redis URL: write redis://[user:password@]host[:port][/database]"
        })
    })
}

/// Whoever waits has a limit of its own.
fn config() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None)
}

/// Whether the server will never speak RESP3; a wrong password may be put right.
fn is_refusal(error: &RedisError) -> bool {
    let text = error.to_string().to_ascii_lowercase();
    error.kind() == ErrorKind::RESP3NotSupported
        || text.contains("noproto")
        || text.contains("unknown command")
        || text.contains("not supported")
        || text.contains("unsupported")
}
