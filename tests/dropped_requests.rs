//! A request whose future is dropped, at every point where it can be: if nothing was sent the permit is back,
//! if something was it stays charged, and nobody else notices.
#![cfg(feature = "middleware")]

#[path = "support/hops.rs"]
mod hops;
#[path = "support/mod.rs"]
mod support;

#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;

use std::time::Duration;

use hops::{Abandon, Mock, abandon, left, provider};
use reqwest_middleware::{ClientWithMiddleware, RequestBuilder};
use support::Watch;
use tollgate::{
    Limiter, MemoryStore, RequestBuilderExt, Tollgate,
    ledger::{Answer, Call, Micros, Peek},
    store::{Agreed, Bell, Pending, Quota, Store},
};

const URL: &str = "http://api.acme.example/things";
/// A window of an hour and its guard, of which half is more than any machine stalls: a permit that comes too late
/// to a caller that would not wait is another story.
const TURN: Duration = Duration::from_secs(3_601);

/// A store that is some way off, each way 2 ms, so that a gate cannot settle with it on the spot.
struct Remote(MemoryStore);

async fn way() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

impl Store for Remote {
    fn book<'a>(&'a self, quota: &'a Quota, call: &'a Call) -> Pending<'a, Option<Answer>> {
        Box::pin(async move {
            way().await;
            let answer = self.0.book(quota, call).await;
            way().await;
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
            way().await;
            let left = self.0.pause(provider, part, time).await;
            way().await;
            left
        })
    }

    fn change<'a>(&'a self, limit: &'a Agreed, text: &'a str, number: Option<i64>) -> Pending<'a, ()> {
        self.0.change(limit, text, number)
    }

    fn peek<'a>(&'a self, quota: &'a Quota) -> Pending<'a, Peek> {
        self.0.peek(quota)
    }

    fn listen(&self, quota: &Quota, member: u64) -> Option<Bell> {
        self.0.listen(quota, member)
    }
}

/// A provider, a client and what answers in it. Each point at which a call is dropped gets one of its own.
struct World {
    limiter: Limiter,
    http: ClientWithMiddleware,
    mock: Mock,
    tollgate: Tollgate,
}

impl World {
    fn new(remote: bool, limit: &str, redirects: u32, mock: Mock) -> Self {
        let builder = Tollgate::builder();
        let builder = if remote { builder.store(Remote(MemoryStore::new())) } else { builder };
        let acme = provider("acme", limit).hosts(["api.acme.example"]).redirects(redirects);
        let acme = acme.max_wait(10 * TURN);
        Self::of(builder.provider(acme).build().expect("a tollgate"), mock)
    }

    fn of(tollgate: Tollgate, mock: Mock) -> Self {
        let limiter = tollgate.provider("acme").expect("there");
        Self { limiter, http: mock.inside(&tollgate), mock, tollgate }
    }

    fn call(&self) -> RequestBuilder {
        self.http.get(URL)
    }

    /// What was sent stays charged and nothing else, nobody waits, and the next call goes at once.
    async fn is_clean(&self, max: u64, point: &str) {
        let sent = self.mock.count() as u64;
        assert_eq!(left(&self.tollgate, "acme").await, max - sent, "{point}, {sent} sent");
        assert_eq!(self.limiter.peek().await.expect("in memory").queued, 0, "{point}, {sent} sent");
        if sent < max {
            let watch = Watch::start();
            self.call().or_reject().send().await.unwrap_or_else(|error| panic!("{point}: {error}"));
            assert!(watch.read() <= Duration::from_millis(10), "{point}: {:?}", watch.read());
            // What it has booked ahead is on its way back.
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(left(&self.tollgate, "acme").await, max - sent - 1, "{point}, {sent} sent");
        }
        self.tollgate.shutdown().await;
    }
}

/// Drops a call at one point after the other until it is done before it can be dropped.
async fn at_every_point(
    world: impl Fn(bool) -> World,
    before: impl AsyncFn(&World),
    call: impl Fn(&World) -> RequestBuilder,
    after: impl AsyncFn(&World, &str),
) {
    for remote in [false, true] {
        for when in [Abandon::AtOnce, Abandon::Woken] {
            for polls in 0.. {
                let world = world(remote);
                before(&world).await;
                let point = format!("{} store, {:?}", if remote { "remote" } else { "local" }, when(polls));
                let done = abandon(call(&world).send(), when(polls)).await;
                // Long enough for what has to come back, too short for what has to be waited for.
                tokio::time::sleep(Duration::from_millis(100)).await;
                after(&world, &point).await;
                if let Some(done) = done {
                    done.unwrap_or_else(|error| panic!("{point}: {error}"));
                    assert!(polls >= 4, "the call is done after {polls} polls: nothing was tested");
                    break;
                }
            }
        }
    }
}

async fn nothing(_: &World) {}

#[tokio::test(start_paused = true)]
async fn with_room() {
    let world = |remote| World::new(remote, "10/h unpaced guard 1s", 0, Mock::new().polls(4));
    at_every_point(world, nothing, World::call, async |world, point| world.is_clean(10, point).await).await;
}

#[tokio::test(start_paused = true)]
async fn of_one_that_would_not_wait() {
    let world = |remote| World::new(remote, "10/h unpaced guard 1s", 0, Mock::new().polls(4));
    let call = |world: &World| world.call().or_reject().cost("requests", 1);
    at_every_point(world, nothing, call, async |world, point| world.is_clean(10, point).await).await;
}

#[tokio::test(start_paused = true)]
async fn with_hops_booked_ahead() {
    let world = |remote| World::new(remote, "10/h unpaced guard 1s", 1, Mock::new().polls(4));
    at_every_point(world, nothing, World::call, async |world, point| world.is_clean(10, point).await).await;
}

async fn drain(world: &World) {
    while world.limiter.acquire().or_reject().await.is_ok() {}
}

#[tokio::test(start_paused = true)]
async fn behind_a_quota_that_is_used_up() {
    for redirects in [0, 1] {
        let world = |remote| World::new(remote, "2/h unpaced guard 1s", redirects, Mock::new().polls(4));
        at_every_point(world, drain, World::call, async |world, point| {
            let peek = world.limiter.peek().await.expect("in memory");
            assert_eq!(peek.queued, 0, "{point}");
            // Dropped before it had its permit, or when that was there: the slot that it waited for is free.
            if peek.limits[0].left == 0 {
                world.call().or_reject().send().await.expect_err(point);
                tokio::time::sleep(TURN).await;
            }
            assert_eq!(left(&world.tollgate, "acme").await, 2 - world.mock.count() as u64, "{point}");
            for _ in world.mock.count() + redirects as usize..2 {
                world.call().or_reject().send().await.unwrap_or_else(|error| panic!("{point}: {error}"));
            }
            world.tollgate.shutdown().await;
        })
        .await;
    }
}

// The caller behind it gets what it leaves, when it was due.
#[tokio::test(start_paused = true)]
async fn the_next_in_line_has_its_turn() {
    for remote in [false, true] {
        for when in [Abandon::AtOnce, Abandon::Woken] {
            for polls in 0..8 {
                let world = World::new(remote, "1/h unpaced guard 1s", 0, Mock::new().polls(4));
                let watch = Watch::start();
                drain(&world).await;
                let first = tokio::spawn(abandon(world.call().send(), when(polls)));
                tokio::task::yield_now().await;
                let second = world.call().send().await;
                let second = second.unwrap_or_else(|error| panic!("{remote} {:?}: {error}", when(polls)));
                let first = first.await.expect("no panic");
                let waited = watch.read();
                // The first was sent if the mock has seen two.
                let due = TURN * world.mock.count() as u32;
                let point = format!("remote {remote}, {:?}, first {first:?}", when(polls));
                assert!(due <= waited && waited < due + Duration::from_millis(500), "{point}: {waited:?}");
                drop(second);
                world.tollgate.shutdown().await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn while_it_waits_out_a_refusal() {
    for redirects in [0, 1] {
        let mock = || Mock::new().polls(4).refuses_for(10);
        let world = |remote| World::new(remote, "10/h unpaced guard 1s", redirects, mock());
        at_every_point(world, nothing, World::call, async |world, point| {
            // The refusal may not have come, or may not have been heard: then nothing is paused.
            tokio::time::sleep(Duration::from_secs(10)).await;
            world.is_clean(10, point).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_it_waits_out_a_pause() {
    for redirects in [0, 1] {
        let world = |remote| World::new(remote, "10/h unpaced guard 1s", redirects, Mock::new().polls(4));
        let pause = async |world: &World| {
            world.limiter.pause(Duration::from_secs(10)).await.expect("in memory");
        };
        at_every_point(world, pause, World::call, async |world, point| {
            tokio::time::sleep(Duration::from_secs(10)).await;
            world.is_clean(10, point).await;
        })
        .await;
    }
}

// The pause goes on its way even if nobody waits for it to be stored.
#[tokio::test(start_paused = true)]
async fn the_pause_that_it_has_met_holds() {
    let mock = || Mock::new().polls(1).refuses_for(10);
    let mut met = 0;
    for remote in [false, true] {
        for polls in 0.. {
            let world = World::new(remote, "10/h unpaced guard 1s", 0, mock());
            let watch = Watch::start();
            let done = abandon(world.call().send(), Abandon::AtOnce(polls)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            let heard = world.limiter.counts().refusals == 1;
            let paused = world.limiter.peek().await.expect("in memory").paused.is_some();
            assert_eq!(
                paused,
                heard && watch.read() < Duration::from_secs(10),
                "remote {remote}, dropped after {polls} polls"
            );
            met += usize::from(paused);
            if done.is_some() {
                break;
            }
        }
    }
    assert!(met > 1, "never dropped after it was refused");
}

#[cfg(feature = "redis")]
mod redis {
    use tollgate::RedisStore;

    use super::{redis_server::PrivateRedis, *};

    /// Like `is_clean`, on a clock that does not wait: by conditions that must come true.
    async fn comes_clean(world: &World, max: u64, point: &str) {
        let sent = world.mock.count() as u64;
        hops::eventually(async || {
            let peek = world.limiter.peek().await.expect("a Redis");
            peek.queued == 0 && peek.limits[0].left == max - sent
        })
        .await;
        world.call().or_reject().send().await.unwrap_or_else(|error| panic!("{point}: {error}"));
        hops::eventually(async || {
            world.limiter.peek().await.expect("a Redis").limits[0].left == max - sent - 1
        })
        .await;
        world.tollgate.shutdown().await;
    }

    #[tokio::test]
    async fn with_a_real_store() {
        let server = PrivateRedis::start();
        for redirects in [0, 2] {
            for when in [Abandon::AtOnce, Abandon::Woken] {
                for polls in 0.. {
                    let point = format!("{redirects} redirects, {:?}", when(polls));
                    // Of each its own state.
                    let name = format!("acme-{redirects}-{}-{polls}", matches!(when(0), Abandon::Woken(_)));
                    let acme =
                        provider(&name, "10/h unpaced").hosts(["api.acme.example"]).redirects(redirects);
                    let store = RedisStore::new(&server.url()).expect("a URL");
                    let tollgate =
                        Tollgate::builder().store(store).provider(acme).build().expect("a tollgate");
                    let mock = Mock::new().polls(3);
                    let limiter = tollgate.provider(&name).expect("there");
                    let http = mock.inside(&tollgate);
                    let world = World { limiter, http, mock, tollgate };
                    let done = abandon(world.call().send(), when(polls)).await;
                    comes_clean(&world, 10, &point).await;
                    if done.is_some() {
                        assert!(polls >= 4, "nothing was tested");
                        break;
                    }
                }
            }
        }
    }
    // Its slot may be asked for, on its way or booked.
    #[tokio::test]
    async fn behind_a_quota_that_is_used_up() {
        let server = PrivateRedis::start();
        for (database, booked) in [false, true, false, true].into_iter().enumerate() {
            let acme = provider("acme", "1/h unpaced").hosts(["api.acme.example"]);
            let store = RedisStore::new(&format!("{}{database}", server.url())).expect("a URL");
            let tollgate = Tollgate::builder().store(store).provider(acme).build().expect("a tollgate");
            let world = World::of(tollgate, Mock::new());
            world.limiter.acquire().await.expect("the only one");
            let next = async || world.limiter.peek().await.expect("a Redis").limits[0].next_free;
            let before = next().await;
            let call = tokio::spawn(world.call().send());
            hops::eventually(async || world.limiter.peek().await.expect("a Redis").queued == 1).await;
            if booked {
                hops::eventually(async || next().await > before).await;
            }
            call.abort();
            hops::eventually(async || {
                world.limiter.peek().await.expect("a Redis").queued == 0 && next().await <= before
            })
            .await;
            assert_eq!(world.mock.count(), 0);
            world.tollgate.shutdown().await;
        }
    }
}
