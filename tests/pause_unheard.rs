//! A pause that did not stop everybody: the one who heard the 429 before it is stored, permits in hand, a reply
//! that was decided before the pause and is heard after it.

#[path = "support/lab.rs"]
mod lab;
#[path = "support/mod.rs"]
mod support;

use std::{future::pending, sync::Arc, time::Duration};

use lab::{EPOCH, Lab, MILLI, at};
use support::Watch;
use tollgate::{
    Limiter, MemoryStore, Provider, Tollgate,
    gate::{Patience, Verdict, Waiter},
    ledger::{Answer, Call, Costs, Micros, Peek, Rule, SECOND},
    store::{Agreed, Bell, Pending, Quota, Store},
};

/// One now, the next 24 ms later, and so on: near enough to be held.
fn every_24_ms() -> Lab {
    Lab::new(Rule::rolling(1, 20 * MILLI, 4 * MILLI, true), 4 * MILLI)
}

/// One caller has been served, the permit of the next is held until 24 ms.
fn holding() -> Lab {
    let mut lab = every_24_ms();
    lab.wait(0, "first");
    lab.wait(0, "second");
    lab.turn(0);
    assert_eq!(lab.granted()[0].0, "first");
    assert_eq!(lab.poll(MILLI).wake, Some(24 * MILLI), "a permit is held");
    lab
}

fn slots(lab: &mut Lab) -> Vec<(&'static str, Micros)> {
    lab.granted().into_iter().map(|(name, permit)| (name, permit.due)).collect()
}

// What the replica does that heard the 429 itself.

#[test]
fn a_hold_refuses_at_once_who_cannot_wait() {
    let mut lab = every_24_ms();
    lab.wait(0, "patient");
    lab.arrive(0, "hurried", Patience::Until(SECOND - 1)).expect("a place");
    lab.arrive(0, "rejecting", Patience::Reject).expect("a place");
    let call = lab.poll(0).call.expect("a booking");
    lab.core.hold(SECOND);
    lab.core.hold(SECOND / 2);
    let next = lab.poll(100 * MILLI);
    assert_eq!(lab.paused(), [("hurried", 900 * MILLI), ("rejecting", 900 * MILLI)], "never shorter");
    assert!(next.call.is_none() && !next.idle);
    // Who comes now hears it from memory.
    for patience in [Patience::Reject, Patience::Until(SECOND - 1)] {
        let refused = lab.arrive(100 * MILLI, "new", patience).expect_err("paused");
        assert!(matches!(refused, Verdict::Later { retry_after: 900_000, limit: None }), "{refused:?}");
    }
    lab.arrive(100 * MILLI, "just", Patience::Until(SECOND)).expect("can wait until its very end");
    // The store does not know yet and grants: nothing flies.
    let answer = lab.decide(100 * MILLI, &call);
    lab.answered(100 * MILLI, answer);
    lab.turn(100 * MILLI);
    assert_eq!(slots(&mut lab), []);
}

#[test]
fn a_hold_ends_when_it_ends() {
    let mut lab = holding();
    lab.core.hold(25 * MILLI);
    let next = lab.poll(24 * MILLI);
    assert_eq!((slots(&mut lab), next.wake), (vec![], Some(25 * MILLI)));
    lab.poll(25 * MILLI - 1);
    assert_eq!(slots(&mut lab), []);
    lab.poll(25 * MILLI);
    assert_eq!(slots(&mut lab), [("second", 24 * MILLI)], "still fresh");
    assert_eq!(lab.core.late(), 0);
}

#[test]
fn what_is_not_fresh_at_the_end_of_a_hold_is_exchanged() {
    let mut lab = holding();
    lab.core.hold(SECOND);
    assert_eq!(lab.poll(MILLI).wake, Some(SECOND));
    assert_eq!(lab.turn(SECOND), 1, "the exchange");
    assert_eq!(slots(&mut lab), [("second", SECOND)]);
}

// What the bell does.

#[test]
fn a_doubted_permit_does_not_fly_until_the_store_confirms_it() {
    let mut lab = holding();
    lab.core.doubt();
    let call = lab.poll(2 * MILLI).call.expect("a confirmation at once");
    assert_eq!((call.confirms.len(), call.wants.len()), (1, 0));
    let answer = lab.decide(2 * MILLI, &call);
    lab.poll(24 * MILLI);
    assert_eq!(slots(&mut lab), [], "not confirmed yet");
    lab.answered(24 * MILLI, answer);
    // It rang for nothing: the slot is kept, and not doubted again.
    assert_eq!(lab.turn(25 * MILLI), 0, "no storm");
    let (name, permit) = lab.granted().remove(0);
    assert_eq!((name, permit.booked.slot), ("second", EPOCH + 24 * MILLI));
    assert_eq!(lab.core.late(), 0, "nothing came too late");
}

#[test]
fn a_doubted_permit_flies_when_the_pause_is_over() {
    let mut lab = holding();
    lab.pause(SECOND);
    lab.core.doubt();
    assert_eq!(lab.turn(MILLI), 1);
    assert_eq!(lab.turn(24 * MILLI), 0);
    let wake = lab.poll(24 * MILLI).wake.expect("it is far: to be confirmed");
    assert!(wake < SECOND);
    assert_eq!(lab.turn(wake), 1);
    lab.poll(SECOND - 1);
    assert_eq!(slots(&mut lab), []);
    lab.poll(SECOND);
    assert_eq!(slots(&mut lab), [("second", SECOND)]);
    assert_eq!(lab.core.late(), 0);
}

#[test]
fn a_reply_decided_before_the_bell_is_confirmed() {
    let mut lab = every_24_ms();
    lab.wait(0, "first");
    let call = lab.poll(0).call.expect("a booking");
    let answer = lab.decide(0, &call);
    lab.pause(SECOND);
    lab.core.doubt();
    assert!(lab.poll(0).call.is_none(), "one at a time");
    lab.answered(MILLI, answer);
    assert_eq!(lab.turn(MILLI), 1, "the confirmation");
    assert_eq!(slots(&mut lab), []);
    let wake = lab.poll(MILLI).wake.expect("it is far: to be confirmed");
    lab.turn(wake);
    lab.poll(SECOND);
    assert_eq!(slots(&mut lab), [("first", SECOND)]);
    assert_eq!(lab.core.late(), 0);
}

/// The store repeats what it said the first time, however long ago.
#[test]
fn a_repeated_answer_is_confirmed() {
    let mut lab = every_24_ms();
    lab.wait(0, "first");
    let call = lab.poll(0).call.expect("a booking");
    lab.decide(0, &call);
    lab.core.abandoned();
    lab.pause(SECOND);
    let again = lab.poll(MILLI).call.expect("the same call");
    assert_eq!(again.number, call.number);
    let answer = lab.decide(MILLI, &again);
    lab.answered(MILLI, answer);
    assert_eq!(slots(&mut lab), []);
    assert_eq!(lab.turn(MILLI), 1);
    assert_eq!(slots(&mut lab), []);
}

#[test]
fn an_idle_gate_does_not_mind_the_bell() {
    let mut lab = every_24_ms();
    lab.core.doubt();
    let next = lab.poll(MILLI);
    assert!(next.call.is_none() && next.wake.is_none() && next.idle);
    lab.wait(MILLI, "first");
    assert_eq!(lab.turn(MILLI), 1, "no more than without");
    assert_eq!(slots(&mut lab), [("first", MILLI)]);
}

#[test]
fn a_permit_on_its_way_to_the_caller_does_not_fly() {
    let mut lab = every_24_ms();
    let ticket = lab.wait(0, "first");
    lab.turn(0);
    let (_, permit) = lab.granted().remove(0);
    assert!(lab.core.may_fly(&permit, at(0)));
    lab.core.doubt();
    assert!(!lab.core.may_fly(&permit, at(0)));
    let waiter =
        Waiter { costs: Costs::same(1, 1), arrived: 0, patience: Patience::Until(SECOND), handle: "first" };
    lab.core.came_late(at(0), ticket, waiter, permit);
    assert_eq!(lab.turn(0), 1, "confirmed");
    let (_, permit) = lab.granted().remove(0);
    assert!(lab.core.may_fly(&permit, at(0)));
    assert_eq!(lab.core.late(), 0);
    // Nor does it go to the next caller as it is.
    lab.core.doubt();
    lab.core.give_back(permit);
    assert_eq!(lab.poll(0).call.expect("a return").returns.len(), 1);
}

#[test]
fn a_hold_stops_a_permit_on_its_way_to_the_caller() {
    let mut lab = every_24_ms();
    lab.wait(0, "first");
    lab.turn(0);
    let (_, permit) = lab.granted().remove(0);
    lab.core.hold(MILLI);
    assert!(!lab.core.may_fly(&permit, at(MILLI - 1)));
    assert!(lab.core.may_fly(&permit, at(MILLI)));
}

// The net under the bell.

#[test]
fn an_answer_that_tells_a_pause_stops_what_earlier_ones_granted() {
    let mut lab = holding();
    lab.pause(SECOND);
    lab.arrive(MILLI, "hurried", Patience::Until(SECOND / 2)).expect("a place");
    let call = lab.poll(MILLI).call.expect("a booking");
    // Even if no refusal in it tells the pause.
    let answer = lab.decide(MILLI, &Call { wants: Vec::new(), ..call });
    assert!(answer.next.is_none());
    lab.answered(MILLI, answer);
    let call = lab.poll(MILLI).call.expect("a confirmation");
    assert_eq!(call.confirms.len(), 1);
    assert_eq!(lab.paused(), [("hurried", SECOND - MILLI)]);
    let answer = lab.decide(MILLI, &call);
    lab.answered(MILLI, answer);
    let wake = lab.poll(MILLI).wake.expect("it is far: to be confirmed");
    lab.turn(wake);
    lab.poll(SECOND);
    assert_eq!(slots(&mut lab), [("second", SECOND)]);
    assert_eq!(lab.core.late(), 0);
}

// All of it on tokio, and two replicas.

/// A store that is slow to hear of a pause, never answers that, or has no bell.
struct Odd {
    store: Arc<MemoryStore>,
    silent: bool,
    slow: Duration,
    bell: bool,
}

impl Store for Odd {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        self.store.book(quota, call)
    }

    fn pause<'a>(
        &'a self,
        provider: &'a Arc<str>,
        part: Option<&'a Arc<str>>,
        time: Micros,
    ) -> Pending<'a, Micros> {
        Box::pin(async move {
            if self.silent {
                pending::<()>().await;
            }
            tokio::time::sleep(self.slow).await;
            self.store.pause(provider, part, time).await
        })
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        self.store.change(limit, text, number)
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        self.store.peek(quota)
    }

    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell> {
        self.store.listen(quota, member).filter(|_| self.bell)
    }
}

fn odd(store: &Arc<MemoryStore>) -> Odd {
    Odd { store: store.clone(), silent: false, slow: Duration::ZERO, bell: true }
}

fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// A replica that shares a store.
fn replica(store: impl Store) -> Limiter {
    let limit = "1/20ms guard 4ms".parse().expect("a limit");
    let provider = Provider::new("acme").limit(limit);
    let tollgate = Tollgate::builder().store(store).provider(provider).build().expect("built");
    tollgate.provider("acme").expect("there")
}

/// Takes the permit of this moment; who asks next waits 24 ms for its own, which is held.
async fn next_waits(limiter: &Limiter) -> tokio::task::JoinHandle<Result<Duration, tollgate::Error>> {
    limiter.acquire().await.expect("idle");
    let waiting = limiter.clone();
    let waiting = tokio::spawn(async move { waiting.acquire().await.map(|permit| permit.waited()) });
    tokio::time::sleep(ms(1)).await;
    waiting
}

#[tokio::test(start_paused = true)]
async fn heard_by_one_replica_it_stops_the_other() {
    let store = Arc::new(MemoryStore::new());
    let (first, second) = (replica(store.clone()), replica(store));
    let waiting = next_waits(&second).await;
    assert_eq!(first.pause(ms(300)).await.expect("in memory"), ms(300));
    assert_eq!(waiting.await.expect("no panic").expect("a permit"), ms(301), "exactly at its end");
    assert_eq!(second.counts().late, 0);
}

/// What the bell is for: without it a permit in hand is trusted for a horizon.
#[tokio::test(start_paused = true)]
async fn without_a_bell_a_permit_in_hand_flies_on() {
    let store = Arc::new(MemoryStore::new());
    let (first, second) = (replica(store.clone()), replica(Odd { bell: false, ..odd(&store) }));
    let waiting = next_waits(&second).await;
    first.pause(ms(300)).await.expect("in memory");
    assert_eq!(waiting.await.expect("no panic").expect("a permit"), ms(24));
}

#[tokio::test(start_paused = true)]
async fn a_bell_that_nobody_heard_does_no_harm() {
    let store = Arc::new(MemoryStore::new());
    let (first, second) = (replica(store.clone()), replica(store));
    let time = Watch::start();
    second.acquire().await.expect("idle");
    for _ in 0..3 {
        first.pause(ms(100)).await.expect("in memory");
        tokio::time::sleep(ms(200)).await;
    }
    second.acquire().await.expect("the pauses are over");
    assert_eq!(time.read(), ms(600));
}

#[tokio::test(start_paused = true)]
async fn stops_here_before_the_store_knows() {
    let store = Arc::new(MemoryStore::new());
    let limiter = replica(Odd { silent: true, ..odd(&store) });
    let waiting = next_waits(&limiter).await;
    let hurried = limiter.clone();
    let hurried = tokio::spawn(async move { hurried.acquire().wait_at_most(ms(200)).await.map(|_| ()) });
    let pausing = limiter.clone();
    let pausing = tokio::spawn(async move { pausing.pause(ms(300)).await });
    tokio::time::sleep(ms(1)).await;
    let refused = hurried.await.expect("no panic").expect_err("cannot wait so long");
    assert!(refused.is_rejected(), "{refused}");
    let refused = limiter.acquire().or_reject().await.expect_err("paused");
    assert!(refused.retry_after().is_some_and(|time| time > ms(295)), "{refused}");
    assert!(waiting.await.expect("no panic").expect("a permit") >= ms(301));
    pausing.abort();
}

#[tokio::test(start_paused = true)]
async fn told_by_a_caller_who_goes_away() {
    let store = Arc::new(MemoryStore::new());
    let (first, second) = (replica(Odd { slow: ms(10), ..odd(&store) }), replica(store));
    let waiting = next_waits(&second).await;
    tokio::time::timeout(ms(5), first.pause(ms(300))).await.expect_err("not stored yet");
    assert_eq!(waiting.await.expect("no panic").expect("a permit"), ms(311), "stored all the same");
}

/// Who heard the 429 has its permits confirmed as soon as the pause is stored, whether it hears the bell or not.
#[tokio::test(start_paused = true)]
async fn stored_while_permits_are_held_here() {
    let store = Arc::new(MemoryStore::new());
    let limiter = replica(Odd { slow: ms(30), bell: false, ..odd(&store) });
    let waiting = next_waits(&limiter).await;
    limiter.pause(ms(300)).await.expect("in memory");
    assert_eq!(waiting.await.expect("no panic").expect("a permit"), ms(331), "when the store says");
    assert_eq!(limiter.counts().late, 0, "not found out at the end of the hold");
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_nobody_asked_meanwhile_does_not_return_as_a_burst() {
    let limiter = support::limiter(&["10/s burst 10 guard 0ms"]);
    limiter.pause(Duration::from_secs(2)).await.expect("in memory");
    tokio::time::advance(Duration::from_millis(2_250)).await;
    // A quarter of a second after the pause: two and a half tokens.
    for _ in 0..2 {
        limiter.acquire().or_reject().await.expect("has come back since");
    }
    let refused = limiter.acquire().or_reject().await.expect_err("no third yet");
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(50)));
}
