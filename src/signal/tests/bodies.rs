//! What only a body tells.

use super::{Dialect, Refusal, hear_with, ms, preset, window};
use crate::signal::{Signal, body};

fn hear(dialect: &str, status: u16, body: &str) -> Signal {
    hear_with(&preset(dialect), status, &[], Some(body))
}

#[test]
fn a_success_that_refuses_is_not_seen() {
    for (dialect, body, wait) in [
        ("kraken", r#"{"error":["EService:Throttled: 1796040060"]}"#, Some(60_000)),
        ("kraken", r#"{"error":["EAPI:Rate limit exceeded"]}"#, None),
        ("bybit", r#"{"retCode":10006,"retMsg":"Too many visits!"}"#, None),
        ("mediawiki", r#"{"error":{"code":"maxlag"}}"#, None),
        ("linear", r#"{"errors":[{"extensions":{"code":"RATELIMITED"}}]}"#, None),
        ("slack", r#"{"ok":false,"error":"ratelimited"}"#, None),
        ("github", r#"{"errors":[{"type":"RATE_LIMITED"}]}"#, Some(60_000)),
    ] {
        let signal = hear(dialect, 200, body);
        assert_eq!((signal.refusal, signal.wait), (Some(Refusal::Rate), wait.map(ms)), "{dialect}");
        assert_eq!(hear(dialect, 200, r#"{"error":[],"retCode":0}"#), Signal::default(), "{dialect}");
        assert!(preset(dialect).asks_for_body(200), "{dialect}");
    }
    assert_eq!(hear("discord", 200, r#"{"retry_after":5}"#).wait, None, "it may be anything");
    assert!(!Dialect::default().asks_for_body(429));
    assert!(!preset("openai").asks_for_body(200));
}

#[test]
fn missing_rights_are_taken_for_a_limit() {
    let google =
        |reason: &str| hear("google", 403, &format!(r#"{{"error":{{"errors":[{{"reason":"{reason}"}}]}}}}"#));
    assert_eq!(google("userRateLimitExceeded").refusal, Some(Refusal::Rate));
    assert_eq!(google("dailyLimitExceeded").refusal, Some(Refusal::Quota));
    assert_eq!(google("accessNotConfigured"), Signal::default());
    assert_eq!(hear("github", 403, r#"{"message":"Must have admin rights"}"#), Signal::default());
    let secondary = hear("github", 403, r#"{"message":"You have exceeded a secondary rate limit."}"#);
    assert_eq!((secondary.refusal, secondary.wait), (Some(Refusal::Rate), Some(ms(60_000))));
    assert_eq!(
        hear("aws", 400, r#"{"__type":"com.amazonaws.dynamodb#ThrottlingException"}"#).refusal,
        Some(Refusal::Rate)
    );
    assert_eq!(hear("aws", 503, "<Error><Code>SlowDown</Code></Error>").refusal, Some(Refusal::Rate));
    assert_eq!(hear("aws", 503, "<Error><Code>InternalError</Code></Error>"), Signal::default());
    assert_eq!(hear("aws", 400, r#"{"__type":"ValidationException"}"#), Signal::default());
}

#[test]
fn a_quota_is_waited_out_in_short_steps() {
    let day = |delay: &str| {
        format!(
            r#"{{"error":{{"details":[{{"violations":[{{"quotaId":"RequestsPerDayPerProject"}}]}},{{"retryDelay":"{delay}"}}]}}}}"#
        )
    };
    // Until midnight, Pacific time.
    let signal = hear("gemini", 429, &day("34s"));
    assert_eq!((signal.refusal, signal.wait), (Some(Refusal::Quota), Some(ms(72_000_000))));
    assert_eq!(hear("gemini", 429, &day("80000s")).wait, Some(ms(80_000_000)));
    let minute = hear("gemini", 429, r#"{"error":{"details":[{"retryDelay":"45.837906927s"}]}}"#);
    assert_eq!((minute.refusal, minute.wait.unwrap().as_micros()), (Some(Refusal::Rate), 45_837_907));
    let bill = r#"{"error":{"code":"insufficient_quota"}}"#;
    assert_eq!(hear("openai", 429, bill).refusal, Some(Refusal::Quota));
    assert_eq!(
        hear("openai", 429, r#"{"error":{"message":"INSUFFICIENT QUOTA"}}"#).refusal,
        Some(Refusal::Rate)
    );
    assert_eq!(hear("hubspot", 429, r#"{"policyName":"DAILY"}"#).refusal, Some(Refusal::Quota));
    assert_eq!(hear("hubspot", 429, r#"{"policyName":"TEN_SECONDLY_ROLLING"}"#).refusal, Some(Refusal::Rate));
    assert_eq!(hear("stripe", 429, r#"{"error":{"code":"lock_timeout"}}"#).refusal, None);
}

#[test]
fn a_bucket_is_divided_by_nothing() {
    let body = |limit: &str, left: &str, rate: &str, cost: &str| {
        format!(
            r#"{{"errors":[{{"extensions":{{"code":"THROTTLED"}}}}],"extensions":{{"cost":{{"requestedQueryCost":{cost},
            "throttleStatus":{{"maximumAvailable":{limit},"currentlyAvailable":{left},"restoreRate":{rate}}}}}}}}}"#
        )
    };
    let shop = |body: String| hear("shopify_graphql", 200, &body);
    let signal = shop(body("1000.0", "498", "50.0", "502"));
    assert_eq!((signal.refusal, signal.wait), (Some(Refusal::Rate), Some(ms(80))));
    assert_eq!(signal.binding().map(window), Some((Some(1000.0), Some(498.0), Some(10_040))));
    assert_eq!(shop(body("1000", "0", "0", "10")).wait, None);
    assert_eq!(shop(body("1000", "0", "-5", "10")).wait, None);
    assert_eq!(shop(body("1000", "498", "1e-300", "502")).wait, None);
    // It can never pass.
    let never = shop(body("1000", "1000", "50", "1001"));
    assert_eq!((never.refusal, never.wait), (Some(Refusal::Quota), None));
}

#[test]
fn a_body_is_read_without_end() {
    let pad = format!(r#"{{"pad":"{}","retry_after":1}}"#, "x".repeat(body::LONGEST));
    assert_eq!(hear("discord", 429, &pad).wait, None);
    assert_eq!(hear("discord", 429, r#"{"retry_after":64.57}"#).wait, Some(ms(64_570)));
    for text in [
        "",
        "null",
        "<html></html>",
        "{",
        &"[".repeat(60_000),
        r#"{"retry_after":-1}"#,
        r#"{"retry_after":1e400}"#,
    ] {
        assert_eq!(hear("discord", 429, text).wait, None, "{}", &text[..text.len().min(30)]);
    }
}
