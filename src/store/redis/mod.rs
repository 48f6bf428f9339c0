//! State in Redis, shared by all replicas.

mod ear;
mod link;
mod script;
mod wire;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{
            AtomicI64, AtomicU64,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Duration,
};

use ::redis::{Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, aio::ConnectionLike};

use self::{
    ear::Ear,
    link::{Given, Link, Own, Wire},
    script::Script,
    wire::{Request, Subject},
};
use super::{Agreed, Bell, Pending, Quota, Store, StoreError, bell::Bells};
use crate::{
    clock::Clock,
    ledger::{Answer, Call, Claim, Micros, Named, Peek, Reply, Undecided},
};

/// State in Redis, shared by every process that uses the same server, prefix and provider name.
///
/// Each decision is one script call, judged by the server's clock. Redis 6.2 or later, or Valkey; no modules.
/// All keys of a provider carry one hash tag, so a cluster works as well.
///
/// ```no_run
/// use std::time::Duration;
/// use tollgate::RedisStore;
///
/// let store = RedisStore::new("redis://127.0.0.1")?
///     .prefix("staging")
///     .timeout(Duration::from_millis(100));
/// # Ok::<(), tollgate::StoreError>(())
/// ```
///
/// # Keys
///
/// `PREFIX:v1:{provider}:NAME`. The control hash, `tollgate:v1:{acme}:control`, lives for 7 days after its last
/// use, and tells in `limit:requests:60s` how the replicas have that limit configured. Each limit has a hash,
/// `tollgate:v1:{acme}:requests:60s`, with the limit as text in its field `limit`, and a rolling window has its log
/// in a list beside it, `..:log`. Those live until they would say nothing, and a second longer. Who uses a limit
/// stands in `..:crowd`, which slots lie far ahead in `..:far`, what each gate was told last in
/// `tollgate:v1:{acme}:told:ID`, for a minute or two each; the pause of a part of the provider in
/// `tollgate:v1:{acme}:pause:PART`, until an hour after its end. The name of a limit in a scope goes on with that:
/// `tollgate:v1:{acme}:requests:1s:POST /v1/search/{index}:tenant=HASH`, of the value a keyed hash.
///
/// A user with few rights needs the keys `~PREFIX:v1:*` and the commands `evalsha`, `eval`, `time`, `get`, `set`,
/// `hgetall`, `hmget`, `hset`, `hdel`, `llen`, `lrange`, `ltrim`, `rpush`, `zadd`, `zcount`, `zscore`, `zrange`,
/// `zrem`, `zremrangebyscore`, `del` and `pexpire`; for the bell also the channels
/// `&PREFIX:v1:*` and the commands `publish` and `subscribe`. Without these only the bell is missing.
///
/// # The bell
///
/// A pause, or a limit that was set, is told to the others on the channel `PREFIX:v1:{provider}:bell`, so that they stop
/// in the time a message takes. It carries nothing that must arrive: without it they stop when the store next answers them, and at most a
/// horizon (50 ms, or two round trips) later. A store made with [`new`](Self::new) hears it on its own connection, in
/// RESP3; if the server does not speak that, or the URL says `protocol=resp2`, or the connection is a given one,
/// [`bell`](Self::bell) hears it on a second one.
///
/// # Runtimes
///
/// Calls need a tokio runtime with time and I/O enabled. The store itself belongs to none: when the runtime of
/// its connection has ended, the next call opens another one.
pub struct RedisStore {
    link: Link,
    bells: Arc<Bells>,
    /// What hears them on a connection of its own.
    ear: Option<Ear>,
    prefix: String,
    timeout: Duration,
    clock: Clock,
    /// How far the server's clock is ahead of ours, as last heard.
    ahead: AtomicI64,
    calls: AtomicU64,
}

impl RedisStore {
    /// Redis at a URL: `redis://[user:password@]host[:port][/database]`, `unix:///path`, and `rediss://` if the
    /// `redis` crate is built with TLS. Connects on first use, so it needs no runtime and no server yet.
    ///
    /// # Errors
    ///
    /// The URL cannot be read.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let bells = Arc::<Bells>::default();
        Ok(Self::on(Link::Own(Box::new(Own::new(url, bells.clone())?)), bells))
    }

    /// Redis on a connection made elsewhere: multiplexed, a `ConnectionManager`, a cluster connection. Coming
    /// back after a failure is then its business.
    ///
    /// ```no_run
    /// # async fn example() -> redis::RedisResult<()> {
    /// let client = redis::Client::open("redis://127.0.0.1")?;
    /// let store = tollgate::RedisStore::from_connection(client.get_connection_manager().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_connection<C>(connection: C) -> Self
    where
        C: ConnectionLike + Clone + Send + Sync + 'static,
    {
        Self::on(Link::Given(Box::new(Given(connection))), Arc::default())
    }

    fn on(link: Link, bells: Arc<Bells>) -> Self {
        Self {
            link,
            bells,
            ear: None,
            prefix: "tollgate".to_owned(),
            timeout: Duration::from_millis(250),
            clock: Clock::new(),
            ahead: AtomicI64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// What all keys begin with, to keep two environments apart in one Redis. Default: `tollgate`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The longest that one call may take, connecting included; after that Redis counts as unreachable.
    /// Default: 250 ms.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Hears the bell on a second connection, to the server at this URL: for connections made elsewhere, and for
    /// servers without RESP3. It connects with the first call, by itself again when it breaks, and ends with the
    /// store.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let url = "redis://127.0.0.1";
    /// let manager = redis::Client::open(url)?.get_connection_manager().await?;
    /// let store = tollgate::RedisStore::from_connection(manager).bell(url)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The URL cannot be read.
    pub fn bell(self, url: &str) -> Result<Self, StoreError> {
        let ear = Ear::new(url, self.bells.clone())?;
        Ok(Self { ear: Some(ear), ..self.no_bell() })
    }

    /// Hears no bell: a pause of another replica is learned from the store's answers alone.
    #[must_use]
    pub fn no_bell(mut self) -> Self {
        if let Link::Own(own) = &mut self.link {
            own.no_bell();
        }
        self.ear = None;
        self
    }

    /// How many commands this store has sent so far, repeated ones included; the greeting of a new connection
    /// and subscriptions are not counted.
    pub fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    /// One booking at a moment of the caller's choice; `None`: by the server's clock.
    #[doc(hidden)]
    pub async fn book_at(
        &self,
        now: Option<Micros>,
        provider: &str,
        limits: &[Named],
        call: &Call,
    ) -> Result<Reply, StoreError> {
        let request = self.subject(provider, limits).book(now, call)?;
        wire::booked(&self.run(&script::BOOK, &request).await?, call, limits.len())
    }

    /// One pause at a moment of the caller's choice; `None`: by the server's clock.
    #[doc(hidden)]
    pub async fn pause_at(
        &self,
        now: Option<Micros>,
        provider: &str,
        part: Option<&str>,
        time: Micros,
    ) -> Result<Micros, StoreError> {
        let request = self.subject(provider, &[]).pause(now, part, time);
        wire::paused(&self.run(&script::PAUSE, &request).await?)
    }

    /// One change of a limit at a moment of the caller's choice; `None`: by the server's clock. Tells the accord.
    #[doc(hidden)]
    pub async fn change_at(
        &self,
        now: Option<Micros>,
        provider: &str,
        claim: &Claim,
        text: &str,
        number: Option<i64>,
    ) -> Result<String, StoreError> {
        let request = self.subject(provider, &[]).change(now, claim, text, number);
        wire::changed(&self.run(&script::LIMIT, &request).await?)
    }

    /// One look at a moment of the caller's choice; `None`: by the server's clock.
    #[doc(hidden)]
    pub async fn peek_at(
        &self,
        now: Option<Micros>,
        provider: &str,
        limits: &[Named],
        parts: &[Arc<str>],
    ) -> Result<Result<Peek, Undecided>, StoreError> {
        let request = self.subject(provider, limits).peek(now, parts)?;
        wire::peeked(&self.run(&script::PEEK, &request).await?, limits.len())
    }

    fn subject<'a>(&'a self, provider: &'a str, limits: &'a [Named]) -> Subject<'a> {
        Subject { prefix: &self.prefix, provider, limits }
    }

    async fn run(&self, script: &Script, request: &Request) -> Result<String, StoreError> {
        if let Some(ear) = &self.ear {
            ear.attend();
        }
        let used = AtomicU64::new(0);
        match tokio::time::timeout(self.timeout, self.attempt(script, request, &used)).await {
            Ok(result) => result.map_err(|error| self.explain(&error)),
            Err(_) => {
                // Its peer may be gone without a word; who waits on it would wait for minutes.
                if let Link::Own(own) = &self.link {
                    own.discard(used.load(SeqCst));
                }
                let (address, timeout) = (self.address(), self.timeout);
                Err(StoreError::unreachable(format!("no answer from Redis ({address}) within {timeout:?}")))
            }
        }
    }

    /// A connection that was open before may be dead: then once more on a fresh one. Nothing is done twice by
    /// that: bookings have numbers, a pause only moves forward.
    async fn attempt(&self, script: &Script, request: &Request, used: &AtomicU64) -> RedisResult<String> {
        let mut repeated = false;
        loop {
            let result = match &self.link {
                Link::Given(wire) => self.evaluate(wire.as_ref(), script, request).await,
                Link::Own(own) => {
                    let (ordinal, connection) = own.connection().await?;
                    used.store(ordinal, SeqCst);
                    let result = self.evaluate(&Given(connection), script, request).await;
                    if result.as_ref().is_err_and(RedisError::is_unrecoverable_error) {
                        own.discard(ordinal);
                    }
                    result
                }
            };
            match result {
                Err(error) if error.is_unrecoverable_error() && !repeated => repeated = true,
                result => return result,
            }
        }
    }

    /// By the SHA; by the text where the server does not know it yet: one trip, to the right node.
    async fn evaluate(&self, wire: &dyn Wire, script: &Script, request: &Request) -> RedisResult<String> {
        let result = self.send(wire, &command("EVALSHA", script.sha(), request)).await;
        match result {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send(wire, &command("EVAL", script.text(), request)).await
            }
            result => result,
        }
    }

    async fn send(&self, wire: &dyn Wire, command: &Cmd) -> RedisResult<String> {
        self.calls.fetch_add(1, Relaxed);
        wire.send(command).await
    }

    fn explain(&self, error: &RedisError) -> StoreError {
        let address = self.address();
        if error.is_io_error() || error.kind() == ErrorKind::ClusterConnectionNotFound {
            return StoreError::unreachable(format!("cannot reach Redis ({address}): {error}"));
        }
        let error = error.to_string();
        let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
        let keys = format!("{}:v1:*", self.prefix);
        let remedy = if has(&["WRONGTYPE"]) {
            format!("; one of the keys {keys} is used for something else: remove it or choose another prefix")
        } else if has(&["NOPERM", "NoPerm", "ACL", "can't run this command", "can't access"]) {
            format!("; allow the user the keys ~{keys} and the commands listed at RedisStore")
        } else if has(&["NOAUTH", "WRONGPASS", "AuthenticationFailed", "unauthenticated"]) {
            "; check user and password".to_owned()
        } else if has(&["READONLY", "ReadOnly"]) {
            "; this is a replica: connect to the primary".to_owned()
        } else if has(&["OOM"]) {
            "; its memory is full: raise maxmemory".to_owned()
        } else {
            String::new()
        };
        StoreError::answer(format!("Redis ({address}) answered: {error}{remedy}"))
    }

    fn address(&self) -> String {
        match &self.link {
            Link::Own(own) => own.address(),
            Link::Given(_) => "on the given connection".to_owned(),
        }
    }

    async fn learn(&self, quota: &Quota, accords: &[String]) -> Result<(), StoreError> {
        for (limit, change) in quota.learn(accords) {
            self.change(limit, &change.text, Some(change.number)).await?;
        }
        Ok(())
    }

    /// The server's time as far as known, for the resets of calendars.
    fn around(&self) -> Micros {
        self.clock.steady().saturating_add(self.ahead.load(Relaxed))
    }

    fn heard(&self, now: Micros) -> Micros {
        self.ahead.store(now - self.clock.steady(), Relaxed);
        now
    }
}

fn command(name: &str, script: &str, request: &Request) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(request.keys.len()).arg(&request.keys).arg(&request.args);
    command
}

/// Without the URL, in which the password stands.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.address())
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Store for RedisStore {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        Box::pin(async move {
            let mut around = self.around();
            // Once more if the resets told did not lie around the server's time, which it then says.
            for _ in 0..2 {
                let limits = quota.rules(around);
                match self.book_at(None, &quota.provider, &limits, call).await? {
                    Reply::Booked(answer) => {
                        self.heard(answer.now);
                        return Ok(Some(answer));
                    }
                    Reply::Undecided(Undecided::Stale(now)) => around = self.heard(now),
                    Reply::Undecided(Undecided::Changed(_, accords)) => {
                        return self.learn(quota, &accords).await.map(|()| None);
                    }
                }
            }
            Err(untold())
        })
    }

    fn pause<'a>(
        &'a self,
        provider: &'a Arc<str>,
        part: Option<&'a Arc<str>>,
        time: Micros,
    ) -> Pending<'a, Micros> {
        Box::pin(self.pause_at(None, provider, part.map(|part| &**part), time))
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        Box::pin(async move {
            let accord = self.change_at(None, limit.provider(), &limit.claim().0, text, number).await?;
            let _ = limit.learn(&accord);
            Ok(())
        })
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        Box::pin(async move {
            let mut around = self.around();
            // Limits may have changed as well, and change again meanwhile.
            for _ in 0..4 {
                let limits = quota.rules(around);
                match self.peek_at(None, &quota.provider, &limits, &quota.parts).await? {
                    Ok(peek) => {
                        self.heard(peek.now);
                        return Ok(peek);
                    }
                    Err(Undecided::Stale(now)) => around = self.heard(now),
                    Err(Undecided::Changed(_, accords)) => self.learn(quota, &accords).await?,
                }
            }
            Err(untold())
        })
    }

    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell> {
        let hears = self.ear.is_some() || matches!(&self.link, Link::Own(own) if own.can_hear());
        hears.then(|| self.bells.listen(&self.subject(&quota.provider, &[]).key("bell"), member))
    }
}

fn untold() -> StoreError {
    StoreError::answer("the resets of a calendar limit cannot be told around the server's time")
}
