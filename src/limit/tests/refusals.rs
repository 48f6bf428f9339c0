//! Bad texts that pass, and messages that do not help.

use super::refusal;
use crate::limit::zone;

#[test]
fn a_bad_text_is_accepted_or_the_message_does_not_help() {
    for (text, part) in [
        ("", "write a count per window"),
        ("  ", "write a count per window"),
        ("0/min", r#": the count must be from 1 to 1_000_000_000_000_000, e.g. "100/min""#),
        ("1000000000000001/min", "the count must be from 1 to 1_000_000_000_000_000"),
        ("99999999999999999999999/min", "the count must be from 1 to 1_"),
        ("-5/min", r#"found "-5/min" instead of a whole number"#),
        ("1.5/min", r#"found "1.5" instead of a whole number"#),
        ("1,000/min", r#"found "1,000" instead of a whole number"#),
        ("1__0/min", r#"found "1__0""#),
        ("10_/min", r#"found "10_""#),
        ("many/min", r#"found "many/min""#),
        ("100", r#"write "/" or "per" after the count, e.g. "100/min" or "100 tokens/min"; found the end"#),
        (
            "100 tokens",
            r#"write "/" or "per" after the count, e.g. "100/min" or "100 tokens/min"; found the end"#,
        ),
        ("100 tokens min", r#""per" after the count, e.g. "100/min" or "100 tokens/min"; found "min""#),
        ("100tokens/min", r#"or "100 tokens/min"; found "tokens/min""#),
        ("100k/min", r#"found "k/min""#),
        ("1e6/min", r#"found "e6/min""#),
        ("100 _/min", r#"found "_/min""#),
        ("100 7up/min", r#"found "7up/min""#),
        ("100 tokens tokens/min", r#"found "tokens/min""#),
        (
            "100 input-tokens/min",
            r#": the unit must be a word of letters, digits and "_", from 1 to 32 long, that begins with a letter, e.g. "tokens"; found "input-tokens""#,
        ),
        ("100 töken/min", r#"found "töken""#),
        ("100 abcdefghijklmnopqrstuvwxyz_012345/min", "from 1 to 32 long"),
        (
            "100 each min",
            r#": the unit cannot be "each", which means something else: use another word, or none, e.g. "100/min""#,
        ),
        ("20 BURST/s", r#"the unit cannot be "burst""#),
        ("100 k/min", r#"the unit cannot be "k""#),
        ("100 k tokens/min", r#"the unit cannot be "k""#),
        ("5 in flight/min", r#"after "in flight" comes "lease 10s" or "share 80%""#),
        ("5 in", r#"after "in" comes "flight", e.g. "20 in flight""#),
        ("5 in fligth", r#"found "fligth""#),
        ("0 in flight", "the count must be from 1 to"),
        ("5 in flight lease", "the lease must be a whole number of ms, s or min, from 1s to 60min"),
        ("5 in flight lease 10", "found the end"),
        ("5 in flight lease 999ms", "from 1s to 60min"),
        ("5 in flight lease 61min", "from 1s to 60min"),
        ("5 in flight lease 1h", "from 1s to 60min"),
        ("5 in flight lease 10s lease 20s", r#""lease" is given twice"#),
        ("5 in flight guard 10ms", r#"found "guard""#),
        ("5 in flight share 10%", "the share leaves less than 1 of 5"),
        ("100 per_call/min", r#"found "_call/min""#),
        ("100 /tokens/min", r#"found "tokens/min""#),
        ("100/", "found the end"),
        ("100/m", r#"the unit "m" is ambiguous: write "min" or "month""#),
        ("100/5M", r#"write "min" or "month""#),
        ("100/fortnight", r#"found "fortnight""#),
        ("100/0s", "the window must be from 1 ms to 366 days"),
        ("100/999us", "the window must be from 1 ms to 366 days"),
        ("100/367days", "the window must be from 1 ms to 366 days"),
        ("100/99999999999999999999weeks", "the window must be from 1 ms to 366 days"),
        ("100/1.5s", r#"found "1.5""#),
        ("100/month", "months differ in length"),
        ("100/month aligned", "months differ in length"),
        ("100/min please", r#"found "please""#),
        ("100/min 5", r#"found "5""#),
        ("100/min unpaced unpaced", r#""unpaced" is given twice"#),
        ("100/min guard 1s guard 1s", r#""guard" is given twice"#),
        ("100/min unpaced burst 5", r#""unpaced" and "burst" exclude each other"#),
        ("100/min aligned unpaced", r#""unpaced" and "aligned" exclude each other"#),
        ("9/day aligned resets 00:00 UTC", r#""aligned" and "resets" exclude"#),
        ("100/min burst", "the burst must be from 1 to 1_000_000_000_000_000"),
        ("100/min burst 0", "the burst must be from 1 to 1_000_000_000_000_000"),
        ("7/366days burst 1994", "the burst does not fit 7/366days: the largest that does is 142"),
        ("7 points/366days burst 1994", "does not fit 7 points/366days: the largest that does is 142"),
        ("150/s burst 90000001", "the burst is too large beside 150/s: use at most 90000000"),
        ("1000 bytes/s burst 900000010", "is too large beside 1000 bytes/s: use at most 900000009"),
        ("1000000000/s burst 1199", "the burst is too small beside 1000000000/s: use at least 1200"),
        (
            "123456789/day burst 123456789",
            "the burst does not fit 123456789/day: use a smaller one, or rounder numbers",
        ),
        (
            "20000/366days burst 100000000",
            "the burst does not fit 20000/366days: use a smaller one, or rounder numbers",
        ),
        ("9/min resets 00:00 UTC", r#""resets" goes with /day, /week or /month"#),
        ("9/24h resets 00:00 UTC", r#""resets" goes with /day, /week or /month"#),
        ("9/2days resets 00:00 UTC", r#""resets" goes with /day, /week or /month"#),
        ("9/2months resets 00:00 UTC", r#""resets" goes with /day, /week or /month"#),
        ("9/day resets", "the time must be from 00:00 to 23:59"),
        ("9/day resets 24:00 UTC", "the time must be from 00:00 to 23:59"),
        ("9/day resets 00:60 UTC", "the time must be from 00:00 to 23:59"),
        ("9/day resets 999:00 UTC", "the time must be from 00:00 to 23:59"),
        ("9/day resets 0:0 UTC", r#"found "0:0""#),
        ("9/day resets +1:00 UTC", r#"found "+1:00""#),
        ("9/day resets mon 00:00 UTC", r#"found "mon""#),
        (
            "9/week resets 1 00:00 UTC",
            r#"a week resets on mon to sun, e.g. "resets mon 00:00 UTC"; found "1""#,
        ),
        ("9/month resets mon 00:00 UTC", r#"found "mon""#),
        ("9/month resets 0 00:00 UTC", "the day of the month must be from 1 to 28"),
        ("9/month resets 29 00:00 UTC", "the day of the month must be from 1 to 28"),
        ("9/month resets 999 00:00 UTC", "the day of the month must be from 1 to 28"),
        ("9/day resets 00:00", "name a time zone after the time"),
        ("9/day resets 00:00 Mars/Olympus", r#"unknown time zone "Mars/Olympus""#),
        ("9/day resets 00:00 ../../etc/passwd", "unknown time zone"),
        ("9/day resets 00:00 localtime", "unknown time zone"),
        ("9/day resets 00:00 right/UTC", "unknown time zone"),
        ("9/day resets 00:00 Etc/Unknown", "unknown time zone"),
        ("100/min guard", "the guard must be a whole number of us, ms, s or min"),
        ("100/min guard 5", "found the end"),
        ("100/min guard 5 unpaced", r#"found "unpaced""#),
        ("100/min guard 1.5s", r#"found "1.5""#),
        ("100/min guard 1h", "us, ms, s or min"),
        ("100/min guard 0h", "us, ms, s or min"),
        ("100/min guard 1m", "us, ms, s or min"),
        ("100/min guard 60s", "the guard must be shorter than the window (1min)"),
        ("100/day guard 61min", "the guard must be at most 60min"),
        ("100/day guard 99999999999999999999min", "the guard must be"),
        ("100/min share 80", "the share must be above 0% and at most 100%"),
        ("100/min share 0%", "the share must be above 0%"),
        ("100/min share 100.01%", "at most 100%"),
        ("100/min share 33.333%", "up to two decimals"),
        ("100/min share 99999999999999999999999%", "at most 100%"),
        ("100/min share -5%", r#"found "-5%""#),
        ("100/min share .5%", r#"found ".5%""#),
        ("3/min share 33%", "the share leaves less than 1 of 3"),
    ] {
        let message = refusal(text);
        assert!(message.starts_with(&format!("invalid limit {text:?}: ")), "{message}");
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_message_floods_the_log_or_breaks_its_line() {
    assert!(refusal("100/min \n\u{1b}[2J").starts_with(r#"invalid limit "100/min \n\u{1b}[2J": "#));
    for text in ["€".repeat(9_000), format!("1/{}", "€".repeat(9_000)), "9".repeat(9_000)] {
        assert!(refusal(&text).chars().count() < 500);
    }
}

#[test]
fn a_machine_without_zone_data_gets_no_remedy() {
    assert!(zone::missing("Asia/Tokyo", true).contains(r#"cargo feature "tzdb-bundled""#));
    assert!(!zone::missing("Asia/Tokyo", false).contains("tzdb-bundled"));
}
