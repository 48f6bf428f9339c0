//! Dialects that cannot be read, or are read though they make no sense.

use super::{Dialect, hear_with, ms, preset};

#[test]
fn a_preset_is_missing_or_cannot_be_read() {
    let mut last = "";
    for name in Dialect::names() {
        preset(name);
        assert!(last < name, "{name} is found by bisection");
        last = name;
    }
    for name in ["GitHub", "shopify-rest", " openai ", "Azure", "twitter", "jira-cloud", "msgraph"] {
        preset(name);
    }
    assert!(Dialect::named("github2").is_none());
    assert!(Dialect::named("").is_none());
}

#[test]
fn a_mistake_is_taken_for_a_dialect() {
    for (text, says) in [
        (r#"{"flor_s":5}"#, "unknown field `flor_s`"),
        (r#"{"headers":[{"header":"x-left","means":"left"}]}"#, "unknown variant `left`"),
        (r#"{"headers":[{"header":"x-left","means":"remaining","from":1}]}"#, "unknown field `from`"),
        (r#"{"headers":[{"header":"x left","means":"remaining"}]}"#, "\"x left\" is no name of a header"),
        (r#"{"headers":[{"header":"x-*-*","means":"remaining"}]}"#, "one \"*\" at most"),
        (
            r#"{"headers":[{"header":"X-A","means":"limit"},{"header":"x-a","means":"used"}]}"#,
            "\"x-a\" is there twice",
        ),
        (r#"{"headers":[{"header":"x-a","means":"reset","form":"epoch"}]}"#, "unknown variant `epoch`"),
        (r#"{"answers":[{"status":[],"means":"rate"}]}"#, "names no status"),
        (r#"{"answers":[{"status":[42],"means":"rate"}]}"#, "42 is no status"),
        (r#"{"answers":[{"status":[429]}]}"#, "missing field `means`"),
        (r#"{"answers":[{"status":[429],"means":"quota","window":"day"}]}"#, "the window \"day\""),
        (
            r#"{"answers":[{"status":[429],"means":"quota","body":{"at":["/code"]}}]}"#,
            "add `is` or `contains`",
        ),
        (
            r#"{"answers":[{"status":[429],"means":"quota","body":{"at":["code"],"is":["1"]}}]}"#,
            "no pointer into JSON",
        ),
        (r#"{"windows":{"day":{"per":"day"}}}"#, "the window \"day\" is per what?"),
        (r#"{"windows":{"day":{"per":"day resets 25:00 UTC"}}}"#, "23:59"),
        (r#"{"windows":{"day":{"per":"day resets 00:00 Mars/Olympus"}}}"#, "unknown time zone"),
        (r#"{"floor_s":9999999}"#, "more than 31 days"),
        (r#"{"floor_s":-1}"#, "invalid value"),
        ("", "EOF"),
        ("{", "line 1"),
    ] {
        let error = text.parse::<Dialect>().expect_err(text).to_string();
        assert!(error.contains(says) && error.starts_with("a dialect cannot be read: "), "{text}: {error}");
    }
}

#[test]
fn a_dialect_of_a_user_is_not_obeyed() {
    let acme: Dialect = r#"{
        "answers": [{ "status": [420, 999], "means": "rate" }],
        "headers": [
            { "header": "X-Quota-*-Left", "means": "remaining" },
            { "header": "X-Quota-*-Until", "means": "reset", "form": "epoch_seconds" }
        ],
        "windows": { "hour": { "limit": 50 } },
        "floor_s": 5,
        "longest_sleep_s": 60
    }"#
    .parse()
    .unwrap();
    assert_eq!(acme.longest_sleep(), Some(ms(60_000)));
    assert_eq!(hear_with(&acme, 999, &[], None).wait, Some(ms(5_000)));
    let told = [("x-quota-hour-left", "0"), ("x-quota-hour-until", "1796040030"), ("x-quota--left", "0")];
    let signal = hear_with(&acme, 420, &told, None);
    assert_eq!((signal.wait, signal.windows.len()), (Some(ms(30_000)), 1));
    assert_eq!((&*signal.windows[0].name, signal.windows[0].limit), ("hour", Some(50.0)));
    // What it does not say is as everywhere.
    assert_eq!(hear_with(&acme, 429, &[("retry-after", "3")], None).wait, Some(ms(3_000)));
}

#[test]
fn a_header_is_overlooked_by_its_length() {
    for star in ["a", "some-thing", &"long".repeat(40)] {
        for before in ["x", "x-q", "x-quota-"] {
            let text = format!(r#"{{"headers":[{{"header":"{before}*-left","means":"remaining"}}]}}"#);
            let name = format!("{before}{star}-left");
            let signal = hear_with(&text.parse().unwrap(), 200, &[(&name, "7")], None);
            assert_eq!(signal.windows.len(), 1, "{name}");
        }
    }
}
