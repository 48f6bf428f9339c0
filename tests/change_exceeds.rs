//! A limit is set at run time: what was used is forgotten, the old one goes on, or nobody hears of it.

#[path = "support/remote.rs"]
mod remote;
#[path = "support/mod.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use remote::Remote;
use support::Watch;
use tokio::{sync::Mutex, task::JoinSet};
use tollgate::{Limit, Limiter, Provider, Scope, Tollgate, store::Agreed};

fn limit(text: &str) -> Limit {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn memory(limits: &[&str]) -> (Tollgate, Limiter) {
    Remote::here().replica(limits)
}

async fn set(limiter: &Limiter, text: &str) {
    limiter.set_limit(limit(text)).await.unwrap_or_else(|error| panic!("{error}"));
}

/// What is in force of the first limit, and what is left of it.
async fn stands(limiter: &Limiter) -> (String, u64) {
    let limits = limiter.peek().await.expect("it answers").limits;
    (limits[0].in_force.to_string(), limits[0].left)
}

async fn take(limiter: &Limiter, count: usize) {
    for _ in 0..count {
        limiter.acquire().or_reject().await.unwrap_or_else(|error| panic!("{error}"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_used_is_forgotten() {
    let (_tollgate, limiter) = memory(&["10/s unpaced guard 0"]);
    take(&limiter, 8).await;
    set(&limiter, "5/s unpaced guard 0").await;
    assert_eq!(stands(&limiter).await, ("5/s unpaced guard 0s".to_owned(), 0));
    let refused = limiter.acquire().or_reject().await.expect_err("8 of 5 are used");
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(refused.refusal().and_then(|it| it.limit()), Some(&limit("5/s unpaced guard 0")));
    set(&limiter, "20/s unpaced guard 0").await;
    assert_eq!(stands(&limiter).await, ("20/s unpaced guard 0s".to_owned(), 12));
    take(&limiter, 12).await;
    limiter.acquire().or_reject().await.expect_err("20 of 20 are used");
}

/// Of a bucket what is missing stays missing; only more than its size once more is let off.
#[tokio::test(start_paused = true)]
async fn what_is_missing_of_a_bucket_is_forgotten() {
    let (_tollgate, limiter) = memory(&["10/s burst 20 guard 0"]);
    take(&limiter, 15).await;
    set(&limiter, "10/s burst 10 guard 0").await;
    assert_eq!(stands(&limiter).await.1, 0);
    let retry_after = limiter.acquire().or_reject().await.expect_err("15 of 10 are used").retry_after();
    assert_eq!(retry_after, Some(Duration::from_millis(600)));
    set(&limiter, "10/s burst 100 guard 0").await;
    let retry_after =
        limiter.acquire().or_reject().await.expect_err("it is no fuller for that").retry_after();
    assert_eq!(retry_after, Some(Duration::from_millis(600)));
    set(&limiter, "10/s burst 1 guard 0").await;
    let retry_after = limiter.acquire().or_reject().await.expect_err("in debt").retry_after();
    assert_eq!(retry_after, Some(Duration::from_millis(200)), "as much as it holds, and one");
    // What came until now came at the old rate: 0.9 of a token, which is lost.
    tokio::time::sleep(Duration::from_millis(190)).await;
    set(&limiter, "1000/s burst 1 guard 0").await;
    let retry_after = limiter.acquire().or_reject().await.expect_err("0.9 of a token").retry_after();
    assert_eq!(retry_after, Some(Duration::from_millis(1)));
    tokio::time::sleep(Duration::from_millis(500)).await;
    // And what comes until the change is noticed comes at the new one, if that is slower.
    set(&limiter, "1/s burst 1000 guard 0").await;
    let retry_after = limiter.acquire().or_reject().await.expect_err("0.5 of a token").retry_after();
    assert_eq!(retry_after, Some(Duration::from_millis(500)));
}

/// A day, and places in flight: the count of both is what counts in the store.
#[tokio::test(start_paused = true)]
async fn what_a_day_has_used_is_forgotten() {
    let (_tollgate, limiter) = memory(&["100/day aligned", "3 in flight"]);
    let flying = limiter.acquire().or_reject().await.expect("free");
    let _other = limiter.acquire().or_reject().await.expect("free");
    set(&limiter, "40/day aligned").await;
    set(&limiter, "2 in flight").await;
    let limits = limiter.peek().await.expect("it answers").limits;
    assert_eq!((limits[0].left, limits[1].left), (38, 0));
    limiter.acquire().or_reject().await.expect_err("2 of 2 are in flight");
    drop(flying);
    limiter.acquire().or_reject().await.expect("one has landed");
}

/// When permits were given, since the change: by replicas some way off, saturated all the time.
async fn fleet(stores: &[Remote], old: &str, new: &str, before: Duration, after: Duration) -> Vec<Duration> {
    let (flown, watch) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Watch::start()));
    let provider = || Provider::new("acme").max_wait(Duration::from_secs(3_600));
    let replicas: Vec<_> = stores.iter().map(|store| store.replica_of(provider(), &[old])).collect();
    let mut loops = JoinSet::new();
    for (_, limiter) in &replicas {
        for _ in 0..20 {
            let (limiter, flown, watch) = (limiter.clone(), flown.clone(), watch.clone());
            loops.spawn(async move {
                loop {
                    limiter.acquire().await.expect("served");
                    flown.lock().await.push(watch.read());
                }
            });
        }
    }
    tokio::time::sleep(before).await;
    set(&replicas[0].1, new).await;
    let change = watch.read();
    tokio::time::sleep(after).await;
    loops.shutdown().await;
    let flown = flown.lock().await;
    flown.iter().filter_map(|at| at.checked_sub(change)).collect()
}

fn most_within(flown: &[Duration], window: Duration) -> usize {
    let within = |at: usize| flown[at..].iter().take_while(|other| **other < flown[at] + window).count();
    (0..flown.len()).map(within).max().unwrap_or(0)
}

/// What a replica holds that does not hear of it flies for a horizon and a round trip at most; far slots of before,
/// which lie windows ahead here, do not fly at all.
#[tokio::test(start_paused = true)]
async fn the_old_one_goes_on() {
    for (old, new, window, most) in [
        ("100/s guard 10ms", "50/s guard 10ms", Duration::from_secs(1), 50),
        ("4/10s guard 10ms", "1/10s guard 10ms", Duration::from_secs(10), 1),
    ] {
        for hears in [true, false] {
            let store = Remote::new(Duration::from_millis(4));
            let stores: Vec<_> = (0..5)
                .map(|at| if hears || at == 0 { store.another() } else { store.another().deaf() })
                .collect();
            let flown = fleet(&stores, old, new, 4 * window, 12 * window).await;
            let late = Duration::from_millis(50 + 8 + 2);
            let before = flown.iter().filter(|at| **at < window).count();
            assert!(before <= 4 * most, "{before} in the first window under {new}");
            let later: Vec<_> = flown.into_iter().filter(|at| *at > window + late).collect();
            assert!(most_within(&later, window) <= most, "{old} to {new}, hears: {hears}: {later:?}");
            assert!(later.len() >= 9 * most, "{} under {new}, hears: {hears}", later.len());
        }
    }
}

/// Also who would wait for it.
#[tokio::test(start_paused = true)]
async fn who_wants_more_than_there_is_waits_for_ever() {
    let (_tollgate, limiter) = memory(&["10/s unpaced guard 0"]);
    let (_other, other) = Remote::new(Duration::from_millis(5)).replica(&["10/s unpaced guard 0"]);
    for limiter in [limiter, other] {
        take(&limiter, 10).await;
        let waiting = tokio::spawn(limiter.acquire().cost("requests", 8).into_future());
        tokio::time::sleep(Duration::from_millis(100)).await;
        set(&limiter, "5/s unpaced guard 0").await;
        let refused = waiting.await.expect("no panic").expect_err("8 are never had");
        assert!(refused.is_impossible(), "{refused}");
        assert!(refused.to_string().contains("5/s"), "{refused}");
        assert!(limiter.acquire().cost("requests", 6).await.expect_err("nor 6").is_impossible());
        limiter.acquire().cost("requests", 5).await.expect("these are");
    }
}

/// Whoever hears the bell, and all in the process that sets it: also if nothing else happens for hours.
#[tokio::test(start_paused = true)]
async fn who_waits_hears_of_it_in_an_hour() {
    for own in [true, false] {
        let store = Remote::new(Duration::from_millis(5));
        let patient = || Provider::new("acme").max_wait(Duration::from_secs(7_200));
        let first = if own { store.another().deaf() } else { store.another() };
        let (_one, one) = first.replica_of(patient(), &["10/h unpaced"]);
        let (_other, other) = store.another().replica_of(patient(), &["10/h unpaced"]);
        take(&one, 10).await;
        let waits = if own { &one } else { &other };
        let waiting = tokio::spawn(waits.acquire().cost("requests", 8).into_future());
        tokio::time::sleep(Duration::from_secs(1)).await;
        set(&one, "5/h unpaced").await;
        let told = tokio::time::timeout(Duration::from_millis(100), waiting).await;
        let refused = told.expect("at once").expect("no panic").expect_err("8 are never had");
        assert!(refused.is_impossible(), "{refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_not_there_is_set() {
    let provider = Provider::new("acme").limit_in(Scope::route("/a").each("tenant"), limit("10/s"));
    let (_tollgate, limiter) = Remote::here().replica_of(provider, &["100/min", "1000000000 tokens/day"]);
    for (scope, text, told) in [
        (Scope::all(), "10/s", "100/min"),
        (Scope::all(), "100/min burst 5", "100/min, 1000000000 tokens/day"),
        (Scope::route("/a"), "5/s", r#"10/s (/a, each tenant)"#),
    ] {
        let error = limiter.set_limit_in(scope, limit(text)).await.expect_err("not there").to_string();
        assert!(error.contains(told) && error.contains(text) && error.contains("acme"), "{error}");
    }
    let error = limiter.set_limit(limit("5 tokens/day")).await.expect_err("less than a grain").to_string();
    assert!(error.contains("5 tokens/day") && error.contains("1000000000 tokens/day"), "{error}");
    assert_eq!(stands(&limiter).await.0, "100/min", "nothing was set");
}

/// For each value of a key, and for the values that nobody has used yet.
#[tokio::test(start_paused = true)]
async fn one_of_a_scope_is_set_for_one_value() {
    let scope = || Scope::all().each("tenant");
    let provider = Provider::new("acme").limit_in(scope(), limit("10/s unpaced guard 0"));
    let (_tollgate, limiter) = Remote::here().replica_of(provider, &["1000/s unpaced guard 0"]);
    let of = |tenant: &str| limiter.acquire().key("tenant", tenant).or_reject();
    for _ in 0..3 {
        of("a").await.expect("free");
    }
    limiter.set_limit_in(scope(), limit("4/s unpaced guard 0")).await.expect("it is set");
    of("a").await.expect("the fourth");
    of("a").await.expect_err("the fifth");
    for _ in 0..4 {
        of("b").await.expect("free");
    }
    of("b").await.expect_err("the fifth");
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_changes_wins() {
    let store = Remote::new(Duration::from_millis(5));
    let (one, other) = (store.another().replica(&["100/s"]), store.another().replica(&["100/s"]));
    set(&one.1, "50/s").await;
    set(&other.1, "80/s").await;
    assert_eq!((stands(&one.1).await.0, stands(&other.1).await.0), ("80/s".into(), "80/s".into()));
    set(&one.1, "20/s").await;
    assert_eq!((stands(&one.1).await.0, stands(&other.1).await.0), ("20/s".into(), "20/s".into()));
}

/// A change is for the configuration there was: another one, once it is alone, has its own word again.
#[tokio::test(start_paused = true)]
async fn a_change_outlives_the_next_deploy() {
    let store = Remote::here();
    let (old_tollgate, old) = store.another().replica(&["100/s"]);
    set(&old, "50/s").await;
    let (_tollgate, new) = store.another().replica(&["200/s"]);
    assert_eq!((stands(&old).await.0, stands(&new).await.0), ("50/s".into(), "50/s".into()));
    old_tollgate.shutdown().await;
    for second in 0..90 {
        let in_force = stands(&new).await.0;
        assert!(in_force == "50/s" || second >= 60, "{in_force} after {second} s");
        let _ = new.acquire().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(stands(&new).await.0, "200/s");
    // Whoever comes back with the old one makes the smaller of the two.
    let (_tollgate, late) = store.another().replica(&["100/s"]);
    late.acquire().await.expect("free");
    assert_eq!((stands(&late).await.0, stands(&new).await.0), ("100/s".into(), "100/s".into()));
}

/// As long as somebody who is configured as then asks within a week: nobody needs to ask each minute.
#[tokio::test(start_paused = true)]
async fn a_change_is_forgotten_over_night() {
    let store = Remote::here();
    let (_tollgate, limiter) = store.another().replica(&["100/s"]);
    set(&limiter, "50/s").await;
    tokio::time::sleep(Duration::from_secs(12 * 3_600)).await;
    assert_eq!(stands(&limiter).await.0, "50/s");
    let (_tollgate, fresh) = store.another().replica(&["100/s"]);
    assert_eq!(stands(&fresh).await.0, "50/s");
}

/// What one gate has learned the others of its process know: told once more it is nothing new, or each of as many gates as
/// there are credentials would have all of them give back what they hold.
#[tokio::test(start_paused = true)]
async fn what_is_known_changes_it_once_more() {
    let agreed = Agreed::new("acme".into(), "requests:1s".to_owned(), Scope::all(), limit("100/s"));
    let told = ["is 100/s\nis 80/s", "is 100/s\nis 80/s\nnow 7 50/s\nfor 100/s\nfor 80/s"];
    for (at, accord) in told.into_iter().enumerate() {
        for _ in 0..3 {
            assert_eq!(agreed.learn(accord), None);
            assert_eq!(agreed.version(), at as u64 + 1);
        }
    }
    assert_eq!(agreed.in_force(), limit("50/s"));
}
