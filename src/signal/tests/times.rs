//! Resets that are taken for another form: an epoch for seconds, milliseconds for minutes.

use std::time::Duration;

use http::HeaderMap;

use super::{NOW, at, ms};
use crate::signal::{base::Base, form::Form, number::FARTHEST, span};

fn read(form: Form, text: &str) -> Option<u64> {
    let headers = HeaderMap::new();
    let time = form.read(text, &Base::new(&headers, at(NOW), false))?;
    Some(u64::try_from(time.as_micros()).unwrap())
}

#[test]
fn a_number_is_taken_for_another_unit() {
    const S: u64 = 1_000_000;
    for (form, text, expected) in [
        (Form::Seconds, "30", Some(30 * S)),
        (Form::Seconds, "58.37", Some(58_370_000)),
        (Form::Seconds, "1796040030", Some(1_796_040_030 * S)),
        (Form::Milliseconds, "600000", Some(600 * S)),
        (Form::Milliseconds, "1500.5", Some(1_500_500)),
        (Form::Milliseconds, "0.0001", Some(1)),
        (Form::Minutes, "5", Some(300 * S)),
        (Form::EpochSeconds, "1796040030", Some(30 * S)),
        (Form::EpochSeconds, "1796040030.123", Some(30_123_000)),
        (Form::EpochSeconds, "1796039970", Some(0)),
        (Form::EpochSeconds, "30", Some(0)),
        (Form::EpochMilliseconds, "1796040030500", Some(30_500_000)),
        // Not declared: by its size.
        (Form::Auto, "30", Some(30 * S)),
        (Form::Auto, "0", Some(0)),
        (Form::Auto, "1000000000", Some(1_000_000_000 * S)),
        (Form::Auto, "1796040030", Some(30 * S)),
        (Form::Auto, "1796040030.5", Some(30_500_000)),
        (Form::Auto, "1796040030500", Some(30_500_000)),
        // Nanoseconds are no time that anybody can mean.
        (Form::Auto, "1796040030500000000", None),
    ] {
        assert_eq!(read(form, text), expected, "{form:?} {text}");
    }
}

#[test]
fn a_text_is_taken_for_another_form() {
    const S: u64 = 1_000_000;
    for (text, expected) in [
        ("6m0s", Some(360 * S)),
        ("1h2m3.5s", Some(3_723_500_000)),
        ("20ms", Some(20_000)),
        ("2026-11-30T12:00:30Z", Some(30 * S)),
        ("2026-11-30T13:00:30.500+01:00", Some(30_500_000)),
        ("2026-11-30T12:01Z", Some(60 * S)),
        ("2026-11-30T11:59Z", Some(0)),
        ("Mon, 30 Nov 2026 12:00:30 GMT", Some(30 * S)),
        ("Monday, 30-Nov-26 12:00:30 GMT", Some(30 * S)),
        ("Mon Nov 30 12:00:30 2026", Some(30 * S)),
        // No zone: nobody knows which.
        ("2026-11-30T12:01", None),
        ("2026-11-30 12:01:00", None),
        ("12:01", None),
        ("Mon Nov 30 2026 13:00:30 GMT+0100 (Central European Standard Time)", None),
        ("-30", None),
        ("+30", None),
        ("1e3", None),
        ("inf", None),
        ("", None),
    ] {
        assert_eq!(read(Form::Auto, text), expected, "{text}");
    }
    // A form that is declared takes no other.
    for form in [Form::Seconds, Form::Milliseconds, Form::EpochSeconds, Form::DateTime, Form::HttpDate] {
        assert_eq!(read(form, "6m0s"), None, "{form:?}");
    }
    assert_eq!(read(Form::Duration, "46"), None);
    assert_eq!(read(Form::DateTime, "1796040030"), None);
}

#[test]
fn a_duration_is_half_read() {
    for (text, expected) in [
        ("0", Some(0)),
        ("1s", Some(1_000)),
        ("12ms", Some(12)),
        ("2m59.56s", Some(179_560)),
        ("7.66s", Some(7_660)),
        ("23h47m36.648s", Some(85_656_648)),
        ("1d2h", Some(93_600_000)),
        ("53s", Some(53_000)),
        ("4hr 59min", None),
        ("4h 59m", None),
        ("1", None),
        ("s", None),
        (".s", None),
        ("1.s", None),
        ("-1s", None),
        ("+1s", None),
        ("1S", None),
        ("1s1", None),
        ("1x", None),
        ("1.2.3s", None),
    ] {
        assert_eq!(span::read(text), expected.map(ms), "{text}");
    }
    assert_eq!(span::read("1500us"), Some(Duration::from_micros(1_500)));
    assert_eq!(span::read("1500ns"), Some(Duration::from_micros(2)));
    assert_eq!(span::read("45.837906927s").unwrap().as_micros(), 45_837_907);
    let long = "99999999999999999999h".repeat(1_000);
    assert!(span::read(&long).unwrap() <= FARTHEST);
}

#[test]
fn a_year_of_two_digits_is_in_the_wrong_century() {
    let until = |text: &str| {
        let headers = HeaderMap::new();
        Form::HttpDate.read(text, &Base::new(&headers, at(NOW), false))
    };
    // 2026 and fifty years: 2076 is ahead, 1977 has passed.
    assert_eq!(until("Monday, 30-Nov-26 12:01:00 GMT"), Some(ms(60_000)));
    assert!(until("Saturday, 30-Nov-75 12:00:00 GMT").is_some_and(|wait| !wait.is_zero()));
    assert!(until("Monday, 30-Nov-76 12:00:00 GMT").is_some_and(|wait| !wait.is_zero()));
    assert_eq!(until("Wednesday, 30-Nov-77 12:00:00 GMT"), Some(ms(0)));
    // The weekday is that of the other century.
    assert_eq!(until("Tuesday, 30-Nov-77 12:00:00 GMT"), None);
    assert_eq!(until("Sunday, 06-Nov-94 08:49:37 GMT"), Some(ms(0)));
}
