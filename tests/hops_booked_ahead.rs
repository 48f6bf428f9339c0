//! Hops that a call books ahead: charged for good though nobody needs them, or not there when they are needed.
#![cfg(feature = "middleware")]

#[path = "support/hops.rs"]
mod hops;

use std::time::Duration;

use hops::{Upstream, ahead, client, counted_hops, has_left, left, ours, provider, tollgate};
use tollgate::RequestBuilderExt;

#[tokio::test]
async fn hops_booked_ahead_are_charged_until_the_answer_is_there() {
    let (upstream, tollgate, http) = ahead("10/h", 3);
    for (path, sent, left_then) in [("/", 1, 9), ("/chain/2", 3, 6), ("/chain/3", 4, 2)] {
        let before = upstream.count();
        http.get(upstream.url(path)).send().await.expect("an answer");
        assert_eq!(upstream.count() - before, sent);
        // At most three came back.
        has_left(&tollgate, "acme", left_then).await;
    }
    assert_eq!(counted_hops(&tollgate, "acme"), 5);
}

#[tokio::test]
async fn while_a_call_is_on_its_way_its_hops_are_nobody_elses() {
    let (upstream, tollgate, http) = ahead("10/h", 3);
    let call = tokio::spawn(http.get(upstream.to(302, &upstream.url("/hang"))).send());
    upstream.has_seen(2).await;
    assert_eq!(left(&tollgate, "acme").await, 6);
    call.abort();
    // Two were sent.
    has_left(&tollgate, "acme", 8).await;
}

#[tokio::test]
async fn hops_booked_ahead_come_back_from_a_call_that_fails() {
    let (upstream, tollgate, http) = ahead("10/h", 3);
    let nobody = hops::Upstream::start();
    let host = nobody.host();
    drop(nobody);
    let gone = upstream.to(302, &format!("http://{host}/"));
    hops::eventually(async || tokio::net::TcpStream::connect(&host).await.is_err()).await;
    http.get(gone).send().await.expect_err("nobody listens there");
    has_left(&tollgate, "acme", 9).await;
    // One that could not even be connected was not sent.
    let dead = hops::tollgate([provider("acme", "10/h").hosts(["127.0.0.1"]).redirects(3)]);
    client(&dead).get(upstream.to(302, &format!("http://{host}/"))).send().await.expect_err("nobody");
    has_left(&dead, "acme", 9).await;
    client(&dead).get(format!("http://{host}/")).send().await.expect_err("nobody listens there");
    has_left(&dead, "acme", 9).await;
}

#[tokio::test]
async fn who_booked_its_hops_is_not_refused_in_mid_chain() {
    let (upstream, tollgate, http) = ahead("3/h", 2);
    http.get(upstream.url("/chain/2")).or_reject().send().await.expect("all three are booked");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (3, 0));
}

// What was booked for a hop is kept past its slot, since the upstream takes its time: it is exchanged.
#[tokio::test]
async fn who_booked_its_hops_is_not_refused_after_a_slow_answer() {
    let (upstream, tollgate, http) = ahead("3/h guard 0s", 2);
    let slow = |target: &str| upstream.url(&format!("/slow/100?{target}"));
    let chain = slow(&slow(&upstream.url("/")));
    http.get(chain).or_reject().send().await.expect("all three are booked");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (3, 0));
}

#[tokio::test]
async fn who_booked_its_hops_has_them_when_its_time_is_up() {
    let (upstream, tollgate, http) = ahead("3/h guard 0s", 2);
    let slow = |target: &str| upstream.url(&format!("/slow/100?{target}"));
    let call = http.get(slow(&slow(&upstream.url("/")))).wait_at_most(Duration::from_millis(50));
    call.send().await.expect("it has waited for nothing");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (3, 0));
}

#[tokio::test]
async fn hops_beyond_those_booked_need_their_own() {
    let (upstream, tollgate, http) = ahead("6/h", 1);
    http.get(upstream.url("/chain/3")).or_reject().send().await.expect("four of six");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (4, 2));
    let refused =
        ours(&http.get(upstream.url("/chain/3")).or_reject().send().await.expect_err("two of four"));
    assert!(refused.is_rejected(), "{refused}");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (6, 0));
}

#[tokio::test]
async fn a_hop_to_another_provider_is_not_paid_by_the_first() {
    let (one, other) = (Upstream::start(), Upstream::start());
    let tollgate = tollgate([
        provider("one", "10/h").hosts([one.host()]).redirects(2),
        provider("other", "10/h").hosts([other.host()]).redirects(2),
    ]);
    client(&tollgate).get(one.to(302, &other.url("/chain/1"))).send().await.expect("followed");
    has_left(&tollgate, "one", 9).await;
    has_left(&tollgate, "other", 8).await;
}

#[test]
fn hops_that_no_limit_could_hold_are_an_error_when_built() {
    for (limit, fits, too_many) in
        [("3/h", 2, 3), ("10/s burst 2 guard 0s", 1, 2), ("5/day resets 00:00 UTC", 4, 5)]
    {
        let build =
            |hops| tollgate::Tollgate::builder().provider(provider("acme", limit).redirects(hops)).build();
        build(fits).unwrap_or_else(|error| panic!("{limit}: {error}"));
        let error = build(too_many).map(|_| ()).expect_err(limit).to_string();
        assert!(error.contains("\"acme\"") && error.contains("redirects"), "{error}");
    }
}

#[tokio::test]
async fn one_that_is_only_observed_is_told_of_each_hop_and_of_no_more() {
    let upstream = Upstream::start();
    let tollgate = tollgate([provider("acme", "10/h").hosts([upstream.host()]).redirects(3).observe(true)]);
    let http = client(&tollgate);
    http.get(upstream.url("/")).send().await.expect("an answer");
    has_left(&tollgate, "acme", 9).await;
    http.get(upstream.url("/chain/2")).send().await.expect("followed");
    has_left(&tollgate, "acme", 6).await;
    // Nobody is stopped, but it shows.
    http.get(upstream.url("/chain/8")).or_reject().send().await.expect("only observed");
    let limiter = tollgate.provider("acme").expect("there");
    hops::eventually(async || limiter.counts().would_refuse == 3).await;
    assert_eq!((upstream.count(), limiter.counts().hops), (13, 10));
}
