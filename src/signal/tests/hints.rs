//! Hints that are misread, shortened, or believed though they are garbage.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{DATE, RETRY_AFTER},
};
use proptest::prelude::*;

use crate::signal::{Dialect, LONGEST, Refusal, Signal, number::FARTHEST, read as read_as};

const THROTTLED: StatusCode = StatusCode::TOO_MANY_REQUESTS;
const BROKEN: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
const DAY: u64 = 24 * 60 * 60;

/// Sun, 06 Nov 1994 08:49:37 GMT.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

fn headers<V: AsRef<[u8]>>(all: &[(HeaderName, V)]) -> HeaderMap {
    let value = |value: &V| HeaderValue::from_bytes(value.as_ref()).unwrap();
    all.iter().map(|(name, text)| (name.clone(), value(text))).collect()
}

fn read(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Signal {
    read_as(status, headers, None, now, &Dialect::default())
}

/// The wait of a 429 that is believed, by way of a 503: both read the same, or one of them is no refusal.
fn wait<V: AsRef<[u8]>>(all: &[(HeaderName, V)], now: SystemTime) -> Option<Duration> {
    let headers = headers(all);
    let throttled = read(THROTTLED, &headers, now);
    assert_eq!(throttled.refusal, Some(Refusal::Rate));
    let believed = throttled.believed();
    let broken = read(BROKEN, &headers, now);
    assert_eq!((broken.refusal.is_some(), broken.wait), (believed.is_some(), throttled.wait));
    believed
}

#[test]
fn a_hint_is_misread_or_garbage_is_believed() {
    let second = Duration::from_secs;
    let micro = Duration::from_micros;
    for (text, expected) in [
        // Whole seconds. Zero is present, empty is absent.
        ("0", Some(second(0))),
        ("5", Some(second(5))),
        ("3600", Some(second(3_600))),
        ("0000000000000000000000005", Some(second(5))),
        (" 5 ", Some(second(5))),
        ("\t5", Some(second(5))),
        ("", None),
        ("   ", None),
        ("-1", None),
        ("+1", None),
        ("1e3", None),
        ("0x10", None),
        ("NaN", None),
        ("inf", None),
        ("5s", None),
        ("5, 5", None),
        ("5;", None),
        ("1_000", None),
        ("1,5", None),
        // Fractions, up to microseconds.
        ("2.0", Some(second(2))),
        ("0.0", Some(second(0))),
        ("0.5", Some(micro(500_000))),
        ("0.314", Some(micro(314_000))),
        ("299.997", Some(micro(299_997_000))),
        ("0.0000001", Some(micro(1))),
        ("0.0000010", Some(micro(1))),
        ("1.0000010000000000000000000000", Some(micro(1_000_001))),
        ("1.0000010000000000000000000001", Some(micro(1_000_002))),
        ("0.9999999", Some(second(1))),
        ("1.", None),
        (".5", None),
        (".", None),
        ("1.2.3", None),
        ("1. 5", None),
        ("1.-5", None),
        // Longer than is believed: milliseconds, epochs, overflow.
        ("2678400", Some(LONGEST)),
        ("2678400.0", Some(LONGEST)),
        ("2678400.0000001", None),
        ("2678401", None),
        ("784111807", None),
        ("1793000000000", None),
        ("18446744073709551615", None),
        ("18446744073709551615.9999999", None),
        ("18446744073709551616", None),
        ("99999999999999999999999999999999", None),
        // Dates.
        ("Sun, 06 Nov 1994 08:50:07 GMT", Some(second(30))),
        ("Sunday, 06-Nov-94 08:50:07 GMT", Some(second(30))),
        ("Sun Nov  6 08:50:07 1994", Some(second(30))),
        (" Sun, 06 Nov 1994 08:50:07 GMT ", Some(second(30))),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(second(0))),
        ("Sun, 06 Nov 1994 08:49:36 GMT", Some(second(0))),
        ("Thu, 01 Jan 1970 00:00:00 GMT", Some(second(0))),
        ("Wed, 07 Dec 1994 08:49:37 GMT", Some(LONGEST)),
        ("Wed, 07 Dec 1994 08:49:38 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None),
        ("Sat, 01 Jan 10000 00:00:00 GMT", None),
        // Two digits of a year: none is more than fifty years ahead.
        ("Thursday, 01-Jan-70 00:00:00 GMT", Some(second(0))),
        ("Tuesday, 31-Dec-69 23:59:59 GMT", None),
        // A leap second is the first of the next minute.
        ("Sun, 06 Nov 1994 08:49:60 GMT", Some(second(23))),
        ("Sunday, 06-Nov-94 08:49:60 GMT", Some(second(23))),
        ("Sun Nov  6 08:49:60 1994", Some(second(23))),
        ("Sun, 06 Nov 1994 08:60:60 GMT", None),
        // Not a date: a wrong weekday, no such day, another zone, no zone, another format.
        ("Mon, 06 Nov 1994 08:50:07 GMT", None),
        ("Wed, 31 Feb 1995 08:50:07 GMT", None),
        ("Sun, 06 Nov 1994 08:50:07 UTC", None),
        ("Sun, 06 Nov 1994 08:50:07 +0000", None),
        ("Sun, 06 Nov 1994 08:50:07", None),
        ("1994-11-06T08:50:07Z", None),
        ("Sun Nov 06 1994 09:50:07 GMT+0100 (Central European Standard Time)", None),
    ] {
        assert_eq!(wait(&[(RETRY_AFTER, text)], now()), expected, "{text:?}");
    }
    for bytes in [&b"\xff"[..], b"5\xb5", b"\xef\xbc\x95", b"\xc2\xa05", b"Sun, 06 Nov 1994 08:50:07 GM\xd4"]
    {
        assert_eq!(wait(&[(RETRY_AFTER, bytes)], now()), None, "{bytes:?}");
    }
}

#[test]
fn a_date_is_measured_by_the_wrong_clock() {
    const AT: &str = "Sun, 06 Nov 1994 08:50:07 GMT";
    for (date, expected) in [
        ("Sun, 06 Nov 1994 08:50:00 GMT", 7_000_000),
        ("Sunday, 06-Nov-94 08:50:00 GMT", 7_000_000),
        ("Sun Nov  6 08:50:00 1994", 7_000_000),
        (" Sun, 06 Nov 1994 08:50:00 GMT", 7_000_000),
        ("Sun, 06 Nov 1994 08:50:07 GMT", 0),
        ("Mon, 07 Nov 1994 08:50:07 GMT", 0),
        // Not to be read: by our clock.
        ("", 30_000_000),
        ("yesterday", 30_000_000),
        ("784111800", 30_000_000),
        ("Mon, 06 Nov 1994 08:50:00 GMT", 30_000_000),
    ] {
        let headers = [(RETRY_AFTER, AT), (DATE, date)];
        assert_eq!(wait(&headers, now()), Some(Duration::from_micros(expected)), "{date:?}");
        let seconds = [(RETRY_AFTER, "5"), (DATE, date)];
        assert_eq!(wait(&seconds, now()), Some(Duration::from_secs(5)), "{date:?}");
    }
    // By our clock, which is finer, up to microseconds; a clock that was never set.
    let wait = |now| wait(&[(RETRY_AFTER, AT)], now);
    assert_eq!(wait(now() - Duration::from_nanos(1)), Some(Duration::from_micros(30_000_001)));
    assert_eq!(wait(now() + Duration::from_nanos(1)), Some(Duration::from_secs(30)));
    assert_eq!(wait(now() - Duration::from_secs(100 * 366 * DAY)), None);
}

#[test]
fn one_of_several_hints_is_lost() {
    for (texts, expected) in [
        (vec![], None),
        (vec!["1", "7", "3"], Some(7)),
        (vec!["garbage", "3", ""], Some(3)),
        (vec!["3", "99999999999"], Some(3)),
        (vec!["garbage", ""], None),
        (vec!["0", "garbage"], Some(0)),
        (vec!["3", "Sun, 06 Nov 1994 08:50:07 GMT"], Some(30)),
        (vec!["60", "Sun, 06 Nov 1994 08:50:07 GMT"], Some(60)),
    ] {
        let all: Vec<_> = texts.iter().map(|text| (RETRY_AFTER, *text)).collect();
        assert_eq!(wait(&all, now()), expected.map(Duration::from_secs), "{texts:?}");
    }
}

#[test]
fn a_response_that_does_not_throttle_is_taken_for_one() {
    let headers = headers(&[(RETRY_AFTER, "5")]);
    for status in (100..600).filter(|status| ![429, 503].contains(status)) {
        let signal = read(StatusCode::from_u16(status).unwrap(), &headers, now());
        assert_eq!((signal.refusal, signal.wait), (None, Some(Duration::from_secs(5))), "{status}");
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}

/// Any bytes, and what is nearly a hint: a few bytes of one are replaced.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let hint = prop_oneof![
        "[0-9]{0,25}(\\.[0-9]{0,25})?",
        Just("Sun, 06 Nov 1994 08:50:07 GMT".to_owned()),
        Just("Wednesday, 09-Nov-94 08:49:37 GMT".to_owned()),
        Just("Sun Nov  6 08:49:37 1994".to_owned()),
        "[A-Z][a-z]{2}, [0-3][0-9] (Jan|Feb|Dec) [0-9]{4} [0-2][0-9]:[0-6][0-9]:[0-6][0-9] GMT",
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let near = (hint, changes).prop_map(|(hint, changes)| {
        let mut bytes = hint.into_bytes();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        bytes
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..50), near]
}

#[test]
fn bytes_panic_or_give_a_wait_beyond_the_cap() {
    let values = || prop::collection::vec(value(), 0..3);
    proptest!(config(5_000), |(hints in values(), dates in values(), now in any::<u64>(), before: bool)| {
        let mut headers = HeaderMap::new();
        for (name, values) in [(RETRY_AFTER, &hints), (DATE, &dates)] {
            for value in values.iter().filter_map(|value| HeaderValue::from_bytes(value).ok()) {
                headers.append(&name, value);
            }
        }
        // As far from the epoch as a `SystemTime` reaches, on either side.
        let (epoch, far) = (SystemTime::UNIX_EPOCH, Duration::from_secs(now >> (now % 64)));
        let now = if before { epoch.checked_sub(far) } else { epoch.checked_add(far) }.unwrap_or(epoch);
        let signal = read(THROTTLED, &headers, now);
        prop_assert!(signal.wait.is_none_or(|wait| wait <= FARTHEST && wait.subsec_nanos() % 1_000 == 0));
        prop_assert!(signal.believed().is_none_or(|wait| wait <= LONGEST));
        prop_assert_eq!(read(BROKEN, &headers, now).refusal.is_some(), signal.believed().is_some());
    });
}

#[test]
fn a_fraction_is_rounded_down_or_too_far() {
    proptest!(config(500), |(text in "[0-9]{1,6}\\.[0-9]{1,12}")| {
        let (whole, fraction) = text.split_once('.').unwrap();
        let parts: u128 = format!("{whole}{fraction:0<12}").parse().unwrap();
        let expected = Duration::from_micros(parts.div_ceil(1_000_000) as u64);
        prop_assert_eq!(wait(&[(RETRY_AFTER, &text)], now()), Some(expected));
    });
}
