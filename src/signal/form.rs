//! How a provider writes a time.

use std::time::Duration;

use serde::Deserialize;

use super::{
    base::Base,
    date,
    number::{Decimal, MILLI, SECOND},
    span,
};

/// A whole number above this is an epoch in seconds (2001), above the next one in milliseconds. No quota that we
/// know is that long in seconds.
const EPOCH: u64 = 1_000_000_000;
const EPOCH_MILLIS: u64 = 1_000_000_000_000;

/// What a time in a header or body looks like, always from the answer on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Not declared: an epoch in milliseconds above 10^12, in seconds above 10^9, else seconds; or any text below.
    #[default]
    Auto,
    /// `30`, `64.57`
    Seconds,
    /// `1500`
    Milliseconds,
    /// `5`
    Minutes,
    /// `1796041234`, `1470173023.123`
    EpochSeconds,
    /// `1796041800000`
    EpochMilliseconds,
    /// `6m0s`, `20ms`, `45.8s`
    Duration,
    /// `2026-11-30T12:01:30.5+01:00`, `2026-11-30T12:01Z`
    DateTime,
    /// `Mon, 30 Nov 2026 12:00:30 GMT` and its older forms
    HttpDate,
    /// As `Retry-After` in RFC 9110: seconds or a date of HTTP.
    SecondsOrDate,
}

impl Form {
    /// How long that is from `base` on. Zero is a time; empty is none, and so is what does not have this form.
    pub fn read(self, text: &str, base: &Base<'_>) -> Option<Duration> {
        let since = |unit| base.until_epoch(Decimal::read(text)?.times(unit)?);
        let http = || base.until(date::http(text, base.time())?);
        let iso = || base.until(date::iso(text)?);
        let wait = |unit| Decimal::read(text).map(|number| number.wait(unit));
        match self {
            Self::Auto => match Decimal::read(text) {
                Some(number) if number.whole > EPOCH_MILLIS => since(MILLI),
                Some(number) if number.whole > EPOCH => since(SECOND),
                Some(number) => Some(number.wait(SECOND)),
                None => span::read(text).or_else(iso).or_else(http),
            },
            Self::Seconds => wait(SECOND),
            Self::Milliseconds => wait(MILLI),
            Self::Minutes => wait(60 * SECOND),
            Self::EpochSeconds => since(SECOND),
            Self::EpochMilliseconds => since(MILLI),
            Self::Duration => span::read(text),
            Self::DateTime => iso(),
            Self::HttpDate => http(),
            Self::SecondsOrDate => wait(SECOND).or_else(http),
        }
    }
}
