//! Texts that are not understood, or do not come back.

use std::collections::HashSet;

use super::limit;
use crate::limit::Limit;

const LA: &str = "America/Los_Angeles";

#[test]
fn a_way_to_write_it_is_not_understood() {
    for (text, canonical) in [
        ("100/min", "100/min"),
        ("100 per minute", "100/min"),
        ("100/1min", "100/min"),
        ("100 PER 1 Minutes", "100/min"),
        (" \t100\n/ 60 seconds ", "100/min"),
        ("17/30s", "17/30s"),
        ("17 per 30 sec", "17/30s"),
        ("1/60s", "1/min"),
        ("2_000_000/second", "2000000/s"),
        ("10/100ms", "10/100ms"),
        ("10/1500us", "10/1500us"),
        ("5000/hour", "5000/h"),
        ("5000/24h", "5000/day"),
        ("5000/2d", "5000/2days"),
        ("5000/14 days", "5000/2weeks"),
        ("5000/week", "5000/week"),
        ("90000000/366days", "90000000/366days"),
        ("1_000_000_000_000_000/366days", "1000000000000000/366days"),
        ("10000000000 bytes/day", "10000000000 bytes/day"),
        ("200000 tokens/min", "200000 tokens/min"),
        ("200_000 TOKENS Per Minute", "200000 tokens/min"),
        ("200000\u{2003}tokens / min", "200000 tokens/min"),
        ("200000 tokens per60s", "200000 tokens/min"),
        ("17per30s", "17/30s"),
        ("17 per30s", "17/30s"),
        ("17 persons per 30s", "17 persons/30s"),
        ("20 requests/s", "20/s"),
        ("1 Request per second", "1/s"),
        ("20 req/s", "20/s"),
        ("90 seconds/min", "90 seconds/min"),
        ("7 m3/h", "7 m3/h"),
        ("7 abcdefghijklmnopqrstuvwxyz_01234/h", "7 abcdefghijklmnopqrstuvwxyz_01234/h"),
        ("90 points/s burst 200", "90 points/s burst 200"),
        ("150000000 tokens/min burst 1000000000", "150000000 tokens/min burst 1000000000"),
        ("10000 input_tokens/day resets 0:00 utc", "10000 input_tokens/day resets 00:00 UTC"),
        ("100/min unpaced", "100/min unpaced"),
        ("10/s BURST 20", "10/s burst 20"),
        ("100/min Aligned", "100/min aligned"),
        ("9/day resets 0:00 america/los_angeles", "9/day resets 00:00 America/Los_Angeles"),
        ("9/1 day resets 23:59 utc", "9/day resets 23:59 UTC"),
        ("9/week resets 00:00 UTC", "9/week resets mon 00:00 UTC"),
        ("9/week resets Sunday 09:30 Europe/Berlin", "9/week resets sun 09:30 Europe/Berlin"),
        ("9 per month resets 00:00 UTC", "9/month resets 1 00:00 UTC"),
        ("9/month resets 28 00:00 Etc/GMT+5", "9/month resets 28 00:00 Etc/GMT+5"),
        ("100/min guard 0", "100/min guard 0s"),
        ("100/min guard 0 unpaced", "100/min unpaced guard 0s"),
        ("100/min guard 0min", "100/min guard 0s"),
        ("100/min guard 1_500us", "100/min guard 1500us"),
        ("100/2h guard 60 min", "100/2h guard 60min"),
        ("100/min share 100%", "100/min"),
        ("100/min share 80.00 %", "100/min share 80%"),
        ("100/min share 12.5%", "100/min share 12.5%"),
        ("9999/min share 0.05%", "9999/min share 0.05%"),
        ("9/day share 50% guard 1s resets 00:00 UTC", "9/day resets 00:00 UTC guard 1s share 50%"),
    ] {
        assert_eq!(limit(text).to_string(), canonical, "{text:?}");
        assert_eq!(limit(canonical), limit(text), "{text:?}");
        let json = serde_json::to_string(&limit(text)).unwrap();
        assert_eq!(json, format!("{canonical:?}"));
        assert_eq!(serde_json::from_str::<Limit>(&json).unwrap(), limit(text));
    }
}

#[test]
fn any_input_panics_or_loses_something_on_the_way_through_text() {
    const PIECES: [&str; 59] = [
        "100",
        "1",
        "0",
        "17",
        "90000000",
        "99999999999999999999",
        "_",
        ".",
        "-",
        "/",
        "/",
        " ",
        " ",
        "per",
        "us",
        "ms",
        "s",
        "min",
        "m",
        "h",
        "d",
        "day",
        "days",
        "week",
        "month",
        "unpaced",
        "burst",
        "burst 20",
        "aligned",
        "resets",
        "resets 00:00 UTC",
        "mon",
        "28",
        "00:00",
        "24:00",
        "UTC",
        LA,
        "guard",
        "guard 10ms",
        "guard 0",
        "share",
        "share 80%",
        "%",
        ":",
        "é",
        "\u{0}",
        "tokens",
        " points/",
        "requests",
        "k",
        "per_",
        "1000000000000000",
        "burst 150000000",
        "100/min",
        "100/day ",
        "9/month ",
        "9/week ",
        "İ",
        "\u{2003}",
    ];
    let mut random = fastrand::Rng::with_seed(7);
    let mut accepted = 0;
    for round in 0..200_000 {
        let length = random.usize(0..9);
        let text: String = if round % 4 == 0 {
            let bytes: Vec<u8> = (0..length * 4).map(|_| random.u8(..)).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        } else {
            (0..length).map(|_| random.choice(PIECES).unwrap()).collect()
        };
        if let Ok(limit) = text.parse::<Limit>() {
            accepted += 1;
            assert_eq!(limit.to_string().parse(), Ok(limit), "{text:?}");
        }
    }
    assert!(accepted > 1_000, "only {accepted} texts were limits");
}

#[test]
fn a_name_changes_with_the_count_or_not_with_the_period() {
    let names: HashSet<String> = [
        "1/s",
        "1/100ms",
        "1/1500us",
        "1/day",
        "1/week",
        "1/s burst 1",
        "1/s aligned",
        "1/day resets 00:00 UTC",
        "1/day resets 00:01 UTC",
        "1/day resets 00:00 Asia/Tokyo",
        "1/week resets 00:00 UTC",
        "1/week resets tue 00:00 UTC",
        "1/month resets 00:00 UTC",
        "1 tokens/s",
        "1 token/s",
        "1 tokens/s burst 1",
        "1 tokens/s aligned",
        "1 tokens/day resets 00:00 UTC",
    ]
    .into_iter()
    .map(|text| limit(text).name())
    .collect();
    assert_eq!(names.len(), 18);
    assert!(names.contains("requests:604800s") && names.contains("requests:1500us"));
    assert!(names.contains("requests:week@tue@00:00@UTC"));
    assert!(names.contains("tokens:1s:bucket") && names.contains("tokens:day@00:00@UTC"));
    assert_eq!(limit("1 requests/min").name(), "requests:60s");
    assert_eq!(limit("1/min").name(), limit("2/60s unpaced guard 1s share 50%").name());
    assert_eq!(limit("9/day resets 0:00 america/los_angeles").name(), format!("requests:day@00:00@{LA}"));
}
