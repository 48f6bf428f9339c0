//! The wrong window decides, or a counter is taken for another.

use super::{hear, ms, window};

#[test]
fn a_window_with_room_decides() {
    let openai = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-remaining-tokens", "149984"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    assert_eq!(hear("openai", 429, &openai).wait, Some(ms(1_000)));
    // Both are empty: the later one.
    let both = [&openai[..2], &[("x-ratelimit-remaining-tokens", "0")], &openai[3..]].concat();
    let signal = hear("openai", 429, &both);
    assert_eq!(signal.wait, Some(ms(360_000)));
    assert_eq!(signal.binding().map(|window| &*window.name), Some("tokens"));
    // Refused though none is: another window is empty, of which nothing is told.
    assert_eq!(hear("openai", 429, &openai[2..]).wait, None);
    // A success with room asks for nothing, whenever its window ends.
    assert_eq!(hear("openai", 200, &openai[2..]).wait, None);
}

#[test]
fn the_reset_of_a_refusal_without_counters_is_lost() {
    assert_eq!(hear("kucoin", 429, &[("gw-ratelimit-reset", "1500")]).wait, Some(ms(1_500)));
    assert_eq!(hear("kucoin", 200, &[("gw-ratelimit-reset", "1500")]).wait, None);
}

#[test]
fn a_sentinel_is_taken_for_a_number() {
    let fields = |remaining| [("x-ratelimit-remaining-tokens", remaining), ("x-ratelimit-reset-tokens", "9")];
    assert_eq!(hear("azure_openai", 429, &fields("-1")).windows, []);
    assert_eq!(hear("azure_openai", 429, &fields("-1")).wait, None);
    assert_eq!(hear("azure_openai", 429, &fields("0")).wait, Some(ms(9_000)));
    // Less than nothing is nothing, if there is a limit.
    let owed = [&fields("-3")[..], &[("x-ratelimit-limit-tokens", "100")]].concat();
    assert_eq!(
        hear("azure_openai", 429, &owed).binding().map(window),
        Some((Some(100.0), Some(0.0), Some(9_000)))
    );
    let no_limit = [&fields("0")[..], &[("x-ratelimit-limit-tokens", "-1")]].concat();
    assert_eq!(hear("azure_openai", 429, &no_limit).windows, []);
}

#[test]
fn the_window_of_one_resource_is_taken_for_that_of_another() {
    let fields =
        [("x-ratelimit-limit", "30"), ("x-ratelimit-remaining", "7"), ("x-ratelimit-resource", "search")];
    assert_eq!(hear("github", 200, &fields).binding().map(|window| &*window.name), Some("search"));
    assert_eq!(hear("github", 200, &fields[2..]).windows, []);
}

#[test]
fn repeated_sets_are_mixed_up() {
    let sets = [
        ("x-rate-limit-limit", "1200"),
        ("x-rate-limit-limit", "600"),
        ("x-rate-limit-remaining", "1199"),
        ("x-rate-limit-remaining", "0"),
        ("x-rate-limit-reset", "1796040060"),
        ("x-rate-limit-reset", "1796040030"),
    ];
    let signal = hear("okta", 429, &sets);
    assert_eq!((signal.wait, signal.windows.len()), (Some(ms(30_000)), 2));
    assert_eq!(signal.binding().map(window), Some((Some(600.0), Some(0.0), Some(30_000))));
}

#[test]
fn a_clock_is_used_where_a_delta_is_told() {
    let both = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1796040999.5"),
        ("x-ratelimit-reset-after", "1.2"),
    ];
    assert_eq!(hear("discord", 429, &both).wait, Some(ms(1_200)));
    let bad = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1796040999.5"),
        ("x-ratelimit-reset-after", "?"),
    ];
    assert_eq!(hear("discord", 429, &bad).wait, Some(ms(999_500)));
}

#[test]
fn the_length_of_a_window_is_waited_for_or_not() {
    // A rolling window whose reset nobody tells has room after its length; a policy of the IETF says nothing.
    let riot = [("x-app-rate-limit", "20:1"), ("x-app-rate-limit-count", "20:1")];
    assert_eq!(hear("riot", 200, &riot).wait, Some(ms(1_000)));
    let ietf = [("ratelimit", r#""default";r=0"#), ("ratelimit-policy", r#""default";q=100;w=60"#)];
    assert_eq!(hear("ietf", 429, &ietf).wait, None);
    // Windows of the clock end at whole minutes.
    let signal = hear("binance", 200, &[("x-mbx-used-weight-1m", "6000")]);
    assert_eq!(signal.binding().map(window), Some((Some(6000.0), Some(0.0), Some(60_000))));
}

#[test]
fn a_window_of_the_calendar_ends_at_another_time() {
    let strava =
        |usage| hear("strava", 429, &[("x-ratelimit-limit", "200,2000"), ("x-ratelimit-usage", usage)]).wait;
    assert_eq!(strava("200,850"), Some(ms(900_000)));
    assert_eq!(strava("50,2000"), Some(ms(43_200_000)));
    assert_eq!(strava("200,2000"), Some(ms(43_200_000)));
    assert_eq!(strava("50,850"), None);
}

#[test]
fn percentages_are_taken_for_counters() {
    let usage = |text| hear("meta", 403, &[("x-app-usage", text)]);
    let signal = usage(r#"{"call_count":28,"total_time":100,"total_cputime":25}"#);
    assert_eq!(signal.binding().map(window), Some((Some(100.0), Some(0.0), None)));
    let business =
        r#"{"123":[{"type":"ads","call_count":101,"total_time":1,"estimated_time_to_regain_access":5}]}"#;
    let signal = hear("meta", 400, &[("x-business-use-case-usage", business)]);
    assert_eq!(
        (signal.wait, signal.binding().map(window)),
        (Some(ms(300_000)), Some((Some(100.0), Some(0.0), Some(300_000))))
    );
    for text in ["{", "[]", "7", r#"{"call_count":"28"}"#, &"[".repeat(10_000)] {
        assert_eq!(usage(text).windows, [], "{text}");
    }
}
