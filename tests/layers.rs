//! Layers around and inside: each request is charged once, each error is found, whatever the stack.

#![cfg(feature = "middleware")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use axum::http::Extensions;
use reqwest_retry::{Jitter, RetryTransientMiddleware, policies::ExponentialBackoff};
use support::Watch;
use tollgate::{
    Call, Error, Limiter, MemoryStore, Provider, Reason, RequestBuilderExt, Toll, Tollgate,
    reqwest::{Request, Response},
    reqwest_middleware::{self, ClientBuilder, ClientWithMiddleware, Extension, Middleware, Next},
};
use upstream::{Canned, Log, URL, Upstream, acme, answer, fine, left, open, paused, plain, provider};

const ROOMY: &str = "1000/h unpaced guard 0";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn toll(response: &Response) -> &Toll {
    Toll::of(response).expect("it went through a gate")
}

/// The error of a call, which must be one of ours.
fn ours(result: reqwest_middleware::Result<Response>) -> Error {
    let error = result.expect_err("refused");
    Error::find(&error).unwrap_or_else(|| panic!("not ours: {error:?}"))
}

/// Lets a request through as it is.
struct Nothing;

#[async_trait::async_trait]
impl Middleware for Nothing {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        next.run(request, extensions).await
    }
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

fn bare() -> ClientBuilder {
    ClientBuilder::new(plain().build().expect("a client"))
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

/// The usual retry layer: so many attempts more, a second apart.
fn retry(more: u32) -> RetryTransientMiddleware<ExponentialBackoff> {
    let policy = ExponentialBackoff::builder().retry_bounds(ms(1_000), ms(1_000)).jitter(Jitter::None);
    RetryTransientMiddleware::new_with_policy(policy.build_with_max_retries(more))
}

fn broken() -> upstream::Answer {
    answer(500, &[], "")
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
async fn a_refusal_is_lost_in_other_errors() {
    let (tollgate, limiter) = acme("1/5s unpaced guard 0");
    let canned = Canned::new(|_, _| broken());
    let stacks = [
        bare().with(tollgate.middleware()),
        bare().with(Nothing).with(tollgate.middleware()).with(Nothing),
        bare().with(retry(0)).with(tollgate.middleware()),
        bare().with(retry(3)).with(retry(3)).with(tollgate.middleware()),
    ];
    limiter.acquire().or_reject().await.expect("there is room");
    for stack in stacks {
        let error = ours(stack.with(canned.clone()).build().get(URL).or_reject().send().await);
        assert!(error.is_rejected() && !error.is_store() && !error.is_impossible(), "{error}");
        assert_eq!((error.provider(), error.retry_after()), ("acme", Some(ms(5_000))));
        let refusal = error.refusal().expect("the store is fine");
        assert_eq!(refusal.reason(), Reason::Limited);
        assert_eq!(refusal.limit().map(ToString::to_string).as_deref(), Some("1/5s unpaced guard 0s"));
    }
    assert!(canned.seen().is_empty());
    // Wrapped once more with the number of its retries: the first attempt was sent.
    tokio::time::sleep(ms(5_000)).await;
    let http = bare().with(retry(3)).with(tollgate.middleware()).with(canned.clone()).build();
    let error = ours(http.get(URL).or_reject().send().await);
    assert!(error.is_rejected(), "{error}");
    assert_eq!(canned.seen().len(), 1);
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_store_that_is_away_is_taken_for_a_limit() {
    let store = || {
        let store = tollgate::RedisStore::new(&format!("redis://127.0.0.1:{}", dead_port())).expect("a URL");
        store.timeout(ms(100))
    };
    let canned = Canned::new(|_, _| fine());
    for retries in [None, Some(2)] {
        let tollgate = Tollgate::builder().store(store()).provider(provider(ROOMY)).build().expect("built");
        let stack = retries.into_iter().fold(bare(), |stack, more| stack.with(retry(more)));
        let http = stack.with(tollgate.middleware()).with(canned.clone()).build();
        for request in [http.get(URL), http.get(URL).or_reject()] {
            let result = request.send().await;
            let text = format!("{:?}", result.as_ref().expect_err("no store"));
            let error = ours(result);
            assert!(error.is_store() && !error.is_rejected() && error.retry_after().is_none(), "{text}");
            assert!(error.refusal().is_none(), "{text}");
            assert_eq!(error.provider(), "acme", "{text}");
        }
    }
    assert!(canned.seen().is_empty(), "nothing is sent without a permit");
}

/// A port at which nobody listens.
fn dead_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn a_plain_error_is_taken_for_ours() {
    let upstream = Upstream::start(|_, _| {
        std::thread::sleep(ms(400));
        fine()
    })
    .await;
    let (tollgate, limiter) = open(provider(ROOMY).hosts(["127.0.0.1"]));
    let client = tollgate.client(plain()).expect("a client");
    let retrying = bare().with(retry(0)).with(tollgate.middleware()).build();
    for (http, shown) in [(&client, "bare"), (&retrying, "under a retry layer")] {
        let before = left(&limiter).await;
        let error =
            http.get(format!("http://127.0.0.1:{}", dead_port())).send().await.expect_err("nobody there");
        assert!(Error::find(&error).is_none(), "{shown}: {error:?}");
        assert!(shown != "bare" || (error.is_connect() && !error.is_timeout()), "{shown}: {error:?}");
        assert_eq!(left(&limiter).await, before, "{shown}: nothing was sent, nothing is charged");

        let request = http.get(&upstream.url).timeout(ms(50));
        let error = request.send().await.expect_err("too slow");
        assert!(Error::find(&error).is_none(), "{shown}: {error:?}");
        assert!(shown != "bare" || (error.is_timeout() && !error.is_connect()), "{shown}: {error:?}");
        assert_eq!(left(&limiter).await, before - 1, "{shown}: it was sent");
    }
}

#[tokio::test]
async fn a_refused_connection_costs_the_next_caller_its_permit() {
    let (tollgate, limiter) = open(provider("1/h unpaced guard 0").hosts(["127.0.0.1"]));
    let upstream = Upstream::start(|_, _| fine()).await;
    let http = tollgate.client(plain()).expect("a client");
    let dead = format!("http://127.0.0.1:{}", dead_port());
    for _ in 0..3 {
        let error = http.get(&dead).send().await.expect_err("nobody there");
        assert!(error.is_connect(), "{error:?}");
        let peek = limiter.peek().await.expect("in memory");
        assert_eq!((peek.limits[0].left, peek.limits[0].next_free), (1, ms(0)));
    }
    http.get(&upstream.url).or_reject().send().await.expect("the permit is there");
    assert_eq!(left(&limiter).await, 0);
}

#[tokio::test(start_paused = true)]
async fn choices_are_lost_on_the_way() {
    let (tollgate, limiter) = acme("10/h unpaced guard 0");
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    let request = || http.get(URL).build().expect("a request");
    let mut extensions = Extensions::new();
    extensions.insert(Call::new().cost(4));
    http.execute_with_extensions(request(), &mut extensions).await.expect("accepted");
    assert_eq!(left(&limiter).await, 6);
    // A clone of a builder keeps what was chosen; a built request does not.
    let heavy = http.get(URL).cost(3);
    heavy.try_clone().expect("no stream").send().await.expect("accepted");
    assert_eq!(left(&limiter).await, 3);
    http.execute(heavy.build().expect("a request")).await.expect("accepted");
    assert_eq!(left(&limiter).await, 2);

    // A default for all calls of a client, over which a call may choose.
    let rejecting = ClientBuilder::from_client(http.clone())
        .with_init(Extension(Call::new().or_reject().cost(2)))
        .build();
    rejecting.get(URL).send().await.expect("accepted");
    let watch = Watch::start();
    let error = ours(rejecting.get(URL).send().await);
    assert!(error.is_rejected(), "{error}");
    assert_eq!(watch.read(), ms(0));
    rejecting.get(URL).wait().cost(1).send().await.expect("waits for the window");
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

    let untouched = http.get("http://third.test/").or_reject().cost(0).send().await.expect("not limited");
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

#[tokio::test(start_paused = true)]
async fn a_disabled_tollgate_limits() {
    let tollgate = Tollgate::disabled();
    let canned = Canned::new(|_, _| upstream::refuse(429, "60"));
    let http = canned.behind(&tollgate);
    for request in [http.get(URL), http.get(URL).or_reject(), http.get(URL).provider("any").cost(0)] {
        let response = request.send().await.expect("answered");
        assert_eq!(response.status(), 429);
        assert!(Toll::of(&response).is_none());
    }
    assert_eq!(canned.times(), [ms(0); 3]);
    let limiter = tollgate.provider("any").expect("any");
    for _ in 0..2_000 {
        let permit = limiter.acquire().or_reject().cost(1_000).await.expect("not limited");
        assert_eq!((permit.remaining(), permit.waited()), (None, ms(0)));
        permit.give_back();
    }
}

async fn observed(provider: Provider, calls: usize) -> (Limiter, Canned, Tollgate) {
    let (tollgate, limiter) = open(provider.observe(true));
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    for _ in 0..calls {
        let response = http.get(URL).send().await.expect("observed only");
        assert_eq!((toll(&response).remaining(), toll(&response).waited()), (None, ms(0)));
        assert_eq!(toll(&response).attempts(), 1);
    }
    assert_eq!(canned.times(), vec![ms(0); calls], "nobody waits");
    (limiter, canned, tollgate)
}

#[tokio::test(start_paused = true)]
async fn an_observed_provider_is_limited_or_tells_nothing() {
    let (log, _guard) = Log::capture();
    // Two fly at once, two after a minute, one after two.
    let (limiter, canned, tollgate) = observed(provider("2/min unpaced guard 0"), 5).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (0, 0), "known when it is over");
    // Two that would not wait so long, one that costs too much.
    let http = canned.behind(&tollgate);
    for request in [http.get(URL).or_reject(), http.get(URL).wait_at_most(ms(500)), http.get(URL).cost(3)] {
        assert_eq!(toll(&request.send().await.expect("observed only")).remaining(), None);
    }
    tokio::time::sleep(ms(10)).await;
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (0, 3));
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (3, 3));
    assert_eq!(canned.seen().len(), 8);
    let log = log.text();
    let told = |what: &str| log.lines().filter(|line| line.contains("INFO") && line.contains(what)).count();
    assert_eq!((told("would have waited"), told("would have been refused")), (3, 3), "{log}");
    assert!(log.lines().all(|line| !line.contains("observed only") || line.contains("provider=\"acme\"")));
}

#[tokio::test(start_paused = true)]
async fn an_observed_refusal_stops_or_repeats_calls() {
    let (tollgate, limiter) = open(provider(ROOMY).observe(true));
    let canned = Canned::new(|_, _| upstream::refuse(429, "2"));
    let http = canned.behind(&tollgate);
    for _ in 0..2 {
        let response = http.get(URL).send().await.expect("answered");
        assert_eq!((response.status().as_u16(), toll(&response).attempts()), (429, 1));
    }
    assert_eq!(canned.times(), [ms(0); 2]);
    assert_eq!(paused(&limiter).await, Some(ms(2_000)), "others may heed it");
    assert_eq!(limiter.counts().refusals, 2);
}

#[tokio::test(start_paused = true)]
async fn hops_booked_ahead_are_observed_as_if_all_were_used() {
    // Whoever is limited gets back what he has not used: ten calls fly at once, also with a hop booked each.
    let (limiter, ..) = observed(provider("10/min unpaced guard 0").redirects(1), 9).await;
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!((limiter.counts().would_wait, limiter.counts().would_refuse), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_nameless_tollgate_says_nothing() {
    let (log, _guard) = Log::capture();
    let nameless = Provider::new("acme").limit(ROOMY.parse().expect("a limit"));
    let tollgate = Tollgate::builder().store(MemoryStore::new()).provider(nameless).build().expect("built");
    let canned = Canned::new(|_, _| fine());
    let http = canned.behind(&tollgate);
    assert!(log.text().contains("WARN") && log.text().contains("only calls that name their provider"));
    assert!(Toll::of(&http.get(URL).send().await.expect("passes")).is_none());
    let named = http.get(URL).provider("acme").send().await.expect("accepted");
    assert_eq!(toll(&named).remaining(), Some(999));
}
