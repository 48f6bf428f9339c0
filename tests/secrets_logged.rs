//! What is secret is in no log and no error. Alone in its process: whether anybody listens to a log line is
//! remembered for all threads.

#![cfg(feature = "middleware")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::time::Duration;

use tollgate::{Error, RequestBuilderExt, Toll, reqwest::Response};
use upstream::{Canned, Log, acme, answer};

fn attempts(response: &Response) -> u32 {
    Toll::of(response).expect("it went through a gate").attempts()
}

#[tokio::test(start_paused = true)]
async fn what_is_secret_is_logged() {
    let (log, _guard) = Log::capture();
    let url = "http://me:hush-user@acme.test/things/hush-path?key=hush-query#hush-fragment";
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned =
        Canned::new(|_, _| answer(429, &[("retry-after", "2"), ("x-token", "hush-answer")], "hush-text"));
    let http = canned.behind(&tollgate);
    let request = || http.post(url).bearer_auth("hush-header").body("hush-body");
    let response = request().send().await.expect("answered");
    assert_eq!((response.status().as_u16(), attempts(&response)), (429, 3));
    let mut told = Vec::new();
    for call in
        [request().or_reject(), request().wait_at_most(Duration::from_millis(1)), request().provider("amce")]
    {
        let error = call.send().await.expect_err("refused");
        let ours = Error::find(&error).expect("ours");
        told.push(format!("{error} {error:?} {ours} {ours:?} {:?}", ours.refusal()));
        let mut source: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = source {
            told.push(format!("{error} {error:?}"));
            source = error.source();
        }
    }
    told.push(format!("{tollgate:?} {limiter:?} {:?}", Toll::of(&response)));
    let logged = log.text();
    assert_eq!(logged.matches("the provider refused a request").count(), 3, "{logged}");
    assert!(logged.contains("provider=\"acme\"") && logged.contains("status=429"), "{logged}");
    for text in told.into_iter().chain([logged]) {
        assert!(!text.contains("hush") && !text.contains("Bearer"), "{text}");
    }
}
