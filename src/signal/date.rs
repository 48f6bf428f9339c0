//! Points in time as text: the dates of HTTP, RFC 3339, and ISO 8601 without seconds.

use std::time::{Duration, SystemTime};

use jiff::{Timestamp, tz::TimeZone};

/// No date is longer.
const LONGEST: usize = 40;

/// The three forms of a date in HTTP (RFC 9110, 5.6.7), all GMT.
///
/// A year of two digits is the one nearest to `near` that is not more than fifty years ahead. Second 60, which
/// the grammar allows, is the first second of the next minute.
pub fn http(text: &str, near: SystemTime) -> Option<SystemTime> {
    if text.len() > LONGEST {
        return None;
    }
    // Minutes are never followed by a blank.
    let leap = || read(&text.replacen(":60 ", ":59 ", 1), near)?.checked_add(Duration::from_secs(1));
    read(text, near).or_else(|| text.contains(":60 ").then(leap).flatten())
}

fn read(text: &str, near: SystemTime) -> Option<SystemTime> {
    // The other two forms abbreviate the weekday.
    let spelt_out = text.as_bytes().get(3).is_some_and(u8::is_ascii_lowercase);
    match spelt_out.then(|| whole_year(text, near)).flatten() {
        Some(text) => httpdate::parse_http_date(&text).ok(),
        None => httpdate::parse_http_date(text).ok(),
    }
}

/// `Sunday, 06-Nov-94 08:49:37 GMT` as `Sun, 06 Nov 1994 08:49:37 GMT`: the parser splits the centuries at 1970.
fn whole_year(text: &str, near: SystemTime) -> Option<String> {
    let (weekday, rest) = text.split_once("day, ")?;
    let (day, month, year, time) = (rest.get(..2)?, rest.get(3..6)?, rest.get(7..9)?, rest.get(10..)?);
    if rest.as_bytes()[2] != b'-' || rest.as_bytes()[6] != b'-' || !year.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let weekday = weekday.get(..3)?;
    let this = i64::from(TimeZone::UTC.to_datetime(Timestamp::try_from(near).ok()?).year());
    let last = this + 50;
    let year = last - (last - year.parse::<i64>().ok()?).rem_euclid(100);
    Some(format!("{weekday}, {day} {month} {year:04} {time}"))
}

/// RFC 3339, and ISO 8601 without seconds (`2026-11-30T12:01Z`). Without a zone it is no point in time.
pub fn iso(text: &str) -> Option<SystemTime> {
    // Whatever else that parser takes for a date: it begins with a year and is short.
    let looks = text.len() <= LONGEST
        && text.as_bytes().first().is_some_and(u8::is_ascii_digit)
        && text.contains('-');
    text.parse::<Timestamp>().ok().filter(|_| looks).and_then(|time| SystemTime::try_from(time).ok())
}
