//! Fields with several members: the wrong one is read, or members are joined by their place.

use super::{Dialect, hear, hear_with, window};

fn only(dialect: &str, headers: &[(&str, &str)]) -> (Option<f64>, Option<f64>, Option<u64>) {
    hear(dialect, 200, headers).binding().map(window).unwrap_or_default()
}

#[test]
fn the_first_member_is_not_the_limit() {
    for (limit, expected) in [
        ("100", Some(100.0)),
        ("100, 100;w=10", Some(100.0)),
        ("100, 100;window=60, 10000;window=86400", Some(100.0)),
        ("100;w=21600", Some(100.0)),
        ("594.0", Some(594.0)),
        ("0.0167", Some(0.0167)),
        (";w=21600", None),
        ("1e3", None),
        ("inf", None),
        ("NaN", None),
        ("abc", None),
        ("", None),
    ] {
        let told = only("whoop", &[("x-ratelimit-limit", limit), ("x-ratelimit-remaining", "98")]);
        assert_eq!(told, (expected, Some(98.0), None), "{limit}");
    }
    assert_eq!(only("whoop", &[("x-ratelimit-limit", &"9".repeat(400))]).0, None);
}

#[test]
fn windows_are_joined_by_place() {
    let docker = |limit, remaining| {
        only("docker_registry", &[("ratelimit-limit", limit), ("ratelimit-remaining", remaining)])
    };
    assert_eq!(docker("100;w=60, 1000;w=3600", "900;w=3600, 7;w=60"), (Some(100.0), Some(7.0), None));
    assert_eq!(docker("100;w=60, 1000;w=3600", "3;w=3600, 7;w=60"), (Some(1000.0), Some(3.0), None));
    let riot = |limit, count| only("riot", &[("x-app-rate-limit", limit), ("x-app-rate-limit-count", count)]);
    assert_eq!(riot("100:120,20:1", "1:1,37:120"), (Some(20.0), Some(19.0), None));
    assert_eq!(riot("20:1,100:120", "21:1,36:120"), (Some(20.0), Some(0.0), None));
    assert_eq!(riot("20:1, 100:120", "19 : 1 , 100:120"), (Some(100.0), Some(0.0), None));
    assert_eq!(riot("20:1", "garbage"), (Some(20.0), None, None));
    // The provider promises an order, but not for another number of members.
    let strava = |limit, usage| only("strava", &[("x-ratelimit-limit", limit), ("x-ratelimit-usage", usage)]);
    assert_eq!(strava("200,2000", "10,1999"), (Some(2000.0), Some(1.0), None));
    assert_eq!(strava("200,2000", "10"), (Some(200.0), None, None));
}

#[test]
fn used_is_taken_for_what_is_left() {
    for (text, expected) in [
        ("32/40", (Some(40.0), Some(8.0))),
        ("40/40", (Some(40.0), Some(0.0))),
        ("41/40", (Some(40.0), Some(0.0))),
        ("32/", (None, None)),
        ("/40", (None, None)),
        ("32", (None, None)),
        ("32/40/50", (None, None)),
    ] {
        let (limit, remaining, _) = only("shopify_rest", &[("x-shopify-shop-api-call-limit", text)]);
        assert_eq!((limit, remaining), expected, "{text}");
    }
    let both = "api-usage=25/5000; per-app-api-usage=17/250(appName=sample-connected-app)";
    let signal = hear("salesforce", 200, &[("sforce-limit-info", both)]);
    let names: Vec<_> = signal.windows.iter().map(|window| &*window.name).collect();
    assert_eq!(names, ["api-usage", "per-app-api-usage"]);
    assert_eq!(signal.binding().map(window), Some((Some(250.0), Some(233.0), None)));
}

#[test]
fn pairs_lose_their_window() {
    let quota = [("auth0-client-quota-limit", "b=per_hour;q=10;r=7;t=3540,b=per_day;q=50;r=0;t=43200")];
    assert_eq!(only("auth0", &quota), (Some(50.0), Some(0.0), Some(43_200_000)));
    let zendesk = [("zendesk-ratelimit-tickets-index", "total=100; remaining=0; resets=41")];
    let signal = hear("zendesk", 200, &zendesk);
    assert_eq!(signal.windows[0].name, "tickets-index");
    assert_eq!(window(&signal.windows[0]), (Some(100.0), Some(0.0), Some(41_000)));
}

#[test]
fn lists_cost_more_than_their_length() {
    let many: Vec<String> = (1..20_000).map(|n| format!("{n}:{n}")).collect();
    let dialect = Dialect::named("riot").unwrap();
    let signal = hear_with(&dialect, 200, &[("x-app-rate-limit", &many.join(","))], None);
    assert_eq!(signal.windows.len(), 64);
}
