//! A redirect chain waits for a place in flight that it has itself, or that another chain has which waits for its.
#![cfg(feature = "middleware")]

#[path = "support/hops.rs"]
mod hops;
#[path = "support/mod.rs"]
mod support;

use std::time::Duration;

use hops::{Upstream, client, counted_hops, eventually, left, ours, provider, tollgate};
use support::Watch;
use tollgate::{Priority, Provider, RequestBuilderExt, Scope, Toll};

fn flights(name: &str, upstream: &Upstream) -> Provider {
    // Long enough for a busy machine, short enough to fail soon if it waits for itself.
    provider(name, "1 in flight").hosts([upstream.host()]).max_wait(Duration::from_secs(5))
}

async fn settles(tollgate: &tollgate::Tollgate, name: &str) {
    eventually(async || left(tollgate, name).await == 1).await;
}

#[tokio::test]
async fn by_itself() {
    for redirects in [0, 1, 2] {
        let upstream = Upstream::start();
        let acme = flights("acme", &upstream).redirects(redirects).limit("100/h".parse().expect("a limit"));
        let tollgate = tollgate([acme]);
        let http = client(&tollgate);
        for hops in [1, 2, 5] {
            let url = upstream.url(&format!("/chain/{hops}"));
            for rejects in [false, true] {
                let call = if rejects { http.get(&url).or_reject() } else { http.get(&url) };
                let response = call.send().await.unwrap_or_else(|error| panic!("{redirects}: {error}"));
                assert_eq!(Toll::of(&response).expect("ours").hops(), hops);
                // Its one place, to the end.
                assert_eq!(left(&tollgate, "acme").await, 0);
                response.text().await.expect("a text");
                settles(&tollgate, "acme").await;
            }
        }
    }
}

/// The place is taken as long as the chain goes on, and by one call: others wait for it.
#[tokio::test]
async fn by_one_that_comes_between() {
    let upstream = Upstream::start();
    let tollgate = tollgate([flights("acme", &upstream)]);
    let http = client(&tollgate);
    let slow = upstream.url(&format!("/slow/100?{}", upstream.url("/slow/100?/end")));
    let chain = tokio::spawn(http.get(slow).send());
    upstream.has_seen(2).await;
    let refused = http.get(upstream.url("/between")).or_reject().send().await.expect_err("it is in between");
    assert!(ours(&refused).is_rejected(), "{refused}");
    let waits = tokio::spawn(http.get(upstream.url("/behind")).send());
    drop(chain.await.expect("no panic").expect("its end"));
    drop(waits.await.expect("no panic").expect("its turn"));
    let paths: Vec<_> = upstream.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths[2..], ["/end", "/behind"]);
    settles(&tollgate, "acme").await;
}

/// From one provider to another and back, with one place each, and many at once in both directions.
#[tokio::test]
async fn by_one_that_goes_the_other_way() {
    for redirects in [0, 1] {
        let (first, second) = (Upstream::start(), Upstream::start());
        let tollgate = tollgate([
            flights("one", &first).redirects(redirects),
            flights("two", &second).redirects(redirects),
        ]);
        let http = client(&tollgate);
        let back = first.to(302, &second.to(302, &first.url("/end")));
        let response = http.get(&back).send().await.unwrap_or_else(|error| panic!("back: {error}"));
        assert_eq!((left(&tollgate, "one").await, left(&tollgate, "two").await), (0, 1));
        drop(response);
        settles(&tollgate, "one").await;
        let there = first.to(302, &second.url("/end"));
        let other = second.to(302, &first.url("/end"));
        let calls: Vec<_> = (0..10).flat_map(|_| [&there, &other]).map(|url| http.get(url).send()).collect();
        for call in calls.into_iter().map(tokio::spawn).collect::<Vec<_>>() {
            drop(call.await.expect("no panic").unwrap_or_else(|error| panic!("{error}")));
        }
        settles(&tollgate, "one").await;
        settles(&tollgate, "two").await;
    }
}

/// Where it was led away from it is not in flight any more, be it to another provider or to nobody's host.
#[tokio::test]
async fn by_who_was_led_away() {
    let (ours, theirs) = (Upstream::start(), Upstream::start());
    for known in [true, false] {
        let other = known.then(|| flights("other", &theirs));
        let tollgate = tollgate([flights("acme", &ours)].into_iter().chain(other));
        let http = client(&tollgate);
        let response = http.get(ours.to(302, &theirs.url("/end"))).send().await.expect("the end");
        settles(&tollgate, "acme").await;
        http.get(ours.url("/next")).or_reject().send().await.expect("it is free");
        if known {
            assert_eq!(left(&tollgate, "other").await, 0);
        }
        drop(response);
        // There and back by way of nobody: it takes its place again.
        let back = ours.to(302, &theirs.to(302, &ours.url("/end")));
        let response = http.get(back).send().await.expect("the end");
        assert_eq!(left(&tollgate, "acme").await, 0, "known {known}");
        drop(response);
        settles(&tollgate, "acme").await;
    }
}

/// Of one provider, with a limit for each route: the place that it has is its place also on the way.
#[tokio::test]
async fn by_another_route() {
    let upstream = Upstream::start();
    let limit = |route| (Scope::route(route), "1 in flight".parse().expect("a limit"));
    let acme = Provider::new("acme").hosts([upstream.host()]).max_wait(Duration::from_secs(5));
    let acme = ["/to/{status}", "/end"]
        .map(limit)
        .into_iter()
        .fold(acme, |acme, (scope, limit)| acme.limit_in(scope, limit));
    let tollgate = tollgate([acme]);
    let http = client(&tollgate);
    let time = Watch::start();
    let calls: Vec<_> = (0..10).map(|_| tokio::spawn(http.get(upstream.to(302, "/end")).send())).collect();
    for call in calls {
        drop(call.await.expect("no panic").unwrap_or_else(|error| panic!("{error}")));
    }
    assert!(time.read() < Duration::from_secs(5));
    assert_eq!(counted_hops(&tollgate, "acme"), 10);
}

/// A hop that is refused, and one that nobody answers: nothing of the chain stays in flight.
#[tokio::test]
async fn by_a_chain_that_ends_early() {
    let upstream = Upstream::start();
    let used_up = flights("acme", &upstream).limit("1/h unpaced".parse().expect("a limit"));
    let tollgate = tollgate([used_up]);
    let refused = client(&tollgate).get(upstream.to(302, "/end")).or_reject().send().await;
    assert!(ours(&refused.expect_err("no second")).is_rejected());
    settles(&tollgate, "acme").await;

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nowhere = listener.local_addr().expect("an address").to_string();
    drop(listener);
    for redirects in [0, 1] {
        let tollgate = hops::tollgate([flights("acme", &upstream).hosts([&nowhere]).redirects(redirects)]);
        let http = client(&tollgate);
        for _ in 0..3 {
            let leads = upstream.to(302, &format!("http://{nowhere}/"));
            http.get(leads).send().await.expect_err("nobody is there");
            settles(&tollgate, "acme").await;
        }
    }
}

/// Others wait for the place that the chain has, and would be served before its hop.
#[tokio::test]
async fn by_one_that_waits_for_its_place() {
    let upstream = Upstream::start();
    let slow = upstream.url("/slow/150?/end");
    let by_route = |acme: Provider| acme.limit_in(Scope::route("/end"), "100/h".parse().expect("a limit"));
    for routes in [false, true] {
        let acme = flights("acme", &upstream).limit("100/h unpaced".parse().expect("a limit"));
        let tollgate = tollgate([if routes { by_route(acme) } else { acme }]);
        let http = client(&tollgate);
        for _ in 0..3 {
            let seen = upstream.count();
            let chain = tokio::spawn(http.get(&slow).priority(Priority::Low).send());
            upstream.has_seen(seen + 1).await;
            let high: Vec<_> = (0..3)
                .map(|_| tokio::spawn(http.get(upstream.url("/end")).priority(Priority::High).send()))
                .collect();
            drop(chain.await.expect("no panic").unwrap_or_else(|error| panic!("{routes}: {error}")));
            for high in high {
                drop(high.await.expect("no panic").unwrap_or_else(|error| panic!("{routes}: {error}")));
            }
            settles(&tollgate, "acme").await;
        }
    }
}
