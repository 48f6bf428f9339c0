//! Any bytes as an answer, for those who try to make the reader panic.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Dialect, LONGEST, Signal, number::FARTHEST, read};

/// Reads an answer written as a line `profile status seconds-since-1970`, lines `name: value`, an empty line and the
/// body; bytes that are none of these are left out.
///
/// # Panics
///
/// What is read is out of bounds, or reading it twice gives two results.
pub fn check_bytes(bytes: &[u8]) {
    let (head, body) = match bytes.windows(2).position(|pair| pair == b"\n\n") {
        Some(at) => (&bytes[..at], Some(&bytes[at + 2..])),
        None => (bytes, None),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let mut words = first.split(' ');
    let dialect = words.next().and_then(Dialect::named).unwrap_or_default();
    let status = words.next().and_then(|word| StatusCode::from_bytes(word.as_bytes()).ok());
    let status = status.unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let seconds = words.next().and_then(|word| word.parse().ok()).unwrap_or_default();
    let (epoch, far) = (SystemTime::UNIX_EPOCH, Duration::from_secs(seconds));
    let now = epoch.checked_add(far).unwrap_or(epoch);
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) =
            (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(&line[colon + 1..]));
        if let (Ok(name), Ok(value)) = (name, value) {
            // There is a bound to how many a map has.
            let _ = headers.try_append(name, value);
        }
    }
    let signal = read(status, &headers, body, now, &dialect);
    check(&signal);
    assert_eq!(signal, read(status, &headers, body, now, &dialect));
}

fn check(signal: &Signal) {
    let time = |time: &Option<Duration>| {
        assert!(time.is_none_or(|time| time <= FARTHEST && time.subsec_nanos() % 1_000 == 0), "{signal:?}");
    };
    let count = |count: &Option<f64>| {
        assert!(count.is_none_or(|count| count.is_finite() && count >= 0.0), "{signal:?}");
    };
    time(&signal.wait);
    assert!(signal.believed().is_none_or(|wait| wait <= LONGEST), "{signal:?}");
    assert!(signal.windows.len() <= 65, "{} windows", signal.windows.len());
    for window in &signal.windows {
        time(&window.reset);
        count(&window.limit);
        count(&window.remaining);
    }
    assert_eq!(signal.binding().is_some(), !signal.windows.is_empty());
}
