//! A provider that refuses in its own way: its refusals pass for answers, or callers sleep through hours.

#![cfg(feature = "middleware")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::time::Duration;

use tollgate::{Dialect, Provider, Toll, reqwest::Response};
use upstream::{Canned, URL, answer, fine, open, paused, provider, refuse};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn speaking(dialect: &str) -> Provider {
    let dialect = Dialect::named(dialect).expect("a preset");
    provider("1000/h unpaced guard 0").dialect(dialect).max_wait(Duration::from_secs(86_400))
}

fn attempts(response: &Response) -> u32 {
    Toll::of(response).expect("it went through a gate").attempts()
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_another_status_is_taken_for_an_answer() {
    const SENT: (&str, &str) = ("date", "Mon, 30 Nov 2026 12:00:00 GMT");
    let spent = [SENT, ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1796040002")];
    for (name, status, headers) in [
        ("github", 403, &spent[..]),
        ("github", 429, &spent[..]),
        ("x", 420, &[("retry-after", "2")]),
        ("anthropic", 529, &[("retry-after", "2")]),
        ("azure_openai", 429, &[("retry-after-ms", "2000"), ("retry-after", "3")]),
        ("musicbrainz", 503, &spent[..]),
    ] {
        let (tollgate, limiter) = open(speaking(name));
        let refusal = answer(status, headers, "");
        let canned = Canned::new(move |at, _| if at == 0 { refusal.clone() } else { fine() });
        let response = canned.behind(&tollgate).get(URL).send().await.expect("accepted");
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2), "{name} {status}");
        assert_eq!(canned.times(), [ms(0), ms(2_000)], "{name} {status}");
        assert_eq!(limiter.counts().refusals, 1, "{name} {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn missing_rights_stop_everybody() {
    let (tollgate, limiter) = open(speaking("github"));
    let canned = Canned::new(|_, _| answer(403, &[("x-ratelimit-remaining", "4999")], "no rights"));
    let response = canned.behind(&tollgate).get(URL).send().await.expect("answered");
    assert_eq!((response.status().as_u16(), attempts(&response)), (403, 1));
    assert_eq!((paused(&limiter).await, limiter.counts().refusals), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_caller_sleeps_for_hours() {
    for (hint, sent) in [("60", 2), ("61", 1), ("12471", 1)] {
        let (tollgate, limiter) = open(speaking("spotify"));
        let canned = Canned::new(move |at, _| if at == 0 { refuse(429, hint) } else { fine() });
        let response = canned.behind(&tollgate).get(URL).send().await.expect("answered");
        assert_eq!(attempts(&response), sent, "{hint}");
        if sent == 1 {
            // The answer goes back at once, as it came; the pause is everybody's.
            assert_eq!(response.status(), 429, "{hint}");
            assert_eq!(paused(&limiter).await, Some(Duration::from_secs(hint.parse().unwrap())), "{hint}");
        }
    }
    // `generic` knows no such bound.
    let (tollgate, _limiter) = open(speaking("generic"));
    let canned = Canned::new(|at, _| if at == 0 { refuse(429, "12471") } else { fine() });
    let response = canned.behind(&tollgate).get(URL).send().await.expect("accepted");
    assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_used_up_is_asked_again() {
    let day = [("x-rate-limit-problem", "day"), ("retry-after", "9")];
    let veto = [("x-should-retry", "false"), ("retry-after", "9")];
    for (name, headers) in [("xero", day), ("openai", veto)] {
        let (tollgate, limiter) = open(speaking(name));
        let canned = Canned::new(move |_, _| answer(429, &headers, ""));
        let response = canned.behind(&tollgate).get(URL).send().await.expect("answered");
        assert_eq!((response.status().as_u16(), attempts(&response)), (429, 1), "{name}");
        assert_eq!(paused(&limiter).await, Some(ms(9_000)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_floor_is_not_kept() {
    let (tollgate, _limiter) = open(speaking("airtable"));
    let canned = Canned::new(|at, _| if at == 0 { answer(429, &[], "") } else { fine() });
    canned.behind(&tollgate).get(URL).send().await.expect("accepted");
    assert_eq!(canned.times(), [ms(0), ms(30_000)]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_years_is_believed() {
    let (tollgate, limiter) = open(provider("1000/h unpaced guard 0"));
    let canned = Canned::new(|at, _| if at == 0 { refuse(429, "9999999999") } else { fine() });
    canned.behind(&tollgate).get(URL).send().await.expect("accepted after a backoff");
    let pause = canned.times()[1];
    assert!((ms(1_000)..=ms(2_000)).contains(&pause), "{pause:?}");
    assert_eq!(paused(&limiter).await, None);
}
