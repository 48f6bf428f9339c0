//! The store's answer gets lost, and nobody asks again soon: what was carried out is carried out twice, or a gate waits
//! for ever for a caller that never comes.

#![cfg(feature = "redis")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use tollgate::{
    Limiter, MemoryStore, Provider, RedisStore, Scope, Tollgate,
    ledger::{Answer, Call, Micros, Peek},
    store::{Agreed, Bell, Pending, Quota, Store},
};

/// Carries everything out, and does not always say so.
#[derive(Default)]
struct Losing {
    memory: MemoryStore,
    loses: AtomicBool,
    calls: Mutex<Vec<Call>>,
}

impl Store for Losing {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        Box::pin(async move {
            self.calls.lock().expect("no panic").push(call.clone());
            let answer = self.memory.book(quota, call).await;
            let lost = self.loses.load(SeqCst);
            if lost { Err(RedisStore::new("nowhere").expect_err("no URL")) } else { answer }
        })
    }

    fn pause<'a>(
        &'a self,
        provider: &'a Arc<str>,
        part: Option<&'a Arc<str>>,
        time: Micros,
    ) -> Pending<'a, Micros> {
        self.memory.pause(provider, part, time)
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        self.memory.change(limit, text, number)
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        self.memory.peek(quota)
    }

    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell> {
        self.memory.listen(quota, member)
    }
}

fn losing(limit: &str) -> (Arc<Losing>, Limiter) {
    let store = Arc::new(Losing::default());
    let provider =
        Provider::new("acme").limit_in(Scope::all().each("tenant"), limit.parse().expect("a limit"));
    let tollgate = Tollgate::builder().store(store.clone()).provider(provider).build().expect("built");
    (store, tollgate.provider("acme").expect("there"))
}

async fn secs(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_given_back_twice() {
    // The store remembers for a minute what it has told.
    for (pause, repeated) in [(1, true), (29, true), (30, false), (59, false), (61, false), (3_600, false)] {
        let (store, limiter) = losing("3/366day unpaced");
        let permits = [limiter.acquire().await.expect("three"), limiter.acquire().await.expect("two")];
        store.loses.store(true, SeqCst);
        let [back, used] = permits;
        back.give_back();
        secs(pause).await;
        store.loses.store(false, SeqCst);
        limiter.acquire().await.expect("two are left");
        secs(1).await;
        let left = limiter.peek().await.expect("in memory").limits[0].left;
        assert_eq!(left, 1, "{pause} s later");
        let numbers: Vec<_> = store.calls.lock().expect("no panic").iter().map(|call| call.number).collect();
        assert_eq!(numbers, if repeated { vec![1, 2, 3, 3, 4] } else { vec![1, 2, 3, 4] }, "{pause} s later");
        drop(used);
    }
}

#[tokio::test(start_paused = true)]
async fn gates_wait_for_callers_that_never_come() {
    const MANY: usize = 3_000;
    let (store, limiter) = losing("3/min unpaced guard 1s");
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    secs(1).await;
    store.loses.store(true, SeqCst);
    for tenant in 0..MANY {
        let error = limiter.acquire().key("tenant", tenant.to_le_bytes()).await.expect_err("lost");
        assert!(error.is_store(), "{error}");
    }
    secs(1).await;
    assert_eq!(tasks(), 0, "each with its timer");
    // What they have asked for may have been booked: whoever comes soon gets it.
    assert_eq!(limiter.gates(), 1 + MANY);
    store.loses.store(false, SeqCst);
    let before = store.calls.lock().expect("no panic").len();
    limiter.acquire().key("tenant", 0_usize.to_le_bytes()).await.expect("heard");
    let calls = store.calls.lock().expect("no panic")[before..].to_vec();
    assert_eq!((calls[0].number, calls[0].wants.len()), (1, 1), "the lost one again");
    secs(61).await;
    limiter.acquire().key("tenant", "another").await.expect("heard");
    assert_eq!(limiter.gates(), 1 + 1);
}
