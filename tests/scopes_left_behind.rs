//! Scopes come and go: what is left behind by those that have gone, and what is lost of those that have not.

#![cfg(feature = "middleware")]

#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/scopes.rs"]
mod scopes;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{
    future::IntoFuture,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use scopes::{OTHER_URL, limit, memory, ms};
use support::Watch;
use tollgate::{Limiter, Priority, Provider, Scope};
use upstream::{Canned, after};
#[cfg(feature = "redis")]
use {scopes::on, std::sync::Arc, tollgate::RedisStore};

/// Gates that are kept in any case, and that of the calls without a value.
const FEW: usize = 1_024 + 1;

/// How many credentials come, each once. `CREDENTIALS=1000000` lets more come.
fn credentials() -> usize {
    std::env::var("CREDENTIALS").ok().and_then(|number| number.parse().ok()).unwrap_or(200_000)
}

/// Each has one in ten seconds. Half of the guard is for a machine that is busy.
const SLOW: &str = "1/9s unpaced guard 1s";

fn tenants(text: &str) -> Provider {
    Provider::new("acme").hosts(["acme.test"]).limit_in(Scope::all().each("tenant"), limit(text))
}

/// So many others come once, at this very moment.
async fn flood(limiter: &Limiter, others: usize) {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    for _ in 0..others {
        let other = format!("other {}", NUMBER.fetch_add(1, Relaxed));
        limiter.acquire().key("tenant", other).or_reject().await.expect("its first");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_where_somebody_waits_is_made_anew() {
    let (_store, _tollgate, limiter) = memory(tenants(SLOW));
    let watch = Watch::start();
    let ask = |priority| limiter.acquire().key("tenant", "blue").priority(priority);
    ask(Priority::Normal).await.expect("the first");
    let low = [Priority::Low; 2].map(|priority| tokio::spawn(ask(priority).into_future()));
    tokio::time::sleep(ms(10)).await;
    flood(&limiter, 5_000).await;
    assert!(limiter.gates() <= FEW, "{} gates", limiter.gates());
    // At another gate it would not go before the low ones.
    let high = tokio::spawn(ask(Priority::High).into_future());
    tokio::time::sleep(ms(10)).await;
    flood(&limiter, 5_000).await;
    let mut waited = Vec::new();
    for caller in [high].into_iter().chain(low) {
        waited.push(caller.await.expect("no panic").expect("its turn comes").waited());
    }
    assert_eq!(waited, [9_990, 20_000, 30_000].map(ms));
    assert_eq!(watch.read(), ms(30_000));
}

#[tokio::test(start_paused = true)]
async fn a_gate_of_which_somebody_holds_a_permit_is_made_anew() {
    let (_store, tollgate, limiter) = memory(tenants(SLOW));
    let canned = Canned::new(after(1, "30")).taking(ms(200));
    let get = || canned.behind(&tollgate).get(OTHER_URL).header("tenant", "blue").send();
    let refused = tokio::spawn(get());
    tokio::time::sleep(ms(50)).await;
    flood(&limiter, 5_000).await;
    // Comes while the first is under way. That is refused, and has its place before this one again.
    let other = tokio::spawn(get());
    tokio::time::sleep(ms(10)).await;
    flood(&limiter, 5_000).await;
    let watch = Watch::start();
    assert_eq!(refused.await.expect("no panic").expect("accepted").status(), 200);
    assert_eq!(watch.read(), ms(30_400 - 60), "the refusal at 200, its pause, and the way there and back");
    other.await.expect("no panic").expect("accepted");
    assert_eq!(canned.times(), [100, 30_300, 40_300].map(ms));
}

#[tokio::test(start_paused = true)]
async fn what_was_given_back_without_a_runtime_is_lost() {
    let provider = tenants("1/366day").limit_in(Scope::route("/a"), limit("1/366day"));
    let (_store, _tollgate, limiter) = memory(provider);
    let permit = limiter.acquire().route("/a").key("tenant", "blue").await.expect("the only one");
    std::thread::scope(|scope| _ = scope.spawn(|| permit.give_back()));
    let others = |tenant| limiter.acquire().route("/a").key("tenant", tenant).or_reject().into_future();
    others("red").await.expect_err("nobody could tell the store yet");
    flood(&limiter, 2_000).await;
    others("green").await.expect("its gate was not dropped before it had told");
}

/// Of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn credentials_seen_once_stay_in_memory() {
    let (store, _tollgate, limiter) = memory(tenants("5/100ms"));
    let (all, before) = (credentials(), resident());
    let mut most = 0;
    for number in 0..all {
        limiter.acquire().key("tenant", number.to_le_bytes()).or_reject().await.expect("its first");
        // A thousand a second.
        if number % 10 == 0 {
            tokio::time::sleep(ms(10)).await;
        }
        most = most.max(limiter.gates());
    }
    let (states, members) = store.kept();
    println!(
        "{all} credentials: {most} gates, {states} states, {members} members, {} KiB more",
        resident() - before
    );
    assert!(most <= FEW, "{most} gates");
    // Whoever was heard of within a minute is remembered, to be told the same again; at most twice that is there.
    let minute = 60_000.min(all);
    assert!(states + members <= 2 * (minute + 1_500) + FEW, "{states} states and {members} members");
    tokio::time::sleep(Duration::from_secs(62)).await;
    limiter.acquire().key("tenant", "the last").or_reject().await.expect("its first");
    let (states, members) = store.kept();
    assert!(states <= 3 && members <= 3, "{states} states and {members} members");
}

#[cfg(feature = "redis")]
mod in_redis {
    use super::*;

    const WEEK: i64 = 7 * 86_400_000;

    /// In milliseconds; none is without.
    fn ttls(look: &mut redis::Connection) -> Vec<(String, i64)> {
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(look).expect("KEYS");
        let ttls = keys.into_iter().map(|key| {
            let ttl: i64 = redis::cmd("PTTL").arg(&key).query(look).expect("PTTL");
            (key, ttl)
        });
        // -2: it has gone since.
        ttls.filter(|(_, ttl)| *ttl != -2).collect()
    }

    #[tokio::test]
    async fn credentials_seen_once_stay() {
        let redis = redis_server::PrivateRedis::start();
        let look = &mut redis.look();
        let short = |scope, text: &str| (scope, limit(text));
        let limits = [
            short(Scope::all(), "1000000/100ms"),
            short(Scope::route("/a"), "1000000/100ms"),
            short(Scope::all().each("tenant"), "5/100ms"),
            short(Scope::route("/a").each("tenant"), "10/s burst 5"),
        ];
        let provider = Provider::new("acme").hosts(["acme.test"]);
        let provider =
            limits.into_iter().fold(provider, |provider, (scope, limit)| provider.limit_in(scope, limit));
        let store = RedisStore::new(&redis.url()).expect("a URL").timeout(ms(10_000));
        let (_tollgate, limiter) = on(&Arc::new(store), provider);
        let (mut number, mut fields) = (0, Vec::new());
        for many in [64, 2_048] {
            for _ in 0..many / 64 {
                let ask =
                    |at: usize| limiter.acquire().route("/a").key("tenant", (number + at).to_le_bytes());
                let wave: Vec<_> = (0..64).map(|at| tokio::spawn(ask(at).into_future())).collect();
                number += wave.len();
                for call in wave {
                    call.await.expect("no panic").expect("its first");
                }
            }
            fields
                .push(redis::cmd("HLEN").arg("tollgate:v1:{acme}:control").query::<i64>(look).expect("HLEN"));
        }
        // The generation, two of each of four limits, and since when the two without keys are idle.
        assert_eq!(fields, [1 + 2 * 4 + 2; 2], "it grows with the values of keys");
        assert!(limiter.gates() <= FEW, "{} gates", limiter.gates());

        // The states go by themselves. What a gate was told, and who used a limit, go a minute after the last call.
        let watch = Watch::start();
        let lasting = loop {
            let all = ttls(look);
            let (minute, other): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|(key, _)| key.contains(":told:") || key.ends_with(":crowd"));
            for (key, ttl) in &minute {
                assert!((1..=61_500).contains(ttl), "{key} lives for {ttl} ms");
            }
            assert!(minute.len() <= 3 * number + 4, "{} of {number} credentials", minute.len());
            if other.len() == 1 {
                break other;
            }
            assert!(watch.read() < Duration::from_secs(30), "{} keys stay: {:?}", other.len(), other[0]);
            tokio::time::sleep(ms(100)).await;
        };
        let (key, ttl) = &lasting[0];
        assert_eq!(key, "tollgate:v1:{acme}:control");
        assert!((WEEK - 60_000..=WEEK).contains(ttl), "{ttl} ms");
        println!("{number} credentials in Redis: {} gates here, {} fields", limiter.gates(), fields[1]);
    }
}
