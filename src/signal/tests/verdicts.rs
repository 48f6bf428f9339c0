//! Answers that refuse and are not taken for refusals, or the other way round; and which of several waits counts.

use super::{Refusal, hear, ms};

#[test]
fn a_status_means_the_same_everywhere() {
    for (dialect, status, refusal) in [
        ("generic", 429, Some(Refusal::Rate)),
        ("generic", 420, None),
        ("generic", 403, None),
        ("generic", 503, None),
        ("generic", 529, None),
        ("x", 420, Some(Refusal::Rate)),
        ("anthropic", 529, Some(Refusal::Rate)),
        ("notion", 529, Some(Refusal::Rate)),
        ("musicbrainz", 503, Some(Refusal::Rate)),
        ("binance", 418, Some(Refusal::Quota)),
        ("blockfrost", 402, Some(Refusal::Quota)),
        ("github", 403, None),
    ] {
        assert_eq!(hear(dialect, status, &[]).refusal, refusal, "{dialect} {status}");
    }
    for (dialect, status, header, refusal) in [
        ("github", 403, ("retry-after", "60"), Some(Refusal::Rate)),
        ("github", 403, ("x-ratelimit-remaining", "0"), Some(Refusal::Rate)),
        ("github", 403, ("x-ratelimit-remaining", "1"), None),
        ("github", 404, ("x-ratelimit-remaining", "0"), None),
        ("aws", 400, ("x-amzn-errortype", "ThrottlingException:http://internal/"), Some(Refusal::Rate)),
        ("aws", 400, ("x-amzn-errortype", "ValidationException"), None),
        ("xero", 429, ("x-rate-limit-problem", "day"), Some(Refusal::Quota)),
        ("xero", 429, ("x-rate-limit-problem", "Day"), Some(Refusal::Quota)),
        ("xero", 429, ("x-rate-limit-problem", "minute"), Some(Refusal::Rate)),
        ("openai", 429, ("x-should-retry", "false"), Some(Refusal::Quota)),
        ("stripe", 429, ("stripe-should-retry", "true"), Some(Refusal::Rate)),
        ("salesforce", 403, ("sforce-limit-info", "api-usage=5001/5000"), Some(Refusal::Quota)),
        ("salesforce", 403, ("sforce-limit-info", "api-usage=500/5000"), None),
    ] {
        assert_eq!(hear(dialect, status, &[header]).refusal, refusal, "{dialect} {status} {header:?}");
    }
}

#[test]
fn a_coarser_hint_goes_first() {
    let ms_and_seconds = |fine| hear("openai", 429, &[("retry-after", "5"), ("retry-after-ms", fine)]).wait;
    assert_eq!(ms_and_seconds("4100"), Some(ms(4_100)));
    // Zero is present, empty is absent, and what cannot be read hides nothing.
    assert_eq!(ms_and_seconds("0"), Some(ms(0)));
    assert_eq!(ms_and_seconds(""), Some(ms(5_000)));
    assert_eq!(ms_and_seconds("soon"), Some(ms(5_000)));
    assert_eq!(
        hear("aws", 429, &[("x-amz-retry-after", "1500"), ("retry-after", "9")]).wait,
        Some(ms(1_500))
    );
}

#[test]
fn a_reset_goes_before_a_hint_or_a_floor_before_a_reset() {
    let empty = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1796041234")];
    assert_eq!(hear("github", 429, &empty).wait, Some(ms(1_234_000)));
    assert_eq!(hear("github", 429, &[&empty[..], &[("retry-after", "7")]].concat()).wait, Some(ms(7_000)));
    assert_eq!(hear("github", 429, &empty[..1]).wait, Some(ms(60_000)));
    assert_eq!(hear("airtable", 429, &[]).wait, Some(ms(30_000)));
    // A floor is for refusals.
    assert_eq!(hear("airtable", 200, &[]).wait, None);
    assert_eq!(hear("airtable", 500, &[]).wait, None);
    // A time that has passed is a word: now.
    assert_eq!(hear("github", 429, &[empty[0], ("x-ratelimit-reset", "1796039900")]).wait, Some(ms(0)));
}

#[test]
fn a_rate_below_one_is_none() {
    let wait = |rate| hear("amazon_sp_api", 429, &[("x-amzn-ratelimit-limit", rate)]).wait;
    assert_eq!(wait("0.0167").map(|wait| wait.as_millis()), Some(59_880));
    assert_eq!(wait("2"), Some(ms(500)));
    assert_eq!(wait("0"), None);
    assert_eq!(wait("-1"), None);
    assert_eq!(hear("amazon_sp_api", 200, &[("x-amzn-ratelimit-limit", "0.5")]).wait, None);
}

#[test]
fn a_category_or_a_unit_is_missed() {
    let sentry = "60:transaction:key, 2700:default;error;security:organization";
    assert_eq!(hear("sentry", 200, &[("x-sentry-rate-limits", sentry)]).wait, Some(ms(2_700_000)));
    assert_eq!(
        hear("sentry", 429, &[("x-sentry-rate-limits", "::"), ("retry-after", "9")]).wait,
        Some(ms(9_000))
    );
    assert_eq!(hear("sentry", 429, &[]).wait, Some(ms(60_000)));
    assert_eq!(hear("discord_v6", 429, &[("retry-after", "6457")]).wait, Some(ms(6_457)));
    assert_eq!(hear("discord", 429, &[("retry-after", "6457")]).wait, Some(ms(6_457_000)));
    assert_eq!(hear("docker_hub_api", 429, &[("retry-after", "1796040060")]).wait, Some(ms(60_000)));
    assert_eq!(
        hear("jira", 429, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "2026-11-30T12:01Z")]).wait,
        Some(ms(60_000))
    );
}
