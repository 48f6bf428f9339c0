//! A store in memory that is some way off, counts its bookings, and can be out of reach or without a bell.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use tollgate::{
    Limiter, MemoryStore, Provider, Tollgate,
    ledger::{Answer, Call, Micros, Peek},
    store::{Agreed, Bell, Pending, Quota, Store, StoreError},
};

/// For one process: several of them may share what they stand for.
#[derive(Clone, Debug)]
pub struct Remote {
    shared: Arc<MemoryStore>,
    /// Each way.
    way: Duration,
    hears: bool,
    local: bool,
    pub calls: Arc<AtomicU64>,
    pub down: Arc<AtomicBool>,
}

impl Remote {
    pub fn new(way: Duration) -> Self {
        Self {
            shared: Arc::default(),
            way,
            hears: true,
            local: false,
            calls: Arc::default(),
            down: Arc::default(),
        }
    }

    /// In this very process: what is asked of it on the spot is not counted.
    pub fn here() -> Self {
        Self { local: true, ..Self::new(Duration::ZERO) }
    }

    /// The way of another process to the same state.
    pub fn another(&self) -> Self {
        Self { calls: Arc::default(), down: Arc::default(), ..self.clone() }
    }

    /// The same at some distance, each way.
    pub fn far(&self, way: Duration) -> Self {
        Self { way, local: false, ..self.another() }
    }

    pub fn deaf(self) -> Self {
        Self { hears: false, ..self }
    }

    pub fn calls(&self) -> u64 {
        self.calls.load(SeqCst)
    }

    pub fn out_of_reach(&self, down: bool) {
        self.down.store(down, SeqCst);
    }

    async fn pass(&self) -> Result<(), StoreError> {
        if !self.way.is_zero() {
            tokio::time::sleep(self.way).await;
        }
        match self.down.load(SeqCst) {
            true => Err(StoreError::unreachable("nobody is there")),
            false => Ok(()),
        }
    }

    /// A replica that uses it, and its limiter.
    pub fn replica(&self, limits: &[&str]) -> (Tollgate, Limiter) {
        self.replica_of(Provider::new("acme"), limits)
    }

    pub fn replica_of(&self, provider: Provider, limits: &[&str]) -> (Tollgate, Limiter) {
        let provider = limits.iter().fold(provider, |provider, limit| {
            provider.limit(limit.parse().unwrap_or_else(|error| panic!("{error}")))
        });
        let tollgate = Tollgate::builder().store(self.clone()).provider(provider).build();
        let tollgate = tollgate.unwrap_or_else(|error| panic!("{error}"));
        let limiter = tollgate.provider("acme").unwrap_or_else(|error| panic!("{error}"));
        (tollgate, limiter)
    }
}

impl Store for Remote {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        self.calls.fetch_add(1, SeqCst);
        Box::pin(async move {
            self.pass().await?;
            let answer = self.shared.book(quota, call).await;
            self.pass().await?;
            answer
        })
    }

    fn local(&self) -> Option<&MemoryStore> {
        self.local.then_some(&*self.shared)
    }

    fn pause<'a>(
        &'a self,
        provider: &'a Arc<str>,
        part: Option<&'a Arc<str>>,
        time: Micros,
    ) -> Pending<'a, Micros> {
        Box::pin(async move {
            self.pass().await?;
            let left = self.shared.pause(provider, part, time).await;
            self.pass().await?;
            left
        })
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        Box::pin(async move {
            self.pass().await?;
            let changed = self.shared.change(limit, text, number).await;
            self.pass().await?;
            changed
        })
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        self.shared.peek(quota)
    }

    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell> {
        self.hears.then(|| self.shared.listen(quota, member)).flatten()
    }
}
