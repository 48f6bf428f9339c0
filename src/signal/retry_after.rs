//! `Retry-After`: seconds or a date (RFC 9110, 10.2.3), and the fractions that real upstreams send.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap, HeaderValue,
    header::{DATE, RETRY_AFTER},
};

use super::LONGEST;

/// The longest wait that can be read and believed. What can be neither is as if absent, so that one bad header
/// does not hide a good one.
///
/// A date is measured from the response's own `Date`, because the upstream's clock may be far from ours; from
/// `now` if there is none. One that has passed is a wait of zero.
pub fn wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let sent = headers.get(DATE).and_then(text).and_then(date).unwrap_or(now);
    headers
        .get_all(RETRY_AFTER)
        .iter()
        .filter_map(text)
        .filter_map(|text| seconds(text).or_else(|| until(date(text)?, sent)))
        .filter(|wait| *wait <= LONGEST)
        .max()
}

/// `None` for anything but visible ASCII, spaces and tabs.
fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(str::trim)
}

/// `2`, `2.0` or `0.314`, without a float in between; what is left of a microsecond counts as a whole one.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    // More digits than fit are far more than is believed.
    let whole = whole.parse().ok().map(Duration::from_secs)?;
    let (micros, rest) = fraction.split_at(fraction.len().min(6));
    let micros: u64 = format!("{micros:0<6}").parse().ok()?;
    let more = rest.bytes().any(|b| b != b'0');
    whole.checked_add(Duration::from_micros(micros + u64::from(more)))
}

/// The three forms of a date, all GMT. A leap second (`23:59:60`) is not read.
///
/// Two-digit years split at 70 (69 is 2069, 70 is 1970), where the RFC has a window of fifty years around now.
/// For any date near now that is the same until the end of 2069.
fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// Up to whole microseconds, like the fractions.
fn until(date: SystemTime, from: SystemTime) -> Option<Duration> {
    let wait = date.duration_since(from).unwrap_or_default();
    u64::try_from(wait.as_nanos().div_ceil(1_000)).ok().map(Duration::from_micros)
}
