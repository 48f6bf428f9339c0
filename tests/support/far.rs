//! A store that is not in this process.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Mutex,
    time::Duration,
};

use tollgate::{
    MemoryStore,
    ledger::{Answer, Call, Micros, Peek},
    store::{Agreed, Bell, Pending, Quota, Store},
};

/// A store far away, which notes who says what.
#[derive(Default)]
pub struct Far {
    memory: MemoryStore,
    /// The next trips take so long, half of it there, half of it back; then none takes any time.
    trips: Mutex<VecDeque<Duration>>,
    /// By member: how often it was heard of before its goodbyes, and how many of these there were.
    heard: Mutex<BTreeMap<u64, (usize, usize)>>,
}

impl Far {
    pub fn takes(&self, trips: &[Duration]) {
        self.trips.lock().expect("no panic").extend(trips);
    }

    fn next_trip(&self) -> Duration {
        self.trips.lock().expect("no panic").pop_front().unwrap_or_default()
    }

    pub fn heard(&self) -> BTreeMap<u64, (usize, usize)> {
        self.heard.lock().expect("no panic").clone()
    }

    fn note(&self, call: &Call) {
        let mut heard = self.heard.lock().expect("no panic");
        let (calls, goodbyes) = heard.entry(call.member).or_default();
        *if call.goodbye { goodbyes } else { calls } += 1;
    }
}

impl Store for Far {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        Box::pin(async move {
            let trip = self.next_trip();
            tokio::time::sleep(trip / 2).await;
            let answer = self.memory.book(quota, call).await;
            self.note(call);
            tokio::time::sleep(trip / 2).await;
            answer
        })
    }

    fn pause<'a>(
        &'a self,
        provider: &'a std::sync::Arc<str>,
        part: Option<&'a std::sync::Arc<str>>,
        time: Micros,
    ) -> Pending<'a, Micros> {
        Box::pin(async move {
            let trip = self.next_trip();
            tokio::time::sleep(trip / 2).await;
            let left = self.memory.pause(provider, part, time).await;
            tokio::time::sleep(trip / 2).await;
            left
        })
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
