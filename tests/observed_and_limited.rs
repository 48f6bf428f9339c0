//! Rolling it out: what is only observed, or disabled, and limits all the same.

#![cfg(feature = "middleware")]

#[path = "support/layers.rs"]
mod stack;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::time::Duration;

use stack::ROOMY;
use tollgate::{Limiter, MemoryStore, Provider, RequestBuilderExt, Toll, Tollgate, reqwest::Response};
use upstream::{Canned, Log, URL, fine, open, paused, provider};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn toll(response: &Response) -> &Toll {
    Toll::of(response).expect("it went through a gate")
}

#[tokio::test(start_paused = true)]
async fn a_disabled_tollgate_limits() {
    let tollgate = Tollgate::disabled();
    let canned = Canned::new(|_, _| upstream::refuse(429, "60"));
    let http = canned.behind(&tollgate);
    for request in
        [http.get(URL), http.get(URL).or_reject(), http.get(URL).provider("any").cost("requests", 0)]
    {
        let response = request.send().await.expect("answered");
        assert_eq!(response.status(), 429);
        assert!(Toll::of(&response).is_none());
    }
    assert_eq!(canned.times(), [ms(0); 3]);
    let limiter = tollgate.provider("any").expect("any");
    for _ in 0..2_000 {
        let permit = limiter.acquire().or_reject().cost("requests", 1_000).await.expect("not limited");
        assert_eq!((permit.remaining(), permit.waited()), (None, ms(0)));
        permit.give_back();
    }
}

async fn observed(provider: Provider, calls: usize) -> (Limiter, Canned, Tollgate) {
    let (tollgate, limiter) = open(provider.observe(true));
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    for _ in 0..calls {
        let response = http.get(URL).send().await.expect("observed only");
        assert_eq!((toll(&response).remaining(), toll(&response).waited()), (None, ms(0)));
        assert_eq!(toll(&response).attempts(), 1);
    }
    assert_eq!(canned.times(), vec![ms(0); calls], "nobody waits");
    (limiter, canned, tollgate)
}

#[tokio::test(start_paused = true)]
async fn an_observed_provider_is_limited_or_tells_nothing() {
    let (log, _guard) = Log::capture();
    // Two fly at once, two after a minute, one after two.
    let (limiter, canned, tollgate) = observed(provider("2/min unpaced guard 0"), 5).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (0, 0), "known when it is over");
    // Two that would not wait so long, one that costs too much.
    let http = canned.behind(&tollgate);
    for request in
        [http.get(URL).or_reject(), http.get(URL).wait_at_most(ms(500)), http.get(URL).cost("requests", 3)]
    {
        assert_eq!(toll(&request.send().await.expect("observed only")).remaining(), None);
    }
    tokio::time::sleep(ms(10)).await;
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (0, 3));
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (3, 3));
    assert_eq!(canned.seen().len(), 8);
    let log = log.text();
    let told = |what: &str| log.lines().filter(|line| line.contains("INFO") && line.contains(what)).count();
    assert_eq!((told("would have waited"), told("would have been refused")), (3, 3), "{log}");
    assert!(log.lines().all(|line| !line.contains("observed only") || line.contains("provider=\"acme\"")));
}

#[tokio::test(start_paused = true)]
async fn an_observed_refusal_stops_or_repeats_calls() {
    let (tollgate, limiter) = open(provider(ROOMY).observe(true));
    let canned = Canned::new(|_, _| upstream::refuse(429, "2"));
    let http = canned.behind(&tollgate);
    for _ in 0..2 {
        let response = http.get(URL).send().await.expect("answered");
        assert_eq!((response.status().as_u16(), toll(&response).attempts()), (429, 1));
    }
    assert_eq!(canned.times(), [ms(0); 2]);
    assert_eq!(paused(&limiter).await, Some(ms(2_000)), "others may heed it");
    assert_eq!(limiter.counts().refusals, 2);
}

#[tokio::test(start_paused = true)]
async fn hops_booked_ahead_are_observed_as_if_all_were_used() {
    // Whoever is limited gets back what he has not used: ten calls fly at once, also with a hop booked each.
    let (limiter, ..) = observed(provider("10/min unpaced guard 0").redirects(1), 9).await;
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_nameless_tollgate_says_nothing() {
    let (log, _guard) = Log::capture();
    let nameless = Provider::new("acme").limit(ROOMY.parse().expect("a limit"));
    let tollgate = Tollgate::builder().store(MemoryStore::new()).provider(nameless).build().expect("built");
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    assert!(log.text().contains("WARN") && log.text().contains("only calls that name their provider"));
    assert!(Toll::of(&http.get(URL).send().await.expect("passes")).is_none());
    let named = http.get(URL).provider("acme").send().await.expect("accepted");
    assert_eq!(toll(&named).remaining(), Some(999));
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_store_that_fails_is_observed_as_a_limit() {
    let (log, _guard) = Log::capture();
    let away = tollgate::RedisStore::new("redis://127.0.0.1:1").expect("a URL").timeout(ms(50));
    let provider = provider(ROOMY).observe(true);
    let tollgate = Tollgate::builder().store(away).provider(provider).build().expect("built");
    let response = Canned::new(|_, _| fine()).behind(&tollgate).get(URL).send().await.expect("observed only");
    assert_eq!(response.status(), 200);
    for _ in 0..1_000 {
        if log.text().contains("the store failed") {
            break;
        }
        tokio::time::sleep(ms(5)).await;
    }
    let counts = tollgate.provider("acme").expect("there").counts();
    assert_eq!((counts.would_wait, counts.would_refuse), (0, 0));
    assert!(log.text().contains("the store failed"), "{}", log.text());
}
