//! The scripts in a real Redis, at moments handed in.

use std::time::Duration;

use tollgate::{
    ledger::{Call, Micros, Named, Peek, Reply},
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

fn texts(limits: &[Named]) -> Vec<String> {
    limits.iter().map(|limit| format!("text of {}", limit.name)).collect()
}

impl Machine for Scripts {
    fn book(&mut self, now: Micros, limits: &[Named], call: &Call) -> Reply {
        let texts = texts(limits);
        let reply = self.store.book_at(Some(now), "acme", limits, &texts, call);
        self.runtime.block_on(reply).expect("an answer")
    }

    fn pause(&mut self, now: Micros, time: Micros) -> Micros {
        self.runtime.block_on(self.store.pause_at(Some(now), "acme", time)).expect("an answer")
    }

    fn peek(&mut self, now: Micros, limits: &[Named]) -> Option<Peek> {
        let texts = texts(limits);
        let peek = self.store.peek_at(Some(now), "acme", limits, &texts);
        self.runtime.block_on(peek).expect("an answer").ok()
    }
}
