//! A wait ends at its bound at the latest, and at once when it is certain to miss it.

#[path = "support/mod.rs"]
mod support;

use std::{num::NonZeroU32, time::Duration};

use support::{Watch, limiter, with};
use tollgate::{Limiter, Provider, Reason};

async fn drain(limiter: &Limiter) {
    while limiter.acquire().or_reject().await.is_ok() {}
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn certain_to_miss_is_refused_at_once() {
    let limiter = limiter(&["10/min unpaced guard 0"]);
    drain(&limiter).await;
    let watch = Watch::start();
    let refused = limiter.acquire().wait_at_most(ms(59_000)).await.expect_err("it comes back after 60 s");
    assert_eq!(watch.read(), ms(0));
    assert_eq!(refused.retry_after(), Some(ms(60_000)));
    let refusal = refused.refusal().expect("the store is fine");
    assert_eq!((refusal.reason(), refusal.provider()), (Reason::Limited, "acme"));
    assert_eq!(refusal.limit().map(ToString::to_string), Some("10/min unpaced guard 0s".to_owned()));
    limiter.acquire().wait_at_most(ms(61_000)).await.expect("within its bound");
    assert_eq!(watch.read(), ms(60_000));
}

#[tokio::test(start_paused = true)]
async fn who_queues_behind_too_many_is_refused_before_its_time() {
    let limiter = limiter(&["10/s guard 0"]);
    drain(&limiter).await;
    let watch = Watch::start();
    let mut tasks = Vec::new();
    for _ in 0..40 {
        let limiter = limiter.clone();
        tasks.push(tokio::spawn(async move {
            (limiter.acquire().wait_at_most(ms(2_000)).await.is_ok(), Watch::start())
        }));
    }
    let (mut served, mut refused, mut longest) = (0, 0, Duration::ZERO);
    for task in tasks {
        let (ok, since) = task.await.expect("no panic");
        if ok {
            served += 1;
        } else {
            refused += 1;
            longest = longest.max(watch.read() - since.read());
        }
    }
    // One second until the burst comes back, then ten a second: eleven within two seconds.
    assert_eq!((served, refused), (11, 29));
    assert!(longest <= ms(1_100), "refused only after {longest:?} of 2 s");
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_waited_out_or_refused_at_once() {
    let limiter = limiter(&["10/s guard 0"]);
    assert_eq!(limiter.pause(ms(3_000)).await.expect("in memory"), ms(3_000));
    assert_eq!(limiter.pause(ms(1_000)).await.expect("in memory"), ms(3_000), "never shorter");
    assert_eq!(limiter.peek().await.expect("in memory").paused, Some(ms(3_000)));
    let refused = limiter.acquire().or_reject().await.expect_err("paused");
    assert_eq!(refused.retry_after(), Some(ms(3_000)));
    assert_eq!(refused.refusal().map(|refusal| refusal.reason()), Some(Reason::Paused));
    let watch = Watch::start();
    limiter.acquire().await.expect("after the pause");
    assert_eq!(watch.read(), ms(3_000));
    // It resumes paced: no burst right after.
    let refused = limiter.acquire().or_reject().await.expect_err("paced");
    assert_eq!(refused.retry_after(), Some(ms(100)));
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_says_so() {
    let limiter = with(Provider::new("acme").queue(3), &["1/s"]);
    drain(&limiter).await;
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire().await.map(|_| ()) })
        })
        .collect();
    tokio::time::sleep(ms(1)).await;
    let refused = limiter.acquire().await.expect_err("three wait already");
    assert!(
        refused.is_queue_full() && !refused.is_rejected() && refused.retry_after().is_none(),
        "{refused}"
    );
    for task in waiting {
        task.await.expect("no panic").expect("served in the end");
    }
}

#[tokio::test(start_paused = true)]
async fn never_is_not_later() {
    let limiter = limiter(&["10/s", "5/min"]);
    for (cost, shown) in [(6, "5/min"), (11, "10/s"), (u64::MAX, "10/s")] {
        let refused = limiter.acquire().cost("requests", cost).await.expect_err("more than there ever is");
        assert!(refused.is_impossible() && !refused.is_rejected(), "{refused}");
        assert!(refused.to_string().contains(shown), "{refused}");
    }
    limiter.acquire().cost("requests", 0).await.expect("what costs nothing");
    let left: Vec<_> =
        limiter.peek().await.expect("in memory").limits.iter().map(|limit| limit.left).collect();
    assert_eq!(left, [10, 5], "a refused call is charged nowhere");
}

#[tokio::test(start_paused = true)]
async fn the_ceiling_stops_a_runaway_replica_only() {
    let ceiling = NonZeroU32::new(5).expect("not zero");
    let limiter = with(Provider::new("acme").ceiling(ceiling), &["1000/s"]);
    for _ in 0..5 {
        limiter.acquire().or_reject().await.expect("below the ceiling");
    }
    let refused = limiter.acquire().or_reject().await.expect_err("at the ceiling");
    assert_eq!(refused.refusal().map(|refusal| refusal.reason()), Some(Reason::Ceiling));
    assert_eq!(refused.retry_after(), Some(ms(200)));
    let watch = Watch::start();
    limiter.acquire().await.expect("waits under the ceiling");
    assert!((ms(200)..=ms(202)).contains(&watch.read()), "{:?}", watch.read());
    assert_eq!(limiter.peek().await.expect("in memory").limits[0].left, 994);
}

#[tokio::test(start_paused = true)]
async fn after_shutdown_nobody_is_served_and_nothing_stays_booked() {
    let tollgate = tollgate::Tollgate::builder()
        .provider(Provider::new("acme").limit("10/min unpaced guard 0".parse().expect("a limit")))
        .build()
        .expect("built");
    let limiter = tollgate.provider("acme").expect("there");
    drain(&limiter).await;
    let waiting = limiter.clone();
    let waiting = tokio::spawn(async move { waiting.acquire().wait_at_most(ms(60_001)).await.map(|_| ()) });
    tokio::time::sleep(ms(10)).await;
    tollgate.shutdown().await;
    assert!(waiting.await.expect("no panic").expect_err("shut down").is_closed());
    assert!(limiter.acquire().await.expect_err("shut down").is_closed());
    tokio::time::sleep(ms(59_990)).await;
    // The slot booked for the one who waited is not used up.
    assert_eq!(limiter.peek().await.expect("in memory").limits[0].left, 10);
}

#[test]
fn what_cannot_work_is_not_built() {
    use tollgate::Tollgate;

    let build = |provider: Provider| Tollgate::builder().provider(provider).build().map(|_| ());
    let limit = |text: &str| text.parse().unwrap_or_else(|error| panic!("{error}"));
    for (provider, shown) in [
        (Provider::new("acme"), "no limit"),
        (Provider::new("a{b").limit(limit("1/s")), "cannot stand in a key"),
        (Provider::new("").limit(limit("1/s")), "cannot stand in a key"),
        (Provider::new("acme").limit(limit("100/min")).limit(limit("50/min")), "100/min and 50/min"),
        (Provider::new("acme").limit(limit("89999999/2h burst 1 guard 60min")), "counted exactly"),
    ] {
        let error = build(provider).expect_err(shown).to_string();
        assert!(error.contains(shown), "{error}");
    }
    let error = Tollgate::builder().build().map(|_| ()).expect_err("nothing to limit").to_string();
    assert!(error.contains(".provider(..)"), "{error}");
    let twice = Tollgate::builder()
        .provider(Provider::new("acme").limit(limit("1/s")))
        .provider(Provider::new("acme").limit(limit("2/s")))
        .build();
    assert!(twice.expect_err("one name").to_string().contains("two providers"));
    let tollgate =
        Tollgate::builder().provider(Provider::new("acme").limit(limit("1/s"))).build().expect("built");
    assert!(tollgate.provider("amce").expect_err("a typo").to_string().contains("there are acme"));
}
