//! The store loses its state, and with it a limit that was set at run time; or it cannot be reached to set one.

#![cfg(feature = "redis")]

#[path = "support/redis.rs"]
mod redis_server;

use std::time::Duration;

use redis_server::PrivateRedis;
use tollgate::{Limit, Limiter, Provider, RedisStore, Tollgate};

fn limit(text: &str) -> Limit {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn replica(redis: &PrivateRedis, text: &str) -> (Tollgate, Limiter) {
    // Machines that run tests are busy.
    let store = RedisStore::new(&redis.url()).expect("a URL").timeout(Duration::from_secs(10));
    let tollgate =
        Tollgate::builder().store(store).provider(Provider::new("acme").limit(limit(text))).build();
    let tollgate = tollgate.unwrap_or_else(|error| panic!("{error}"));
    let limiter = tollgate.provider("acme").unwrap_or_else(|error| panic!("{error}"));
    (tollgate, limiter)
}

async fn in_force(limiter: &Limiter) -> String {
    limiter.peek().await.expect("it answers").limits[0].in_force.to_string()
}

#[tokio::test]
async fn a_change_goes_with_the_state() {
    let redis = PrivateRedis::start();
    let mut look = redis.look();
    let mut forget = || redis::cmd("FLUSHALL").exec(&mut look).expect("FLUSHALL");
    let (_old, old) = replica(&redis, "1000/min");
    let (_new, new) = replica(&redis, "800/min");
    for limiter in [&old, &new] {
        limiter.acquire().await.expect("served");
    }
    new.set_limit(limit("900/min")).await.expect("it is set");
    assert_eq!((in_force(&old).await, in_force(&new).await), ("900/min".to_owned(), "900/min".to_owned()));

    // Whoever asks first tells it again, and then the others for what they are configured with.
    for _ in 0..3 {
        forget();
        old.acquire().await.expect("served");
        assert_eq!(in_force(&old).await, "900/min");
        let (_fresh, fresh) = replica(&redis, "1000/min");
        fresh.acquire().await.expect("served");
        assert_eq!(in_force(&fresh).await, "900/min");
        new.acquire().await.expect("served");
        for limiter in [&old, &new, &fresh] {
            limiter.acquire().await.expect("served");
            assert_eq!(in_force(limiter).await, "900/min");
        }
    }

    // One that was set since then by somebody who did not know it is the later one.
    forget();
    let (_fresh, fresh) = replica(&redis, "1000/min");
    fresh.set_limit(limit("700/min")).await.expect("it is set");
    for limiter in [&old, &fresh] {
        limiter.acquire().await.expect("served");
        assert_eq!(in_force(limiter).await, "700/min");
    }
}

/// Nothing else would tell it for an hour.
#[tokio::test]
async fn who_waits_elsewhere_does_not_hear_of_a_change() {
    let redis = PrivateRedis::start();
    let (_one, one) = replica(&redis, "10/h unpaced");
    let (_other, other) = replica(&redis, "10/h unpaced");
    for _ in 0..10 {
        one.acquire().await.expect("served");
    }
    let waiting = tokio::spawn(other.acquire().cost("requests", 8).into_future());
    while other.peek().await.expect("it answers").queued == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    one.set_limit(limit("5/h unpaced")).await.expect("it is set");
    // A message takes a millisecond, a machine that runs tests may take a little longer.
    let told = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    let refused = told.expect("it hears").expect("no panic").expect_err("8 are never had");
    assert!(refused.is_impossible(), "{refused}");
}

#[tokio::test]
async fn a_change_that_was_not_stored_is_reported_as_set() {
    let redis = PrivateRedis::start();
    let (_tollgate, limiter) = replica(&redis, "1000/min");
    limiter.acquire().await.expect("served");
    drop(redis);
    let error = limiter.set_limit(limit("500/min")).await.expect_err("nobody is there");
    assert!(error.is_store(), "{error}");
}
