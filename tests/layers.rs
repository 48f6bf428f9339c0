//! Layers around and inside: each request is charged once, each error is found, whatever the stack.

#![cfg(feature = "middleware")]

#[path = "support/layers.rs"]
mod stack;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use axum::http::Extensions;
use stack::{Nothing, ROOMY, bare, broken, ours, retry};
use support::Watch;
use tollgate::{
    Call, Provider, Reason, RequestBuilderExt, Toll, Tollgate,
    reqwest::{Request, Response},
    reqwest_middleware::{self, ClientBuilder, ClientWithMiddleware, Extension, Middleware, Next},
};
use upstream::{Canned, URL, acme, fine, left, plain};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn toll(response: &Response) -> &Toll {
    Toll::of(response).expect("it went through a gate")
}

/// Drops what takes longer than a second and sends it again, with the same extensions.
struct Impatient;

#[async_trait::async_trait]
impl Middleware for Impatient {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        loop {
            let copy = request.try_clone().expect("no stream");
            if let Ok(done) = tokio::time::timeout(ms(1_000), next.clone().run(copy, extensions)).await {
                return done;
            }
        }
    }
}

/// Never answers the first so many.
struct Hangs(usize, AtomicUsize);

#[async_trait::async_trait]
impl Middleware for Hangs {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        if self.1.fetch_add(1, Ordering::Relaxed) < self.0 {
            std::future::pending::<()>().await;
        }
        next.run(request, extensions).await
    }
}

/// Fetches a token before each request, with a client of its own.
struct Token(ClientWithMiddleware);

#[async_trait::async_trait]
impl Middleware for Token {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        self.0.get("http://acme.test/token").send().await?;
        next.run(request, extensions).await
    }
}

#[tokio::test(start_paused = true)]
async fn attached_twice_it_charges_twice() {
    let (tollgate, limiter) = acme(ROOMY);
    let canned = Canned::new(|_, _| fine());
    let layer = || tollgate.middleware();
    for (at, http) in [
        bare().with(layer()).with(layer()).with(canned.clone()).build(),
        bare().with(layer()).with(Nothing).with(layer()).with(canned.clone()).build(),
        bare().with(Nothing).with(layer()).with(layer()).with(layer()).with(canned.clone()).build(),
        canned.inside(
            ClientBuilder::from_client(tollgate.client(plain()).expect("a client")).with(layer()).build(),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let response = http.get(URL).send().await.expect("accepted");
        assert_eq!(toll(&response).attempts(), 1);
        assert_eq!(left(&limiter).await, 999 - at as u64, "stack {at}");
        assert_eq!(canned.seen().len(), 1 + at, "stack {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn attached_twice_it_sends_refused_calls_again_twice() {
    for nothing in [false, true] {
        let (tollgate, limiter) = acme(ROOMY);
        let canned = Canned::new(|_, _| upstream::refuse(429, "1"));
        let outer = bare().with(tollgate.middleware());
        let outer = if nothing { outer.with(Nothing) } else { outer };
        let http = outer.with(tollgate.middleware()).with(canned.clone()).build();
        let response = http.get(URL).send().await.expect("answered");
        assert_eq!(toll(&response).attempts(), 3);
        assert_eq!(canned.times(), [ms(0), ms(1_000), ms(2_000)]);
        assert_eq!((left(&limiter).await, limiter.counts().refusals), (997, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_attempt_after_a_timeout_flies_free() {
    for twice in [false, true] {
        let (tollgate, limiter) = acme(ROOMY);
        let canned = Canned::new(|_, _| fine());
        let stack = bare().with(Impatient).with(tollgate.middleware());
        let stack = if twice { stack.with(tollgate.middleware()) } else { stack };
        let http = stack.with(Hangs(2, AtomicUsize::new(0))).with(canned.clone()).build();
        let response = http.get(URL).send().await.expect("accepted the third time");
        assert_eq!(toll(&response).attempts(), 1);
        assert_eq!(canned.times(), [ms(2_000)]);
        assert_eq!(left(&limiter).await, 997, "twice: {twice}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_outside_renews_the_bound() {
    // Two attempts that hang for a second each, then one that would have to wait beyond the bound of the call.
    let (tollgate, _) = acme("2/10s unpaced guard 0");
    let canned = Canned::new(|_, _| fine());
    let stack = bare().with(Impatient).with(tollgate.middleware());
    let http = stack.with(Hangs(2, AtomicUsize::new(0))).with(canned.clone()).build();
    let watch = Watch::start();
    let error = ours(http.get(URL).wait_at_most(ms(9_000)).send().await);
    assert_eq!(watch.read(), ms(2_000));
    assert_eq!(error.retry_after(), Some(ms(8_000)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_bound_of_one_call_is_taken_for_the_next() {
    // Extensions that a caller uses again: what has succeeded is over.
    let (tollgate, _) = acme("1/5s unpaced guard 0");
    let canned = Canned::new(|at, _| if at == 1 { upstream::refuse(429, "1") } else { fine() });
    let http = canned.behind(&tollgate);
    let mut extensions = Extensions::new();
    extensions.insert(Call::new().wait_at_most(ms(10_000)));
    for _ in 0..3 {
        let request = http.get(URL).build().expect("a request");
        let response = http.execute_with_extensions(request, &mut extensions).await.expect("in time");
        assert_eq!(response.status(), 200);
    }
    assert_eq!(canned.times(), [0, 5_000, 10_000, 15_000].map(ms));
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_layer_inside_flies_free() {
    let (tollgate, limiter) = acme(ROOMY);
    let canned = Canned::new(|_, _| fine());
    let token = canned.behind(&tollgate);
    let http = bare().with(tollgate.middleware()).with(Token(token)).with(canned.clone()).build();
    http.get(URL).send().await.expect("accepted");
    assert_eq!(canned.seen().iter().map(|seen| &*seen.path).collect::<Vec<_>>(), ["/token", "/things"]);
    assert_eq!(left(&limiter).await, 998, "the token is a request of its own");
}

#[tokio::test(start_paused = true)]
async fn of_two_tollgates_one_is_overlooked() {
    let (one, one_limiter) = acme(ROOMY);
    let (other, other_limiter) = acme("500/h unpaced guard 0");
    let canned = Canned::new(|_, _| fine());
    let http = bare().with(one.middleware()).with(other.middleware()).with(canned.clone()).build();
    http.get(URL).send().await.expect("accepted");
    assert_eq!((left(&one_limiter).await, left(&other_limiter).await), (999, 499));
    // What the inner one refuses was not sent: the outer one takes its permit back.
    other_limiter.pause(ms(5_000)).await.expect("in memory");
    let error = ours(http.get(URL).or_reject().send().await);
    assert_eq!((error.is_rejected(), error.retry_after()), (true, Some(ms(5_000))));
    assert_eq!((left(&one_limiter).await, left(&other_limiter).await), (999, 499));
    assert_eq!(canned.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn attempts_of_a_retry_layer_fly_free() {
    let (tollgate, limiter) = acme(ROOMY);
    let canned = Canned::new(|at, _| if at < 2 { broken() } else { fine() });
    let http = bare().with(retry(5)).with(tollgate.middleware()).with(canned.clone()).build();
    let response = http.post(URL).body("a thing").send().await.expect("accepted the third time");
    assert_eq!((response.status().as_u16(), toll(&response).attempts()), (200, 1));
    assert_eq!((canned.seen().len(), left(&limiter).await), (3, 997));
}

#[tokio::test(start_paused = true)]
async fn a_retry_layer_renews_the_bound() {
    let (tollgate, limiter) = acme("1/5s unpaced guard 0");
    let canned = Canned::new(|_, _| broken());
    let http = bare().with(retry(5)).with(tollgate.middleware()).with(canned.clone()).build();
    let watch = Watch::start();
    let error = ours(http.get(URL).wait_at_most(ms(7_000)).send().await);
    // The second attempt waits until 5 s; the third comes at about 6 s and would wait until 10 s.
    assert_eq!(canned.times(), [ms(0), ms(5_000)]);
    assert!(error.is_rejected() && watch.read() < ms(6_100), "{error} after {:?}", watch.read());
    assert_eq!(limiter.peek().await.expect("in memory").queued, 0);
}

#[tokio::test(start_paused = true)]
async fn choices_are_lost_on_the_way() {
    let (tollgate, limiter) = acme("10/h unpaced guard 0");
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    let request = || http.get(URL).build().expect("a request");
    let mut extensions = Extensions::new();
    extensions.insert(Call::new().cost("requests", 4));
    http.execute_with_extensions(request(), &mut extensions).await.expect("accepted");
    assert_eq!(left(&limiter).await, 6);
    // A clone of a builder keeps what was chosen; a built request does not.
    let heavy = http.get(URL).cost("requests", 3);
    heavy.try_clone().expect("no stream").send().await.expect("accepted");
    assert_eq!(left(&limiter).await, 3);
    http.execute(heavy.build().expect("a request")).await.expect("accepted");
    assert_eq!(left(&limiter).await, 2);

    // A default for all calls of a client, over which a call may choose.
    let rejecting = ClientBuilder::from_client(http.clone())
        .with_init(Extension(Call::new().or_reject().cost("requests", 2)))
        .build();
    rejecting.get(URL).send().await.expect("accepted");
    let watch = Watch::start();
    let error = ours(rejecting.get(URL).send().await);
    assert!(error.is_rejected(), "{error}");
    assert_eq!(watch.read(), ms(0));
    rejecting.get(URL).wait().cost("requests", 1).send().await.expect("waits for the window");
    assert_eq!(watch.read(), Duration::from_secs(3_600));
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_to_the_wrong_provider() {
    let host =
        |name: &str, host: &str| Provider::new(name).hosts([host]).limit(ROOMY.parse().expect("a limit"));
    let tollgate = Tollgate::builder()
        .provider(host("acme", "acme.test"))
        .provider(host("other", "other.test"))
        .provider(
            Provider::new("search")
                .limit(ROOMY.parse().expect("a limit"))
                .matching(|url| url.path().starts_with("/search") && url.host_str() != Some("acme.test")),
        )
        .build()
        .expect("built");
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    let limiter = |name: &str| tollgate.provider(name).expect("there");
    let [acme, other, search] = ["acme", "other", "search"].map(limiter);
    let lefts = async || (left(&acme).await, left(&other).await, left(&search).await);

    http.get(URL).send().await.expect("accepted");
    assert_eq!(lefts().await, (999, 1_000, 1_000), "by its host");
    http.get("http://ACME.test.:8080/search").send().await.expect("accepted");
    assert_eq!(lefts().await, (998, 1_000, 1_000), "by its host, whatever port and path");
    http.get("http://third.test/search?q=1").send().await.expect("accepted");
    assert_eq!(lefts().await, (998, 1_000, 999), "by the closure");
    http.get("http://other.test/search").send().await.expect("accepted");
    assert_eq!(lefts().await, (998, 999, 999), "by the first that wants it");
    http.get(URL).provider("other").send().await.expect("accepted");
    assert_eq!(lefts().await, (998, 998, 999), "its name beats its URL");
    http.get("http://third.test/").provider("search").send().await.expect("accepted");
    assert_eq!(lefts().await, (998, 998, 998), "by its name alone");

    let untouched =
        http.get("http://third.test/").or_reject().cost("requests", 0).send().await.expect("not limited");
    assert!(Toll::of(&untouched).is_none());
    assert_eq!(lefts().await, (998, 998, 998), "nobody's");

    let sent = canned.seen().len();
    for url in [URL, "http://third.test/"] {
        let error = ours(http.get(url).provider("amce").send().await);
        assert_eq!(error.refusal().map(|refusal| refusal.reason()), Some(Reason::Unknown));
        assert_eq!(error.provider(), "amce");
        assert!(error.to_string().contains("\"amce\"") && !error.is_rejected(), "{error}");
    }
    assert_eq!(
        (canned.seen().len(), lefts().await),
        (sent, (998, 998, 998)),
        "nothing sent, nothing charged"
    );
}
