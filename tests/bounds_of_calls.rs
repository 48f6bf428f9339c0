//! A call that waits longer than it was told, is refused before its time, or is served out of its turn.
#![cfg(feature = "middleware")]

#[path = "support/hops.rs"]
mod hops;
#[path = "support/mod.rs"]
mod support;

#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use hops::{Mock, left, provider, tollgate};
use reqwest_middleware::{ClientWithMiddleware, RequestBuilder};
use support::Watch;
use tollgate::{Call, Error, Limiter, Priority, Provider, Reason, RequestBuilderExt, Toll, Tollgate};

const URL: &str = "http://api.acme.example/things";

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A client of "acme", and what answers in it.
fn acme(provider: Provider) -> (Tollgate, Limiter, ClientWithMiddleware, Mock) {
    let tollgate = tollgate([provider.hosts(["api.acme.example"])]);
    let mock = Mock::new();
    let (limiter, http) = (tollgate.provider("acme").expect("there"), mock.inside(&tollgate));
    (tollgate, limiter, http, mock)
}

async fn drain(limiter: &Limiter) {
    while limiter.acquire().or_reject().await.is_ok() {}
}

/// The refusal of a call, and how long it took.
async fn refused(call: RequestBuilder) -> (Error, Duration) {
    let watch = Watch::start();
    let error = call.send().await.expect_err("no room in time");
    let found = Error::find(&error).unwrap_or_else(|| panic!("not ours: {error}"));
    (found, watch.read())
}

async fn served(call: RequestBuilder) -> (Toll, Duration) {
    let watch = Watch::start();
    let answer = call.send().await.unwrap_or_else(|error| panic!("{error}"));
    (Toll::of(&answer).expect("through the gate").clone(), watch.read())
}

#[allow(clippy::disallowed_methods)] // The clock under test is tokio's.
fn from_now(time: Duration) -> tokio::time::Instant {
    tokio::time::Instant::now() + time
}

/// What may bound a wait; each in its turn is the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    MaxWait,
    Timeout,
    AtMost,
    Deadline,
}

const BOUNDS: [Bound; 4] = [Bound::MaxWait, Bound::Timeout, Bound::AtMost, Bound::Deadline];

/// The provider and the call's choices, all with plenty of time but for one.
fn bounded(limit: &str, by: Bound, time: Duration) -> (Provider, impl Fn(RequestBuilder) -> RequestBuilder) {
    let least = move |bound| if bound == by { time } else { secs(7_200) };
    let choose = move |call: RequestBuilder| {
        let call = call.timeout(least(Bound::Timeout));
        match by {
            Bound::Deadline => call.deadline(from_now(time)),
            _ => call.wait_at_most(least(Bound::AtMost)),
        }
    };
    (provider("acme", limit).max_wait(least(Bound::MaxWait)), choose)
}

#[tokio::test(start_paused = true)]
async fn the_smallest_bound_holds() {
    for by in BOUNDS {
        let (provider, choose) = bounded("1/min unpaced guard 0s", by, secs(59));
        let (_tollgate, limiter, http, mock) = acme(provider);
        drain(&limiter).await;
        // The store has said already that it takes 60 s: nobody waits to be refused.
        let (error, after) = refused(choose(http.get(URL))).await;
        assert_eq!((error.retry_after(), after, mock.count()), (Some(secs(60)), secs(0), 0), "{by:?}");
        assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Limited), "{by:?}");
        assert_eq!(limiter.peek().await.expect("in memory").queued, 0, "{by:?}");

        let (provider, choose) = bounded("1/min unpaced guard 0s", by, secs(60));
        let (_tollgate, limiter, http, _mock) = acme(provider);
        drain(&limiter).await;
        let (toll, after) = served(choose(http.get(URL))).await;
        assert_eq!((toll.waited(), after), (secs(60), secs(60)), "{by:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_refused_as_soon_as_it_is_certain() {
    for by in BOUNDS {
        let (provider, choose) = bounded("10/min unpaced guard 0s", by, secs(20));
        let (_tollgate, limiter, http, mock) = acme(provider);
        limiter.pause(secs(10)).await.expect("in memory");
        let call = tokio::spawn(refused(choose(http.get(URL))));
        tokio::time::sleep(secs(5)).await;
        limiter.pause(secs(60)).await.expect("in memory");
        let (error, after) = call.await.expect("no panic");
        assert_eq!((error.retry_after(), after, mock.count()), (Some(secs(60)), secs(5), 0), "{by:?}");
        assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Paused), "{by:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_between_attempts_is_bounded_too() {
    for by in BOUNDS {
        for (bound, attempts, waited) in [(9, 1, 0), (10, 2, 10)] {
            let (provider, choose) = bounded("10/h unpaced guard 0s", by, secs(bound));
            let tollgate = tollgate([provider.hosts(["api.acme.example"])]);
            let mock = Mock::new().refuses_for(10);
            let (toll, after) = served(choose(mock.inside(&tollgate).get(URL))).await;
            // The refusal itself is the answer, at once, if there is no time for another attempt.
            let told = (toll.attempts(), toll.waited(), after, mock.count());
            assert_eq!(told, (attempts, secs(waited), secs(waited), attempts as usize), "{by:?} {bound}");
            assert_eq!(left(&tollgate, "acme").await, 10 - u64::from(attempts));
        }
    }
}

/// A layer around the tollgate that sends twice, 50 s apart.
struct Twice;

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Twice {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut http::Extensions,
        next: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let again = request.try_clone().expect("no body");
        let _ = next.clone().run(request, extensions).await;
        tokio::time::sleep(secs(50)).await;
        next.run(again, extensions).await
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_of_a_layer_outside_share_one_bound() {
    for (bound, in_time) in [(99, false), (100, true)] {
        let (tollgate, limiter, _, _) = acme(provider("acme", "1/min unpaced guard 0s").attempts(1));
        drain(&limiter).await;
        tokio::time::sleep(secs(20)).await;
        // Waits 40 s for the first and is told to slow down; its second, at 90 s, has to wait until 100 s.
        let mock = Mock::new().refuses_for(10);
        let inner = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
            .with(Twice)
            .with(tollgate.middleware())
            .with(mock.clone())
            .build();
        let call = inner.get(URL).wait_at_most(secs(bound));
        if in_time {
            let (toll, after) = served(call).await;
            assert_eq!((toll.waited(), after, mock.count()), (secs(10), secs(100), 2));
        } else {
            let (error, after) = refused(call).await;
            assert_eq!((error.retry_after(), after, mock.count()), (Some(secs(10)), secs(90), 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_time_at_all_means_now_or_not_at_all() {
    let (_tollgate, limiter, http, mock) = acme(provider("acme", "3/min unpaced guard 0s"));
    let past = from_now(secs(0));
    tokio::time::sleep(secs(1)).await;
    served(http.get(URL).wait_at_most(secs(0))).await;
    served(http.get(URL).deadline(past)).await;
    limiter.acquire().wait_at_most(secs(0)).await.expect("the third");
    for call in [http.get(URL).wait_at_most(secs(0)), http.get(URL).deadline(past), http.get(URL).or_reject()]
    {
        let (error, after) = refused(call).await;
        assert_eq!((error.retry_after(), after), (Some(secs(60)), secs(0)));
    }
    assert_eq!(mock.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_last_choice_counts_and_the_others_stay() {
    let (_tollgate, limiter, http, mock) = acme(provider("acme", "4/min unpaced guard 0s"));
    drain(&limiter).await;
    let (error, after) = refused(http.get(URL).wait().or_reject()).await;
    assert_eq!((error.is_rejected(), after), (true, secs(0)));
    let (_, after) = served(http.get(URL).or_reject().wait()).await;
    assert_eq!(after, secs(60));
    // Costs stay when the wait is chosen anew, and the other way round.
    let (toll, after) = served(http.get(URL).cost("requests", 2).or_reject().priority(Priority::Low)).await;
    assert_eq!((toll.remaining(), after), (Some(1), secs(0)));
    let (error, after) = refused(http.get(URL).or_reject().cost("requests", 9).cost("requests", 2)).await;
    assert_eq!((error.retry_after(), after), (Some(secs(60)), secs(0)));
    // A clone chooses for itself.
    let call = http.get(URL).or_reject().cost("requests", 2);
    let waits = call.try_clone().expect("no body").wait().cost("requests", 1);
    assert_eq!(served(waits).await.0.remaining(), Some(0));
    refused(call).await;
    assert_eq!(mock.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_default_of_the_client_is_overruled_by_the_call() {
    let (_tollgate, limiter, http, _mock) = acme(provider("acme", "4/min unpaced guard 0s"));
    let rejecting = reqwest_middleware::Extension(Call::new().or_reject().cost("requests", 2));
    let http = reqwest_middleware::ClientBuilder::from_client(http).with_init(rejecting).build();
    served(http.get(URL)).await;
    assert_eq!(limiter.peek().await.expect("in memory").limits[0].left, 2, "the cost of the default");
    drain(&limiter).await;
    let (error, after) = refused(http.get(URL)).await;
    assert_eq!((error.is_rejected(), after), (true, secs(0)));
    assert_eq!(served(http.get(URL).wait()).await.1, secs(60));
    assert_eq!(limiter.peek().await.expect("in memory").limits[0].left, 2, "the cost of the default");
}

#[tokio::test(start_paused = true)]
async fn what_a_call_costs_is_charged_and_what_it_cannot_cost_is_impossible() {
    let (tollgate, _limiter, http, mock) =
        acme(provider("acme", "10/h").limit("8/min".parse().expect("a limit")));
    served(http.get(URL).cost("requests", 3)).await;
    assert_eq!(left(&tollgate, "acme").await, 7);
    for (cost, limit) in [(9, Some("8/min")), (11, Some("10/h")), (u64::MAX, Some("10/h"))] {
        for call in [http.get(URL), http.get(URL).or_reject()] {
            let (error, after) = refused(call.cost("requests", cost)).await;
            assert!(
                error.is_impossible() && !error.is_rejected() && error.retry_after().is_none(),
                "{error}"
            );
            assert_eq!(after, secs(0));
            let shown = error.refusal().and_then(|refusal| refusal.limit()).map(ToString::to_string);
            assert_eq!(shown.as_deref(), limit, "cost {cost}");
        }
    }
    served(http.get(URL).cost("requests", 5)).await;
    served(http.get(URL).cost("requests", 0)).await;
    assert_eq!((left(&tollgate, "acme").await, mock.count()), (2, 3));

    // With the hops that are booked ahead it must fit as well.
    let (tollgate, _limiter, http, mock) = acme(provider("acme", "10/h").redirects(2));
    assert!(refused(http.get(URL).cost("requests", 9)).await.0.is_impossible());
    served(http.get(URL).cost("requests", 8)).await;
    assert_eq!((left(&tollgate, "acme").await, mock.count()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_exist_is_named() {
    let (_tollgate, _limiter, http, mock) = acme(provider("acme", "10/h"));
    let (error, _) = refused(http.get(URL).provider("amce")).await;
    assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Unknown));
    assert_eq!((error.provider(), error.is_rejected(), mock.count()), ("amce", false, 0));
}

#[tokio::test(start_paused = true)]
async fn the_toll_tells_what_it_took() {
    let provider =
        provider("acme", "20/min unpaced guard 0s").limit("5/h unpaced guard 0s".parse().expect("one"));
    let tollgate = tollgate([provider.hosts(["api.acme.example"])]);
    let limiter = tollgate.provider("acme").expect("there");
    let toll =
        async |mock: Mock, cost| served(mock.inside(&tollgate).get(URL).cost("requests", cost)).await.0;
    let told = |toll: &Toll| (toll.waited(), toll.attempts(), toll.hops(), toll.remaining());

    let first = toll(Mock::new(), 1).await;
    assert_eq!(told(&first), (secs(0), 1, 0, Some(4)));
    assert_eq!(first.limit().map(ToString::to_string).as_deref(), Some("5/h unpaced guard 0s"));
    // Sent twice, charged twice.
    let twice = toll(Mock::new().refuses_for(70), 1).await;
    assert_eq!(told(&twice), (secs(70), 2, 0, Some(2)));
    // The wait for the pause of others, and then for its own.
    limiter.pause(secs(30)).await.expect("in memory");
    let waits = toll(Mock::new().refuses_for(200), 1).await;
    assert_eq!(told(&waits), (secs(230), 2, 0, Some(0)));
    // An hour after the first there is room for one.
    let hour = toll(Mock::new(), 1).await;
    assert_eq!(told(&hour), (secs(3_600 - 300), 1, 0, Some(0)));
    // None for a call that nobody charges.
    let free = Mock::new().inside(&tollgate).get("http://nobody.example/").send().await.expect("passes");
    assert!(Toll::of(&free).is_none());
}

/// Who is served when, in the order in which they are.
type Served = Arc<Mutex<Vec<(&'static str, Duration)>>>;

/// Two of each priority, all before the first is served, the low ones first.
const CALLERS: [(&str, Priority); 6] = [
    ("low 1", Priority::Low),
    ("low 2", Priority::Low),
    ("normal 1", Priority::Normal),
    ("high 1", Priority::High),
    ("normal 2", Priority::Normal),
    ("high 2", Priority::High),
];

async fn in_turn<F: Future<Output = ()> + Send + 'static>(
    limiter: &Limiter,
    get: impl Fn(Priority) -> F,
) -> Vec<(&'static str, Duration)> {
    let served = Served::default();
    drain(limiter).await;
    let watch = Arc::new(Watch::start());
    let mut tasks = Vec::new();
    for (name, priority) in CALLERS {
        let (got, served, watch) = (get(priority), served.clone(), watch.clone());
        tasks.push(tokio::spawn(async move {
            got.await;
            served.lock().expect("no panic").push((name, watch.read()));
        }));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    served.lock().expect("no panic").clone()
}

fn expected() -> Vec<(&'static str, Duration)> {
    let order = ["high 1", "high 2", "normal 1", "normal 2", "low 1", "low 2"];
    order.into_iter().zip(1..).map(|(name, turn)| (name, secs(turn))).collect()
}

#[tokio::test(start_paused = true)]
async fn high_goes_before_normal_before_low() {
    let (_tollgate, limiter, http, mock) = acme(provider("acme", "1/s guard 0s"));
    let permits = limiter.clone();
    let order = in_turn(&limiter, |priority| {
        let permit = permits.acquire().priority(priority);
        async move { drop(permit.await.expect("its turn comes")) }
    });
    assert_eq!(order.await, expected());

    let order = in_turn(&limiter, |priority| {
        let call = http.get(URL).priority(priority);
        async move { drop(call.send().await.expect("its turn comes")) }
    });
    assert_eq!(order.await, expected());
    assert_eq!(mock.count(), 6);
}

/// Low ones that wait already, with or without a slot that is booked for the first of them.
async fn low_ones(limiter: &Limiter, count: usize, booked: bool) -> Vec<tokio::task::JoinHandle<Duration>> {
    limiter.acquire().await.expect("the only one of this second");
    if !booked {
        // After a refusal nobody asks again before there is something to be had.
        limiter.acquire().or_reject().await.expect_err("the only one of this second");
    }
    let low = || {
        let permit = limiter.acquire().priority(Priority::Low);
        tokio::spawn(async move { permit.await.expect("its turn comes").waited() })
    };
    let waiting = (0..count).map(|_| low()).collect();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(limiter.peek().await.expect("in memory").queued, count);
    waiting
}

// Certain to miss it is only who is behind too many that are served before it.
#[tokio::test(start_paused = true)]
async fn who_goes_first_is_not_refused_because_of_those_behind_it() {
    for (count, booked) in [(1, false), (30, false), (1, true), (2, true), (30, true)] {
        let (_tollgate, limiter, http, _mock) = acme(provider("acme", "1/s guard 0s"));
        let low = low_ones(&limiter, count, booked).await;
        let bound = Duration::from_millis(1_500);
        let (_, after) = served(http.get(URL).wait_at_most(bound).priority(Priority::High)).await;
        assert_eq!(after, Duration::from_millis(990), "{count} low ones, booked: {booked}");
        let mut waits = Vec::new();
        for task in low {
            waits.push(task.await.expect("no panic"));
        }
        assert_eq!(waits, (2..).map(secs).take(count).collect::<Vec<_>>(), "each a turn later");
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_behind_too_many_is_refused_at_once() {
    for booked in [false, true] {
        let (_tollgate, limiter, http, _mock) = acme(provider("acme", "1/s guard 0s"));
        let low = low_ones(&limiter, 3, booked).await;
        let bound = Duration::from_millis(3_500);
        let (error, after) = refused(http.get(URL).wait_at_most(bound).priority(Priority::Low)).await;
        assert_eq!((error.is_rejected(), after), (true, secs(0)), "booked: {booked}");
        // At four seconds, of which ten milliseconds have passed, or before: a bound from below.
        assert!(error.retry_after() <= Some(Duration::from_millis(3_990)), "{error}");
        for task in low {
            task.await.expect("no panic");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_low_one_alone_has_its_turn() {
    let (_tollgate, limiter, http, _mock) = acme(provider("acme", "1/s guard 0s"));
    served(http.get(URL).or_reject().priority(Priority::Low)).await;
    drain(&limiter).await;
    let (toll, after) = served(http.get(URL).priority(Priority::Low)).await;
    assert_eq!((toll.waited(), after), (secs(1), secs(1)));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn no_time_at_all_is_time_enough_for_a_look_at_the_store() {
    let server = redis_server::PrivateRedis::start();
    let store = tollgate::RedisStore::new(&server.url()).expect("a URL");
    let acme = provider("acme", "10/h").hosts(["api.acme.example"]);
    let tollgate = Tollgate::builder().store(store).provider(acme).build().expect("a tollgate");
    let (limiter, http) = (tollgate.provider("acme").expect("there"), Mock::new().inside(&tollgate));
    served(http.get(URL).or_reject()).await;
    served(http.get(URL).wait_at_most(secs(0))).await;
    served(http.get(URL).deadline(from_now(secs(0)))).await;
    limiter.acquire().or_reject().await.expect("there is room");
    limiter.acquire().wait_at_most(secs(0)).await.expect("there is room");
    limiter.acquire().deadline(from_now(secs(0))).await.expect("there is room");
    assert_eq!(left(&tollgate, "acme").await, 4);
}
