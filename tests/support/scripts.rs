//! The scripts in a real Redis, at moments handed in.

use std::{sync::Arc, time::Duration};

use tollgate::{
    ledger::{Call, Claim, Micros, Named, Peek, Reply, Undecided},
    store::RedisStore,
};

use crate::{history::Machine, redis_server::PrivateRedis};

pub struct Scripts {
    store: RedisStore,
    runtime: tokio::runtime::Runtime,
    look: redis::Connection,
}

impl Scripts {
    pub fn on(redis: &PrivateRedis) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        // Long, since the machine may be busy.
        let store = RedisStore::new(&redis.url()).expect("a URL").timeout(Duration::from_secs(20));
        Self { store, runtime, look: redis.look() }
    }

    /// An empty Redis.
    pub fn forget(&mut self) {
        redis::cmd("FLUSHALL").exec(&mut self.look).expect("FLUSHALL");
    }
}

impl Machine for Scripts {
    fn book(&mut self, now: Micros, limits: &[Named], call: &Call) -> Reply {
        let reply = self.store.book_at(Some(now), "acme", limits, call);
        self.runtime.block_on(reply).expect("an answer")
    }

    fn pause(&mut self, now: Micros, part: Option<&Arc<str>>, time: Micros) -> Micros {
        let pause = self.store.pause_at(Some(now), "acme", part.map(|part| &**part), time);
        self.runtime.block_on(pause).expect("an answer")
    }

    fn peek(&mut self, now: Micros, limits: &[Named]) -> Result<Peek, Undecided> {
        let peek = self.store.peek_at(Some(now), "acme", limits, &[]);
        self.runtime.block_on(peek).expect("an answer")
    }

    fn set(&mut self, now: Micros, claim: &Claim, text: &str, number: Option<i64>) -> String {
        let set = self.store.change_at(Some(now), "acme", claim, text, number);
        self.runtime.block_on(set).expect("an answer")
    }
}
