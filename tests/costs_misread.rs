//! What a call costs in several units: asked for in vain, charged in part, or to a unit that nobody counts.

#[path = "support/mod.rs"]
mod support;

use support::limiter;
use tollgate::{Limiter, Provider, Reason, Tollgate};

/// What each limit has left.
async fn left(limiter: &Limiter) -> Vec<u64> {
    limiter.peek().await.expect("in memory").limits.iter().map(|limit| limit.left).collect()
}

#[tokio::test(start_paused = true)]
async fn what_can_never_be_had_is_waited_for() {
    // The guard of a bucket is paid from its burst.
    let acme = limiter(&["5/min", "100 tokens/min", "60 images/h burst 20"]);
    for (unit, amount, limit) in
        [("requests", 6, 0), ("tokens", 101, 1), ("tokens", u64::MAX, 1), ("images", 20, 2)]
    {
        let error = acme.acquire().cost(unit, amount).await.expect_err("never");
        assert!(error.is_impossible() && error.retry_after().is_none(), "{error}");
        let known = &acme.peek().await.expect("in memory").limits[limit].limit;
        assert_eq!(error.refusal().and_then(|refusal| refusal.limit()), Some(known), "{unit} {amount}");
        assert!(error.to_string().contains(&known.to_string()), "{error}");
        assert_eq!(left(&acme).await, [5, 100, 19], "{unit} {amount}");
    }
    let all = acme.acquire().cost("requests", 5).cost("tokens", 100).cost("images", 19);
    let permit = all.or_reject().await.expect("all there is");
    assert_eq!((permit.cost("requests"), permit.cost("tokens"), permit.cost("images")), (5, 100, 19));
    assert_eq!((permit.cost("bytes"), left(&acme).await), (0, vec![0; 3]));
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_charged_where_there_was_room() {
    let acme = limiter(&["5/min", "100 tokens/min"]);
    for _ in 0..2 {
        acme.acquire().cost("tokens", 30).or_reject().await.expect("room");
    }
    let error = acme.acquire().cost("tokens", 41).or_reject().await.expect_err("no room");
    let refusal = error.refusal().expect("of the limiter");
    assert_eq!(refusal.reason(), Reason::Limited);
    assert_eq!(refusal.limit().map(|limit| limit.unit()), Some("tokens"));
    assert_eq!(left(&acme).await, [3, 40]);
    // The other way round: no request left, but tokens.
    acme.acquire().cost("requests", 3).or_reject().await.expect("room");
    let error = acme.acquire().cost("tokens", 1).or_reject().await.expect_err("no room");
    assert_eq!(
        error.refusal().and_then(|refusal| refusal.limit()).map(|limit| limit.unit()),
        Some("requests")
    );
    assert_eq!(left(&acme).await, [0, 40]);
    acme.acquire().cost("requests", 0).cost("tokens", 40).or_reject().await.expect("needs no request");
    assert_eq!(left(&acme).await, [0, 0]);
    // Nothing of anything is free.
    acme.acquire().cost("requests", 0).or_reject().await.expect("takes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_nobody_counts_is_charged_or_settled() {
    let acme = limiter(&["5/min", "100 tokens/min"]);
    let error = acme.acquire().cost("token", 3).await.expect_err("no such unit");
    assert!(error.is_unknown() && error.to_string().contains("requests, tokens"), "{error}");
    let permit = acme.acquire().cost("tokens", 30).await.expect("room");
    let error = permit.settle([("tokens", 10), ("token", 3)]).expect_err("no such unit");
    assert!(error.is_unknown() && error.to_string().contains("\"token\""), "{error}");
    assert_eq!(left(&acme).await, [4, 70], "nothing is changed then");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_named_is_settled_too() {
    let acme = limiter(&["5/min", "100 tokens/min", "50 images/min"]);
    let permit = async || acme.acquire().cost("tokens", 30).cost("images", 10).await.expect("room");
    permit().await.settle([]).expect("says nothing");
    assert_eq!(left(&acme).await, [4, 70, 40]);
    permit().await.settle([("tokens", 5)]).expect("counted");
    assert_eq!(left(&acme).await, [3, 65, 30]);
    permit().await.settle([("images", 30), ("requests", 0)]).expect("counted");
    assert_eq!(left(&acme).await, [3, 35, 0]);
    // The last word on a unit named twice.
    acme.acquire().await.expect("room").settle([("tokens", 90), ("tokens", 35)]).expect("counted");
    assert_eq!(left(&acme).await, [2, 0, 0]);
}

#[test]
fn two_limits_share_one_state() {
    let build = |limits: &[&str]| {
        let provider = limits.iter().fold(Provider::new("acme"), |provider, limit| {
            provider.limit(limit.parse().unwrap_or_else(|error| panic!("{error}")))
        });
        Tollgate::builder().provider(provider).build()
    };
    for same in [
        ["100 tokens/min", "200 tokens/60s"],
        ["100/min", "100 requests/min"],
        ["100 tokens/min", "5000000000 tokens/min unpaced"],
        ["9 tokens/day resets 00:00 UTC", "8 tokens/day resets 00:00 UTC"],
    ] {
        let error = build(&same).expect_err("the same twice").to_string();
        assert!(error.contains("\"acme\" has two limits"), "{error}");
        let texts = same.map(|text| text.parse::<tollgate::Limit>().expect("a limit").to_string());
        assert!(texts.iter().all(|text| error.contains(text)), "{error}");
    }
    build(&["100/min", "100 tokens/min", "1000 tokens/h", "100 tokens/min burst 7"]).expect("each its own");
}

#[tokio::test(start_paused = true)]
async fn what_is_only_observed_is_settled() {
    let observed = support::with(Provider::new("acme").observe(true), &["5/min", "100 tokens/min"]);
    for real in [0, 7, 1_000_000] {
        let permit = observed.acquire().cost("tokens", 10).await.expect("never refused");
        tokio::task::yield_now().await;
        permit.settle([("tokens", real)]).expect("no effect");
    }
    assert_eq!(left(&observed).await, [2, 70], "it stands as it was guessed");
    let permit = observed.acquire().await.expect("never refused");
    assert!(permit.settle([("token", 1)]).is_err(), "as when it is enforced");

    let disabled = Tollgate::disabled().provider("acme").expect("every name");
    let permit = disabled.acquire().cost("tokens", u64::MAX).await.expect("every cost");
    permit.settle([("tokens", 1), ("anything", u64::MAX)]).expect("every unit");
}
