//! The fields of the IETF: split at the wrong commas, joined by place, or believed though they are malformed.

use super::{hear, ms, window};

/// Name, limit, what is left, and the milliseconds of the reset.
type Told = (String, Option<f64>, Option<f64>, Option<u64>);

fn told(state: &str, policy: &str) -> Vec<Told> {
    let signal = hear("ietf", 200, &[("ratelimit", state), ("ratelimit-policy", policy)]);
    let told = signal.windows.iter().map(|one| (one.name.clone(), window(one)));
    told.map(|(name, (limit, remaining, reset))| (name, limit, remaining, reset)).collect()
}

#[test]
fn a_window_is_joined_with_the_policy_of_another() {
    let burst = |limit, remaining, reset| ("burst".to_owned(), limit, remaining, reset);
    let daily = |limit, remaining, reset| ("daily".to_owned(), limit, remaining, reset);
    let policy = r#""daily";q=1000;w=86400, "burst";q=100;w=60"#;
    let mut both = told(r#""burst";r=0;t=2, "daily";r=500;t=40000"#, policy);
    both.sort_by(|one, other| one.0.cmp(&other.0));
    let expected =
        [burst(Some(100.0), Some(0.0), Some(2_000)), daily(Some(1000.0), Some(500.0), Some(40_000_000))];
    assert_eq!(both, expected);
    // A policy of another name, a window without a time, one without a policy.
    let other = hear(
        "ietf",
        200,
        &[("ratelimit", r#""default";r=50;t=30"#), ("ratelimit-policy", r#""burst";q=100"#)],
    );
    assert_eq!(other.binding().map(window), Some((None, Some(50.0), Some(30_000))));
    assert_eq!(told(r#""burst";r=3"#, ""), [burst(None, Some(3.0), None)]);
    assert_eq!(told("burst;r=3;t=4", ""), [burst(None, Some(3.0), Some(4_000))]);
    let partitions = told(r#""burst";r=3;pk=:dXNlcjE=:, "burst";r=2;pk=:dXNlcjI=:"#, "");
    assert_eq!(partitions.len(), 2);
}

#[test]
fn a_quoted_name_is_split() {
    assert_eq!(told(r#""a;b, c";r=3;t=9"#, ""), [("a;b, c".to_owned(), None, Some(3.0), Some(9_000))]);
}

#[test]
fn a_malformed_field_is_believed() {
    for state in [
        r#""default";r=abc;t=30"#,
        r#""default";r=-1;t=30"#,
        r#""default";r=1.5;t=30"#,
        r#""default";r="0";t=30"#,
        r#""default";r;t=30"#,
        r#""default";r=0;t=-30"#,
        r#""default";r=0;t=@30"#,
        r#""default";r=0;t=1000000000000000"#,
        r#""default";r=0;t=30,"#,
        r#""default;r=0;t=30"#,
        r#""one";r=0;t=30, "two";r=x"#,
        "limit=100, remaining=abc, reset=5",
        "limit=100, remaining=-1, reset=5",
        "limit=100, remaining=(0), reset=5",
        "0",
        "",
        ";",
    ] {
        let signal = hear("ietf", 200, &[("ratelimit", state)]);
        assert_eq!((signal.wait, signal.windows.len()), (None, 0), "{state}");
    }
}

#[test]
fn seconds_without_end_are_kept() {
    for t in ["999999999999", "999999999999999"] {
        let reset = hear("ietf", 429, &[("ratelimit", &format!(r#""default";r=0;t={t}"#))]).windows[0].reset;
        assert_eq!(reset, Some(ms((1 << 31) * 1_000)), "{t}");
    }
}

#[test]
fn a_field_of_two_lines_is_half_read() {
    let lines = [("ratelimit", r#""burst";r=40;t=2"#), ("ratelimit", r#""daily";r=0;t=40000"#)];
    assert_eq!(hear("ietf", 200, &lines).wait, Some(ms(40_000_000)));
}

#[test]
fn an_older_draft_is_not_read() {
    let dictionary = [("ratelimit", "limit=100, remaining=0, reset=5"), ("ratelimit-policy", "100;w=10")];
    let signal = hear("ietf", 200, &dictionary);
    assert_eq!(signal.binding().map(window), Some((Some(100.0), Some(0.0), Some(5_000))));
    let fields =
        [("ratelimit-limit", "100, 100;w=10"), ("ratelimit-remaining", "0"), ("ratelimit-reset", "7")];
    assert_eq!(hear("ietf", 429, &fields).wait, Some(ms(7_000)));
    // An epoch under that name, where nothing is known.
    let epoch = [("ratelimit-remaining", "0"), ("ratelimit-reset", "1796040007")];
    assert_eq!(hear("unknown", 429, &epoch).wait, Some(ms(7_000)));
}
