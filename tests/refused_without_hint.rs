//! An upstream that refuses and does not say for how long, or says it as a date: the pauses grow, end, and count
//! once for what was refused together.

#![cfg(feature = "middleware")]

#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::time::Duration;

use tollgate::{RequestBuilderExt, Toll, reqwest::Response};
use upstream::{Canned, URL, acme, answer, fine, open, paused, provider};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn attempts(response: &Response) -> u32 {
    Toll::of(response).expect("it went through a gate").attempts()
}

/// A delay that begins at `least` and a random part of as much again at most. The timer counts in milliseconds.
fn assert_delay(delay: Duration, least: Duration) {
    assert!((least..=2 * least).contains(&delay), "{delay:?} for {least:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_hint_the_pauses_do_not_grow_or_not_end() {
    for (provider, expected) in [
        (provider("1000/h unpaced guard 0"), [1_000, 2_000, 4_000]),
        (provider("1000/h unpaced guard 0").backoff(ms(100), ms(250)), [100, 200, 250]),
        (provider("1000/h unpaced guard 0").backoff(ms(5_000), ms(60_000)), [5_000, 10_000, 20_000]),
    ] {
        let (tollgate, limiter) = open(provider.attempts(4).max_wait(Duration::from_secs(600)));
        let canned = Canned::new(|at, _| if at < 3 { answer(429, &[], "") } else { fine() });
        let http = canned.behind(&tollgate);
        let response = http.get(URL).send().await.expect("accepted");
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 4));
        let times = canned.times();
        for (pair, least) in times.windows(2).zip(expected) {
            assert_delay(pair[1] - pair[0], ms(least));
        }
        assert_eq!(paused(&limiter).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_does_not_end_the_row() {
    let (tollgate, limiter) = acme("1000/h unpaced guard 0");
    let canned = Canned::new(|at, _| if [0, 1, 3].contains(&at) { answer(429, &[], "") } else { fine() });
    let http = canned.behind(&tollgate);
    http.get(URL).send().await.expect("accepted the third time");
    let times = canned.times();
    assert_delay(times[1] - times[0], ms(1_000));
    assert_delay(times[2] - times[1], ms(2_000));
    http.get(URL).no_resend().send().await.expect("answered");
    assert_delay(paused(&limiter).await.expect("paused"), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn refused_together_each_counts_anew() {
    let (tollgate, limiter) = open(provider("1000/h unpaced guard 0").max_wait(Duration::from_secs(600)));
    // Ten are under way for 300 ms; all are refused, the last ones when the pause is known already.
    let canned = Canned::new(|at, _| if at < 10 { answer(429, &[], "") } else { fine() }).taking(ms(300));
    let http = canned.behind(&tollgate);
    let mut calls = Vec::new();
    for _ in 0..10 {
        calls.push(tokio::spawn(http.get(URL).send()));
        tokio::time::sleep(ms(10)).await;
    }
    tokio::time::sleep(ms(310)).await;
    assert_eq!(limiter.counts().refusals, 10);
    let pause = paused(&limiter).await.expect("paused");
    // The first answer came at 300 ms, now it is 410 ms.
    assert_delay(pause + ms(110), ms(1_000));
    for call in calls {
        let response = call.await.expect("no panic").expect("accepted");
        assert_eq!((response.status().as_u16(), attempts(&response)), (200, 2));
    }
    assert_delay(canned.times()[10] - ms(150) - ms(300), ms(1_000));
}

#[tokio::test(start_paused = true)]
async fn a_date_is_read_by_our_clock_or_not_at_all() {
    // The upstream's clock is decades behind ours; both headers are by its clock.
    for (date, until) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT"),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:50:07 GMT"),
        ("Sun Nov  6 08:49:37 1994", "Sun Nov  6 08:50:07 1994"),
    ] {
        for status in [429, 503] {
            let (tollgate, _) = acme("1000/h unpaced guard 0");
            let refusal = answer(status, &[("date", date), ("retry-after", until)], "");
            let canned = Canned::new(move |at, _| if at == 0 { refusal.clone() } else { fine() });
            let response = canned.behind(&tollgate).get(URL).send().await.expect("accepted");
            assert_eq!(attempts(&response), 2);
            assert_eq!(canned.times(), [ms(0), ms(30_000)], "{status} {until}");
        }
    }
}
