//! What the values on the command line mean.

use std::time::Duration;

use tollgate::Limit;

use crate::{chance::Cost, trip::Trip};

/// A limit, and how it was written.
#[derive(Clone)]
pub struct Spec {
    pub text: String,
    pub limit: Limit,
}

/// Set by the first replica, so long after the start.
#[derive(Clone)]
pub struct Change {
    pub limit: Limit,
    pub after: Duration,
}

#[derive(Clone, Copy)]
pub struct Jitter {
    pub least: Duration,
    pub most: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Wait,
    Reject,
    WaitAtMost(Duration),
}

pub fn whole<T: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Result<T, String> {
    let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

pub fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (1.0..=100.0).contains(number));
    number.ok_or_else(|| "expected a number from 1 to 100".into())
}

pub fn spec(text: &str) -> Result<Spec, tollgate::LimitError> {
    Ok(Spec { text: text.to_owned(), limit: text.parse()? })
}

pub fn cost(text: &str) -> Result<Cost, String> {
    let expected = || format!("expected a unit and a range such as tokens=50..350, not \"{text}\"");
    let (unit, range) = text.split_once('=').ok_or_else(expected)?;
    let (least, most) = range.split_once("..").unwrap_or((range, range));
    let number = |text: &str| whole::<u64>(text, 0, 1_000_000_000_000).map_err(|_| expected());
    let (unit, least, most) = (unit.to_ascii_lowercase(), number(least)?, number(most)?);
    if least > most { Err(expected()) } else { Ok(Cost { unit, least, most }) }
}

pub fn policy(text: &str) -> Result<Policy, String> {
    match text.split_once(':') {
        None if text == "wait" => Ok(Policy::Wait),
        None if text == "reject" => Ok(Policy::Reject),
        Some(("wait", time)) => duration(time).map(Policy::WaitAtMost),
        _ => Err("expected wait, reject or wait:DUR, e.g. wait:500ms".into()),
    }
}

pub fn trip(text: &str) -> Result<Trip, String> {
    let expected = || format!("expected how long and from when on, e.g. 2s@4s, not \"{text}\"");
    let (lasts, after) = text.split_once('@').ok_or_else(expected)?;
    let (lasts, after) =
        duration(lasts).and_then(|lasts| Ok((lasts, duration(after)?))).map_err(|_| expected())?;
    if lasts.is_zero() { Err(expected()) } else { Ok(Trip { lasts, after }) }
}

pub fn change(text: &str) -> Result<Change, String> {
    let expected = || format!("expected a limit and when it is set, e.g. 50/1s@4s, not \"{text}\"");
    let (limit, after) = text.rsplit_once('@').ok_or_else(expected)?;
    let after = duration(after).map_err(|_| expected())?;
    Ok(Change { limit: limit.parse::<Limit>().map_err(|error| error.to_string())?, after })
}

pub fn jitter(text: &str) -> Result<Jitter, String> {
    let expected = || format!("expected a range such as 5..50ms, not \"{text}\"");
    let (least, most) = text.split_once("..").ok_or_else(expected)?;
    let unit = most.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let least = duration(least).or_else(|_| duration(&format!("{least}{unit}"))).map_err(|_| expected())?;
    let most = duration(most).map_err(|_| expected())?;
    if least > most { Err(expected()) } else { Ok(Jitter { least, most }) }
}

pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let micros = match &text[digits..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" | "min" => 60_000_000,
        _ => 0,
    };
    match text[..digits].parse::<u64>().ok().and_then(|count| count.checked_mul(micros)) {
        Some(time) if micros > 0 => Ok(Duration::from_micros(time)),
        _ => Err(format!("expected a whole number and us, ms, s or min, e.g. 10ms, not \"{text}\"")),
    }
}
