//! Tollgates inside tollgates: charged twice, or one of them run over by a hop.
#![cfg(feature = "middleware")]

#[path = "support/hops.rs"]
mod hops;

use std::time::Duration;

use hops::{Upstream, acme, client, counted_hops, left, ours, provider, tollgate};
use reqwest::{Client, redirect::Policy};
use reqwest_middleware::ClientWithMiddleware;
use tollgate::{RequestBuilderExt, Tollgate};

#[tokio::test]
async fn attached_twice_a_tollgate_charges_once() {
    let (upstream, tollgate, http) = acme("20/h");
    let twice = reqwest_middleware::ClientBuilder::from_client(http).with(tollgate.middleware()).build();
    twice.get(upstream.url("/chain/3")).send().await.expect("followed");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (4, 16));
    let through = reqwest_middleware::ClientBuilder::from_client(client(&tollgate))
        .with(hops::Through)
        .with(tollgate.middleware())
        .build();
    through.get(upstream.url("/chain/3")).send().await.expect("followed");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (8, 12));
}

/// The outer and the inner tollgate, around one client.
fn nested(upstream: &Upstream, outer: &str, inner: &str) -> (Tollgate, Tollgate, ClientWithMiddleware) {
    let gate = |limit| tollgate([provider("acme", limit).hosts([upstream.host()])]);
    let (outer, inner) = (gate(outer), gate(inner));
    let policy = outer.redirect(inner.redirect(Policy::default()));
    let client = Client::builder().no_proxy().redirect(policy).retry(reqwest::retry::never());
    let http = reqwest_middleware::ClientBuilder::new(client.build().expect("a client"))
        .with(outer.middleware())
        .with(inner.middleware())
        .build();
    (outer, inner, http)
}

#[tokio::test]
async fn two_tollgates_both_charge() {
    let upstream = Upstream::start();
    let (outer, inner, http) = nested(&upstream, "10/h", "10/h");
    http.get(upstream.url("/chain/3")).send().await.expect("followed");
    assert_eq!((left(&outer, "acme").await, left(&inner, "acme").await), (6, 6));
    assert_eq!((counted_hops(&outer, "acme"), counted_hops(&inner, "acme")), (3, 3));
}

// The inner one has a permit at once: that must not put the hop on the wire before the outer one has its own.
#[tokio::test]
async fn of_two_tollgates_the_inner_one_does_not_run_ahead() {
    for (outer, inner) in [("1/300ms guard 0s", "10/h"), ("10/h", "1/300ms guard 0s")] {
        let upstream = Upstream::start();
        let (_outer, _inner, http) = nested(&upstream, outer, inner);
        let before = upstream.now();
        http.get(upstream.url("/chain/1")).send().await.expect("after 300 ms");
        let hop = &upstream.seen()[1];
        let after = hop.at - before;
        assert!(after >= Duration::from_millis(300), "outer {outer}, inner {inner}: {after:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_tollgates_either_can_stop_a_hop() {
    for (outer, inner) in [("2/h", "10/h"), ("10/h", "2/h")] {
        let upstream = Upstream::start();
        let (_outer, _inner, http) = nested(&upstream, outer, inner);
        let error = http.get(upstream.url("/chain/3")).or_reject().send().await.expect_err("four under 2/h");
        assert!(ours(&error).is_rejected(), "{error}");
        assert_eq!(upstream.count(), 2, "outer {outer}, inner {inner}");
    }
}
