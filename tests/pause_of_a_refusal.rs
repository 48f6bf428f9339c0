//! What a refusal does to all others: who does not hear of its pause, flies into it, or ends it too early.

#![cfg(feature = "middleware")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{
    future::{Future, IntoFuture},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use support::abandon_after;
use tollgate::{Error, MemoryStore, Reason, RequestBuilderExt, Toll, Tollgate};
#[cfg(feature = "redis")]
use tollgate::{
    ledger::{Answer, Call, Peek},
    store::{Agreed, Bell, Pending, Quota, Store},
};
use upstream::{Canned, URL, acme, after, fine, left, paused, provider, refuse};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn others_run_into_a_refusal_that_one_has_seen() {
    let store = Arc::new(MemoryStore::new());
    let replica = || {
        let provider = provider("1000/h unpaced guard 0");
        Tollgate::builder().store(store.clone()).provider(provider).build().expect("built")
    };
    let (one, other) = (replica(), replica());
    let other_limiter = other.provider("acme").expect("there");
    let canned = Canned::new(after(1, "3"));
    let refused = canned.behind(&one).get(URL).no_resend().send().await.expect("answered");
    assert_eq!(refused.status(), 429);

    assert_eq!(paused(&one.provider("acme").expect("there")).await, Some(ms(3_000)));
    assert_eq!(paused(&other_limiter).await, Some(ms(3_000)));
    tokio::time::sleep(ms(1_000)).await;
    for tollgate in [&one, &other] {
        let error = canned.behind(tollgate).get(URL).or_reject().send().await.expect_err("paused");
        let error = Error::find(&error).expect("ours");
        assert_eq!(error.retry_after(), Some(ms(2_000)));
        assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Paused));
    }
    assert_eq!(left(&other_limiter).await, 999, "a refused call is not charged");
    assert_eq!(canned.seen().len(), 1, "nor sent");
    let response = canned.behind(&other).get(URL).send().await.expect("accepted");
    assert_eq!(canned.times()[1..], [ms(3_000)]);
    assert_eq!(Toll::of(&response).expect("a toll").waited(), ms(2_000));
}

#[tokio::test(start_paused = true)]
async fn who_queued_before_the_refusal_flies_into_it() {
    let store = Arc::new(MemoryStore::new());
    let replica = || {
        let provider = provider("2/s unpaced guard 0");
        Tollgate::builder().store(store.clone()).provider(provider).build().expect("built")
    };
    let (one, other) = (replica(), replica());
    // Both permits of this second are used when two more calls queue, one in each replica.
    let canned = Canned::new(after(1, "5")).taking(ms(200));
    let send = |tollgate: &Tollgate| tokio::spawn(canned.behind(tollgate).get(URL).send());
    let first = [send(&one), send(&one)];
    tokio::time::sleep(ms(50)).await;
    let queued = [send(&one), send(&other)];
    for call in first.into_iter().chain(queued) {
        assert_eq!(call.await.expect("no panic").expect("accepted").status(), 200);
    }
    // The answer came at 200 ms; what was to fly at 1 s flies after the pause, and so does the second attempt.
    let times = canned.times();
    assert_eq!(times, [100, 100, 5_300, 5_300, 6_300].map(ms));
}

#[tokio::test(start_paused = true)]
async fn a_later_hint_shortens_the_pause() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(|_, seen| match &*seen.path {
        "/long" => refuse(429, "5"),
        _ => refuse(429, "1"),
    });
    let http = canned.behind(&tollgate);
    // The short hint comes 100 ms later, to a request that was under way.
    let slow = canned.clone().taking(ms(100)).behind(&tollgate);
    let short = tokio::spawn(slow.get("http://acme.test/short").no_resend().send());
    tokio::task::yield_now().await;
    http.get("http://acme.test/long").no_resend().send().await.expect("answered");
    assert_eq!(paused(&limiter).await, Some(ms(5_000)));
    short.await.expect("no panic").expect("answered");
    assert_eq!(paused(&limiter).await, Some(ms(4_900)));
    let error = http.get(URL).or_reject().send().await.expect_err("paused");
    assert_eq!(Error::find(&error).and_then(|error| error.retry_after()), Some(ms(4_900)));
}

/// Books in memory, and cannot be told of a pause.
#[cfg(feature = "redis")]
struct Deaf {
    memory: MemoryStore,
    away: tollgate::RedisStore,
}

#[cfg(feature = "redis")]
impl Store for Deaf {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        self.memory.book(quota, call)
    }

    fn pause<'a>(
        &'a self,
        provider: &'a std::sync::Arc<str>,
        part: Option<&'a std::sync::Arc<str>>,
        time: i64,
    ) -> Pending<'a, i64> {
        self.away.pause(provider, part, time)
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        self.memory.change(limit, text, number)
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        self.memory.peek(quota)
    }

    fn listen(&self, _: &Quota, _: u64) -> Option<Bell> {
        None
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_pause_that_the_store_does_not_take_is_lost() {
    // On the real clock: a port at which nobody listens.
    let away = tollgate::RedisStore::new("redis://127.0.0.1:1").expect("a URL").timeout(ms(50));
    let store = Deaf { memory: MemoryStore::new(), away };
    let tollgate =
        Tollgate::builder().store(store).provider(provider("1000/h unpaced")).build().expect("built");
    let canned = Canned::new(|_, seen| refuse(429, if seen.path == "/long" { "600" } else { "1" }));
    let http = canned.behind(&tollgate);
    let slow = canned.clone().taking(ms(200)).behind(&tollgate);
    let short = tokio::spawn(slow.get("http://acme.test/short").no_resend().send());
    tokio::task::yield_now().await;
    let response = http.get("http://acme.test/long").no_resend().send().await.expect("answered all the same");
    assert_eq!(response.status(), 429);
    short.await.expect("no panic").expect("answered");
    // The short hint came later, and did not end this replica's own pause.
    let error = http.get(URL).or_reject().send().await.expect_err("paused");
    let error = Error::find(&error).expect("ours");
    assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Paused));
    assert!(error.retry_after().is_some_and(|wait| wait > Duration::from_secs(500)), "{error}");
    assert_eq!(canned.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_burst_follows_the_pause() {
    let (tollgate, _) = acme("100/s guard 0");
    let canned = Canned::new(after(1, "2"));
    let http = canned.behind(&tollgate);
    let first = tokio::spawn(http.get(URL).send());
    tokio::time::sleep(ms(1)).await;
    let calls: Vec<_> = (0..20).map(|_| tokio::spawn(http.get(URL).send())).collect();
    for call in calls.into_iter().chain([first]) {
        assert_eq!(call.await.expect("no panic").expect("accepted").status(), 200);
    }
    let expected: Vec<_> = (0..21).map(|at| ms(2_000 + 10 * at)).collect();
    assert_eq!(canned.times()[1..], expected, "one in 10 ms, though the whole window is free");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_somebody_else_stops_the_provider() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(|_, _| refuse(429, "2"));
    let http = canned.behind(&tollgate);
    for url in ["http://other.test/things", "http://acme.test.other.test/", "http://other.test/acme.test"] {
        let response = http.get(url).send().await.expect("answered");
        assert_eq!(response.status(), 429);
        assert!(Toll::of(&response).is_none());
    }
    assert_eq!(canned.times(), [ms(0); 3], "each sent once");
    assert_eq!((paused(&limiter).await, left(&limiter).await), (None, 1_000));
    assert_eq!(limiter.counts().refusals, 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_right_when_the_refusal_comes_a_call_keeps_it_to_itself() {
    for polls in 0..4 {
        let (tollgate, limiter) = acme("1000/h unpaced guard 0");
        let canned = Canned::new(|_, _| refuse(429, "2"));
        let done = abandon_after(canned.behind(&tollgate).get(URL).send(), polls).await;
        assert!(!done, "it waits to be sent again");
        tokio::task::yield_now().await;
        let sent = canned.seen().len();
        assert_eq!(sent, usize::from(polls > 0), "dropped after {polls} polls");
        let expected = (sent > 0).then_some(ms(2_000));
        assert_eq!(paused(&limiter).await, expected, "dropped after {polls} polls");
        let refused = limiter.acquire().or_reject().into_future().await.err();
        assert_eq!(refused.and_then(|error| error.retry_after()), expected, "dropped after {polls} polls");
        tokio::time::sleep(ms(3_000)).await;
        // Without one that was given to the test itself.
        assert_eq!(left(&limiter).await, 999, "dropped after {polls} polls: nobody waits on");
        assert_eq!(limiter.peek().await.expect("in memory").queued, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn who_came_later_goes_before_the_refused_call() {
    let (tollgate, _) = acme("1/100ms unpaced guard 0");
    let canned = Canned::new(|number, _| if number == 0 { refuse(429, "1") } else { fine() });
    let http = canned.clone().taking(ms(60)).behind(&tollgate);
    let first = tokio::spawn(http.get("http://acme.test/first").send());
    tokio::time::sleep(ms(10)).await;
    let later = tokio::spawn(http.get("http://acme.test/later").send());
    first.await.expect("no panic").expect("accepted");
    later.await.expect("no panic").expect("accepted");
    let paths: Vec<_> = canned.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/first", "/first", "/later"]);
    // Each is half-way after 30 ms.
    assert_eq!(canned.times(), [ms(30), ms(1_090), ms(1_190)]);
}

/// Before the store has heard of it, and whatever that would say.
#[tokio::test(start_paused = true)]
async fn the_short_way_to_a_permit_leads_past_a_pause_that_is_not_stored_yet() {
    let (_tollgate, limiter) = acme("1000/h unpaced guard 0");
    let mut pausing = Box::pin(limiter.pause(ms(1_000)));
    let mut asking = Box::pin(limiter.acquire().or_reject().into_future());
    let context = &mut Context::from_waker(Waker::noop());
    assert!(pausing.as_mut().poll(context).is_pending());
    let Poll::Ready(Err(refused)) = asking.as_mut().poll(context) else {
        panic!("it flies, or asks the store")
    };
    assert_eq!(refused.retry_after(), Some(ms(1_000)));
}
