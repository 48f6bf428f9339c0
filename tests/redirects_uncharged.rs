//! One call, many requests on the wire: a hop that nobody charges, or that is charged and never sent, or sent
//! before its permit is there. Redirects are reqwest's own, so this is real HTTP; quotas of an hour make
//! "counted" and "refused" independent of the machine's speed.
#![cfg(feature = "middleware")]

#[path = "support/hops.rs"]
mod hops;

use std::{net::TcpListener, sync::mpsc, time::Duration};

use hops::{
    Abandon, Upstream, abandon, acme, ahead, client, counted_hops, has_left, left, ours, provider, tollgate,
};
use http::header;
use reqwest::{Client, redirect::Policy};
use reqwest_middleware::ClientWithMiddleware;
use tollgate::{Error, Reason, RequestBuilderExt, Toll, Tollgate};

fn with_policy(tollgate: &Tollgate, policy: Policy) -> ClientWithMiddleware {
    tollgate.client_with(Client::builder().no_proxy(), policy).expect("a client")
}

#[tokio::test]
async fn each_hop_of_a_chain_is_charged() {
    let (upstream, tollgate, http) = acme("10/h");
    let answer = http.get(upstream.url("/chain/5")).send().await.expect("five hops");
    assert_eq!((answer.status().as_u16(), answer.url().path()), (200, "/chain/0"));
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (6, 4));
    assert_eq!(counted_hops(&tollgate, "acme"), 5);
    let toll = Toll::of(&answer).expect("through the gate");
    assert_eq!((toll.attempts(), toll.hops(), toll.remaining()), (1, 5, Some(4)));
}

#[tokio::test]
async fn a_call_that_would_not_wait_ends_where_the_quota_does() {
    let (upstream, tollgate, http) = acme("4/h");
    let error = http.get(upstream.url("/chain/5")).or_reject().send().await.expect_err("six under 4/h");
    let refused = ours(&error);
    assert!(refused.is_rejected(), "{refused}");
    let hour = Duration::from_secs(3_600);
    // Not before the first of them comes back, not after the paced stream behind the burst has begun.
    let again = refused.retry_after().expect("later is known");
    assert!(again > hour / 2 && again < hour + hour / 2, "{again:?}");
    assert_eq!(
        upstream.seen().iter().map(|seen| &*seen.path).collect::<Vec<_>>(),
        ["/chain/5", "/chain/4", "/chain/3", "/chain/2"]
    );
    assert_eq!((left(&tollgate, "acme").await, counted_hops(&tollgate, "acme")), (0, 3));
}

#[tokio::test]
async fn hops_wait_their_turn_and_no_window_is_exceeded() {
    let (upstream, _tollgate, http) = acme("2/500ms guard 250ms");
    let answer = http.get(upstream.url("/chain/5")).send().await.expect("with patience");
    assert!(Toll::of(&answer).expect("through the gate").waited() >= Duration::from_millis(1_000));
    let seen = upstream.seen();
    assert_eq!(seen.len(), 6);
    for three in seen.windows(3) {
        let window = three[2].at - three[0].at;
        assert!(window >= Duration::from_millis(500), "three requests in {window:?}: {seen:?}");
    }
}

// All rests on this: between the policy's word and the next poll nothing is sent.
#[tokio::test]
async fn nothing_of_a_hop_is_on_the_wire_before_its_permit() {
    let upstream = Upstream::start();
    let next = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = next.local_addr().expect("an address").port();
    let tollgate = tollgate([
        provider("acme", "9/h").hosts([upstream.host()]),
        provider("next", "1/300ms guard 0s").hosts([format!("127.0.0.1:{port}")]),
    ]);
    // Whoever connects is noticed, even if nothing follows.
    let (tell, connected) = mpsc::channel();
    std::thread::spawn(move || next.accept().map(|(stream, _)| tell.send(stream)));
    let limiter = tollgate.provider("next").expect("there");
    let before = upstream.now();
    limiter.acquire().await.expect("the only one for 300 ms");
    let call = client(&tollgate).get(upstream.to(302, &format!("http://127.0.0.1:{port}/")));
    let call = tokio::spawn(call.send());
    let arrived =
        tokio::task::spawn_blocking(move || connected.recv().map(|stream| (stream, upstream.now())));
    let (stream, at) = arrived.await.expect("no panic").expect("it comes");
    assert!(
        at >= before + Duration::from_millis(300),
        "connected {:?} after the permit before it",
        at - before
    );
    drop(stream);
    call.await.expect("no panic").expect_err("hung up on");
}

#[tokio::test]
async fn within_a_host_a_hop_arrives_after_its_permit() {
    let (upstream, tollgate, http) = acme("1/300ms guard 0s");
    let before = upstream.now();
    http.get(upstream.url("/chain/1")).send().await.expect("after 300 ms");
    let hop = &upstream.seen()[1];
    assert!(hop.at >= before + Duration::from_millis(300), "arrived after {:?}", hop.at - before);
    assert_eq!(counted_hops(&tollgate, "acme"), 1);
}

#[tokio::test]
async fn who_follows_no_redirects_still_follows_none() {
    let (upstream, tollgate, _) = acme("10/h");
    let http = with_policy(&tollgate, Policy::none());
    let answer = http.get(upstream.url("/chain/5")).send().await.expect("an answer");
    assert_eq!(answer.status(), 302);
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (1, 9));
    assert_eq!(counted_hops(&tollgate, "acme"), 0);
}

#[tokio::test]
async fn a_hop_that_the_policy_refuses_is_not_charged() {
    let (upstream, tollgate, _) = acme("20/h");
    let stops = Policy::custom(|hop| if hop.previous().len() > 2 { hop.stop() } else { hop.follow() });
    let answer = with_policy(&tollgate, stops).get(upstream.url("/chain/5")).send().await.expect("it stops");
    assert_eq!((answer.status().as_u16(), answer.url().path()), (302, "/chain/3"));
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (3, 17));

    let fails = Policy::custom(|hop| if hop.previous().len() > 2 { hop.error("far") } else { hop.follow() });
    let error = with_policy(&tollgate, fails).get(upstream.url("/chain/5")).send().await.expect_err("far");
    assert!(error.is_redirect() && Error::find(&error).is_none(), "{error}");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (6, 14));

    let two = with_policy(&tollgate, Policy::limited(2));
    let error = two.get(upstream.url("/chain/5")).send().await.expect_err("two hops");
    assert!(error.is_redirect() && Error::find(&error).is_none(), "{error}");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (9, 11));
    assert_eq!(counted_hops(&tollgate, "acme"), 6);
}

#[tokio::test]
async fn reqwests_own_limit_of_ten_hops_stays() {
    let (upstream, tollgate, http) = acme("20/h");
    let error = http.get(upstream.url("/chain/12")).send().await.expect_err("ten hops");
    assert!(error.is_redirect(), "{error}");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (11, 9));
}

#[tokio::test]
async fn what_leads_nowhere_is_no_hop() {
    let (upstream, tollgate, http) = acme("10/h");
    assert_eq!(http.get(upstream.url("/moved")).send().await.expect("an answer").status(), 302);
    // reqwest asks the policy first, and then does not follow.
    let error = http.get(upstream.to(302, "ftp://127.0.0.1/")).send().await.expect_err("not HTTP");
    assert!(Error::find(&error).is_none(), "{error}");
    assert_eq!((left(&tollgate, "acme").await, counted_hops(&tollgate, "acme")), (8, 0));
}

#[tokio::test]
async fn a_hop_is_charged_to_the_provider_of_its_host() {
    let (one, other, nobody) = (Upstream::start(), Upstream::start(), Upstream::start());
    let tollgate = tollgate([
        provider("one", "10/h").hosts([one.host()]),
        provider("other", "10/h").hosts([other.host()]),
    ]);
    let http = client(&tollgate);
    let both = async || (left(&tollgate, "one").await, left(&tollgate, "other").await);

    http.get(one.to(302, &other.url("/chain/2"))).send().await.expect("followed");
    assert_eq!(both().await, (9, 7));
    // There and back.
    http.get(one.to(302, &other.to(302, &one.url("/")))).send().await.expect("followed");
    assert_eq!(both().await, (7, 6));
    // To a host that is nobody's, and around in it.
    let away = http.get(one.to(302, &nobody.url("/chain/3"))).send().await.expect("followed");
    assert_eq!((both().await, nobody.count()), ((6, 6), 4));
    let toll = Toll::of(&away).expect("the first request had to pass");
    assert_eq!((toll.attempts(), toll.hops()), (1, 0));
    // From there to a provider's.
    http.get(nobody.to(302, &other.url("/chain/1"))).send().await.expect("followed");
    assert_eq!(both().await, (6, 4));
    assert_eq!((counted_hops(&tollgate, "one"), counted_hops(&tollgate, "other")), (1, 6));
}

#[tokio::test]
async fn from_an_unlimited_host_no_quota_is_entered_for_nothing() {
    let (nobody, upstream) = (Upstream::start(), Upstream::start());
    let tollgate = tollgate([provider("acme", "1/h").hosts([upstream.host()])]);
    let http = client(&tollgate);
    http.get(upstream.url("/")).send().await.expect("the only one");
    let hop = nobody.to(302, &upstream.url("/"));
    let refused = ours(&http.get(hop).or_reject().send().await.expect_err("no room"));
    assert_eq!((refused.is_rejected(), refused.provider()), (true, "acme"));
    assert_eq!((nobody.count(), upstream.count()), (1, 1));
}

#[tokio::test]
async fn a_call_by_name_keeps_its_provider_within_its_host() {
    let (upstream, elsewhere) = (Upstream::start(), Upstream::start());
    let tollgate = tollgate([provider("acme", "10/h")]);
    let http = client(&tollgate);
    http.get(upstream.url("/chain/3")).provider("acme").send().await.expect("followed");
    assert_eq!(left(&tollgate, "acme").await, 6);
    // Another port is another's: nobody said that it is acme's.
    http.get(upstream.to(302, &elsewhere.url("/chain/1"))).provider("acme").send().await.expect("followed");
    assert_eq!((left(&tollgate, "acme").await, elsewhere.count()), (5, 2));
    http.get(upstream.url("/chain/3")).send().await.expect("nobody's");
    assert_eq!(left(&tollgate, "acme").await, 5);
}

// Two plans with one upstream: the name decides, whatever the URL, also of a hop.
#[tokio::test]
async fn a_call_by_name_is_not_charged_to_the_host_of_another() {
    let upstream = Upstream::start();
    let tollgate = tollgate([provider("free", "10/h").hosts([upstream.host()]), provider("paid", "10/h")]);
    client(&tollgate).get(upstream.url("/chain/3")).provider("paid").send().await.expect("followed");
    assert_eq!((left(&tollgate, "free").await, left(&tollgate, "paid").await), (10, 6));
}

#[tokio::test]
async fn a_closure_decides_on_hops_too() {
    let upstream = Upstream::start();
    let tollgate = tollgate([
        provider("ends", "10/h").matching(|url| url.path() == "/chain/0"),
        provider("acme", "10/h").hosts([upstream.host()]),
    ]);
    client(&tollgate).get(upstream.url("/chain/3")).send().await.expect("followed");
    assert_eq!((left(&tollgate, "ends").await, left(&tollgate, "acme").await), (9, 7));
}

#[tokio::test]
async fn a_body_goes_along_and_is_charged() {
    let (upstream, tollgate, http) = acme("10/h");
    let kept = upstream.to(307, &upstream.url("/kept"));
    http.post(kept).body("a body").send().await.expect("followed");
    let lost = upstream.to(302, &upstream.url("/lost"));
    http.post(lost).body("a body").send().await.expect("followed");
    let seen: Vec<_> = upstream.seen().into_iter().map(|seen| (seen.method, seen.body)).collect();
    let expected = [("POST", "a body"), ("POST", "a body"), ("POST", "a body"), ("GET", "")];
    assert_eq!(seen, expected.map(|(method, body)| (method.to_owned(), body.to_owned())));
    assert_eq!(left(&tollgate, "acme").await, 6);

    // A stream can be sent once: reqwest does not follow, and there is nothing to charge.
    let stream = reqwest::Body::wrap(reqwest::Body::from("a body"));
    let answer =
        http.post(upstream.to(307, &upstream.url("/kept"))).body(stream).send().await.expect("an answer");
    assert_eq!((answer.status().as_u16(), left(&tollgate, "acme").await), (307, 5));
}

#[tokio::test]
async fn credentials_do_not_leave_their_host() {
    let (upstream, other) = (Upstream::start(), Upstream::start());
    let tollgate = tollgate([provider("acme", "10/h").hosts([upstream.host()])]);
    let http = client(&tollgate);
    let secret = [header::AUTHORIZATION, header::COOKIE];
    let call = |url: String| http.get(url).header(&secret[0], "Bearer x").header(&secret[1], "session=x");
    call(upstream.to(302, &upstream.url("/within"))).send().await.expect("followed");
    call(upstream.to(302, &other.url("/beyond"))).send().await.expect("followed");
    for seen in upstream.seen() {
        assert!(secret.iter().all(|name| seen.headers.contains_key(name)), "{seen:?}");
    }
    let beyond = &other.seen()[0];
    assert!(!secret.iter().any(|name| beyond.headers.contains_key(name)), "{beyond:?}");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (3, 7));
}

#[tokio::test]
async fn of_a_call_dropped_in_mid_chain_what_was_sent_stays_charged() {
    let (upstream, tollgate, http) = acme("10/h");
    let call = tokio::spawn(http.get(upstream.to(302, &upstream.to(302, &upstream.url("/hang")))).send());
    upstream.has_seen(3).await;
    call.abort();
    assert!(call.await.expect_err("aborted").is_cancelled());
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (3, 7));
}

#[tokio::test]
async fn of_a_call_dropped_while_a_hop_waits_nothing_stays_of_the_hop() {
    let (upstream, tollgate, http) = acme("2/h");
    let limiter = tollgate.provider("acme").expect("there");
    let call = tokio::spawn(http.get(upstream.url("/chain/5")).send());
    hops::eventually(async || limiter.peek().await.expect("in memory").queued == 1).await;
    let waits = limiter.peek().await.expect("in memory").limits[0].next_free;
    call.abort();
    assert!(call.await.expect_err("aborted").is_cancelled());
    // Its slot, in an hour, is free again: the next is not later than that.
    hops::eventually(async || {
        let peek = limiter.peek().await.expect("in memory");
        peek.queued == 0 && peek.limits[0].next_free < waits
    })
    .await;
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (2, 0));
}

#[tokio::test]
async fn dropped_at_any_poll_of_a_chain_no_more_is_charged_than_was_sent() {
    for woken in [false, true] {
        for polls in 0.. {
            let (upstream, tollgate, http) = ahead("20/h", 2);
            let when = if woken { Abandon::Woken(polls) } else { Abandon::AtOnce(polls) };
            let done = abandon(http.get(upstream.url("/chain/4")).send(), when).await;
            // A request may be on its way that has not arrived yet, or never will.
            hops::eventually(async || {
                let charged = 20 - left(&tollgate, "acme").await as usize;
                (upstream.count()..=upstream.count() + 1).contains(&charged)
            })
            .await;
            assert_eq!(tollgate.provider("acme").expect("there").peek().await.expect("in memory").queued, 0);
            if done.is_some() {
                assert_eq!((upstream.count(), left(&tollgate, "acme").await), (5, 15));
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_stops_the_provider_of_the_hop_that_met_it() {
    let (one, other) = (Upstream::start(), Upstream::start());
    let tollgate = tollgate([
        provider("one", "10/h").hosts([one.host()]),
        provider("other", "10/h").hosts([other.host()]),
    ]);
    let http = client(&tollgate);
    let answer = http.get(one.to(302, &other.url("/refuse"))).no_resend().send().await.expect("an answer");
    assert_eq!(answer.status(), 429);
    let paused = async |name| {
        let peek = tollgate.provider(name).expect("there").peek().await;
        peek.expect("in memory").paused.is_some()
    };
    assert_eq!((paused("one").await, paused("other").await), (false, true));
    let refusals = |name| tollgate.provider(name).expect("there").counts().refusals;
    assert_eq!((refusals("one"), refusals("other")), (0, 1));
    http.get(one.url("/")).or_reject().send().await.expect("not paused");
    let refused = ours(&http.get(other.url("/")).or_reject().send().await.expect_err("paused"));
    assert_eq!(refused.refusal().map(|refusal| refusal.reason()), Some(Reason::Paused));
}

#[tokio::test]
async fn an_existing_stack_counts_hops_if_its_policy_is_ours() {
    let (upstream, tollgate, _) = acme("20/h");
    let stack = |client: reqwest::ClientBuilder| {
        let client = client.no_proxy().retry(reqwest::retry::never()).build().expect("a client");
        reqwest_middleware::ClientBuilder::new(client).with(tollgate.middleware()).build()
    };
    let seen = stack(Client::builder().redirect(tollgate.redirect(Policy::default())));
    seen.get(upstream.url("/chain/5")).send().await.expect("followed");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (6, 14));
    // Without it the hops are reqwest's secret: charged once.
    let unseen = stack(Client::builder());
    unseen.get(upstream.url("/chain/5")).send().await.expect("followed");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (12, 13));
    assert_eq!(counted_hops(&tollgate, "acme"), 5);
}

#[tokio::test]
async fn the_clients_own_timeout_ends_a_hop_that_waits_uncharged() {
    let (upstream, tollgate, _) = acme("1/s guard 0s");
    let builder = Client::builder().no_proxy().timeout(Duration::from_millis(300));
    let http = tollgate.client(builder).expect("a client");
    let before = upstream.now();
    // The tollgate cannot see that timeout: it is noticed when the permit is there.
    let error = http.get(upstream.url("/chain/1")).send().await.expect_err("a second is too long");
    assert!(error.is_timeout() && Error::find(&error).is_none(), "{error}");
    assert_eq!(upstream.count(), 1);
    // What it did not send is there for the next, and not only when its window is over.
    has_left(&tollgate, "acme", 1).await;
    assert!(upstream.now() - before < Duration::from_millis(1_900), "not given back");
}

#[tokio::test]
async fn the_requests_own_timeout_refuses_a_hop_that_would_miss_it() {
    let (upstream, tollgate, http) = acme("1/h");
    let call = http.get(upstream.url("/chain/1")).timeout(Duration::from_secs(10));
    let refused = ours(&call.send().await.expect_err("an hour is too long"));
    assert!(refused.is_rejected(), "{refused}");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (1, 0));
    assert_eq!(tollgate.provider("acme").expect("there").peek().await.expect("in memory").queued, 0);
}

#[tokio::test]
async fn a_hop_to_nobody_that_fails_gives_back_what_was_sent_before_it() {
    let (upstream, tollgate, http) = acme("4/h");
    let dead = std::net::TcpListener::bind("127.0.0.1:0").and_then(|gone| gone.local_addr()).expect("a port");
    let error =
        http.get(upstream.to(302, &format!("http://{dead}/"))).send().await.expect_err("nobody there");
    assert!(error.is_connect(), "{error}");
    assert_eq!((upstream.count(), left(&tollgate, "acme").await), (1, 3));
}

/// A hop knows of a pause that began after its call: refused again, it is no straggler of that incident.
#[tokio::test]
async fn a_hop_that_waited_out_a_pause_and_is_refused_begins_no_other() {
    let upstream = Upstream::start();
    let backoff = Duration::from_millis(300);
    let provider = provider("acme", "1000/h unpaced").hosts([upstream.host()]).backoff(backoff, backoff);
    let tollgate = tollgate([provider]);
    let http = client(&tollgate);
    let chain = http.get(upstream.url(&format!("/slow/700?{}", upstream.url("/busy")))).no_resend().send();
    let chain = tokio::spawn(chain);
    upstream.has_seen(1).await;
    let busy = http.get(upstream.url("/busy")).no_resend().send().await.expect("answered");
    assert_eq!(busy.status(), 429);
    assert_eq!(chain.await.expect("no panic").expect("answered").status(), 429);
    let look = tollgate.provider("acme").expect("there").peek().await.expect("in memory");
    assert!(look.paused.is_some(), "{look:?}");
}
