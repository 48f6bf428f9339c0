//! Requests are copied in order to be passed on: a body never is, and of a request that cannot be sent again
//! nothing is.

#![cfg(feature = "middleware")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use allocation_counter::{AllocationInfo, measure};
use axum::http::{Extensions, StatusCode};
use tollgate::{
    RequestBuilderExt, Toll,
    reqwest::{self, Request},
    reqwest_middleware::{self, ClientBuilder, ClientWithMiddleware, Middleware, Next, RequestBuilder},
};
use upstream::{URL, acme, answer, plain, refuse};

const BODY: usize = 4 << 20;
/// What passing on a request may take: under a hundredth of the body.
const LITTLE: u64 = (BODY / 100) as u64;
const ELSEWHERE: &str = "http://other.test/things";

/// Drops each request, and refuses it with the header `x-refuse`.
struct Hole;

#[async_trait::async_trait]
impl Middleware for Hole {
    async fn handle(
        &self,
        request: Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let refused = request.headers().contains_key("x-refuse");
        Ok(if refused { refuse(429, "0") } else { answer(200, &[], "") }.into())
    }
}

/// A client and a runtime for this thread alone: its allocations are all that there are.
struct Lab {
    http: ClientWithMiddleware,
    runtime: tokio::runtime::Runtime,
}

impl Lab {
    fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (tollgate, _) = runtime.block_on(async { acme("1000000/h unpaced") });
        let http = ClientBuilder::from_client(tollgate.client(plain()).expect("a client")).with(Hole).build();
        let lab = Self { http, runtime };
        // What is set up with the first call is not what one call takes.
        lab.send(lab.http.post(URL));
        lab
    }

    /// What the call takes from its sending to its answer.
    fn send(&self, request: RequestBuilder) -> (AllocationInfo, reqwest::Response) {
        let mut answered = None;
        let taken = measure(|| answered = Some(self.runtime.block_on(request.send())));
        (taken, answered.expect("sent").expect("answered"))
    }

    fn post(&self, url: &str) -> RequestBuilder {
        self.http.post(url).body(vec![b'x'; BODY])
    }
}

#[test]
fn a_body_is_copied_to_be_passed_on() {
    let lab = Lab::open();
    let refused = |request: RequestBuilder| request.header("x-refuse", "yes");
    for (shown, request, attempts) in [
        ("kept to be sent again", lab.post(URL), 1),
        ("sent three times", refused(lab.post(URL)), 3),
        ("bounded", refused(lab.post(URL)).wait_at_most(std::time::Duration::from_secs(1)), 3),
        ("or_reject", refused(lab.post(URL)).or_reject(), 1),
        ("no_resend", refused(lab.post(URL)).no_resend(), 1),
        ("of no provider", refused(lab.post(ELSEWHERE)), 0),
    ] {
        let (taken, response) = lab.send(request);
        let sent = Toll::of(&response).map_or(0, Toll::attempts);
        assert_eq!(sent, attempts, "{shown}");
        assert_eq!(response.status() == StatusCode::OK, shown.starts_with("kept"), "{shown}");
        assert!(taken.bytes_total < LITTLE, "{shown}: {taken:?}");
        // The response may still be there, the body not.
        assert!(taken.bytes_current < -(BODY as i64 - LITTLE as i64), "{shown}: {taken:?}");
    }
}

#[test]
fn a_body_is_copied_for_a_call_that_queues() {
    let lab = Lab::open();
    let (tollgate, limiter) = lab.runtime.block_on(async { acme("20/s unpaced guard 0") });
    let http = ClientBuilder::from_client(tollgate.client(plain()).expect("a client")).with(Hole).build();
    while lab.runtime.block_on(async { limiter.acquire().or_reject().await.is_ok() }) {}
    let (taken, response) = lab.send(http.post(URL).body(vec![b'x'; BODY]));
    assert!(!Toll::of(&response).expect("a toll").waited().is_zero());
    assert!(taken.bytes_total < LITTLE, "{taken:?}");
}

#[test]
fn what_cannot_be_sent_again_is_copied() {
    let lab = Lab::open();
    // Many headers, so that a copy of a request is not to be overlooked.
    let with_headers = |url: &str| {
        (0..500).fold(lab.post(url), |request, at| request.header(format!("x-header-{at}"), "value"))
    };
    let request = with_headers(URL).build().expect("a request");
    let copy = measure(|| drop(request.try_clone().expect("no stream")));
    assert!(copy.bytes_total > 20_000, "{copy:?}");

    let taken = |request| lab.send(request).0;
    let kept = taken(with_headers(URL).wait());
    let uncopied = taken(with_headers(URL).no_resend());
    assert_eq!(kept.count_total, uncopied.count_total + copy.count_total);
    assert!(kept.bytes_total >= uncopied.bytes_total + copy.bytes_total);
    for (shown, taken) in [
        ("no_resend", uncopied),
        ("or_reject", taken(with_headers(URL).or_reject())),
        ("of no provider", taken(with_headers(ELSEWHERE).wait())),
    ] {
        assert!(taken.count_total <= uncopied.count_total, "{shown}: {taken:?}, {uncopied:?}");
        assert!(taken.bytes_total < copy.bytes_total / 4, "{shown}: {taken:?}, a copy {copy:?}");
    }
}
