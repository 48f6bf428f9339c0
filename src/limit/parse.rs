//! Text to limit: a count, its unit, a window, then modifiers in any order.

use std::str::FromStr;

use super::check::{BURST, COUNT, LEASE, LEASES, WINDOW};
use super::scan::Scan;
use super::{Counted, DAY, HOUR, Limit, LimitError, MILLI, MINUTE, Reset, SECOND, Shape, WEEK, WHOLE};

const MODIFIERS: &str =
    r#""unpaced", "burst 20", "aligned", "resets 00:00 UTC", "guard 10ms" or "share 80%""#;
const GUARD: &str = r#"the guard must be a whole number of us, ms, s or min, e.g. "guard 10ms""#;
const SHARE: &str =
    r#"the share must be above 0% and at most 100%, with up to two decimals, e.g. "share 80%""#;

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Limit, LimitError> {
        parse(text).map_err(|problem| LimitError::limit(text, problem))
    }
}

/// The length of a window and the word that stood for it, which calendars need.
pub(super) struct Window {
    micros: u64,
    /// Whether it is one of its unit, so that `resets` may follow.
    pub(super) single: bool,
    pub(super) unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Fixed,
    Day,
    Week,
    Month,
}

/// The modifiers seen so far: each at most once.
#[derive(Default)]
struct Modifiers {
    unpaced: Option<()>,
    burst: Option<u64>,
    aligned: Option<()>,
    resets: Option<Reset>,
    guard: Option<u64>,
    share: Option<u64>,
}

fn parse(text: &str) -> Result<Limit, String> {
    let mut scan = Scan::new(text);
    if scan.at_end() {
        return Err(r#"write a count per window, e.g. "100/min""#.to_owned());
    }
    let max = scan.number(COUNT)?;
    if scan.plain("in") {
        return in_flight(max, &mut scan);
    }
    let counted = counted(&mut scan)?;
    if !scan.symbol('/') && !scan.keyword("per") {
        let found = scan.found();
        return Err(format!(
            r#"write "/" or "per" after the count, e.g. "100/min" or "100 tokens/min"; found {found}"#
        ));
    }
    let window = window(&mut scan)?;
    let mut modifiers = Modifiers::default();
    while !scan.at_end() {
        modifiers.read(&mut scan, &window)?;
    }
    let mut limit = Limit {
        max,
        window: window.micros,
        guard: modifiers.guard,
        share: modifiers.share.unwrap_or(WHOLE),
        shape: modifiers.shape(&window)?,
        counted,
        grain: 1,
    };
    limit.check()?;
    Ok(limit)
}

/// What follows `20 in`.
fn in_flight(max: u64, scan: &mut Scan<'_>) -> Result<Limit, String> {
    if !scan.keyword("flight") {
        return Err(format!(r#"after "in" comes "flight", e.g. "20 in flight"; found {}"#, scan.found()));
    }
    let (mut given, mut part) = (None, None);
    while !scan.at_end() {
        let found = scan.found();
        match scan.word().as_str() {
            "lease" => once(&mut given, "lease", lease(scan)?)?,
            "share" => once(&mut part, "share", share(scan)?)?,
            _ => {
                let expected = r#""lease 10s" or "share 80%""#;
                return Err(format!(r#"after "in flight" comes {expected}; found {found}"#));
            }
        }
    }
    let mut limit = Limit {
        max,
        window: given.unwrap_or(LEASE),
        guard: None,
        share: part.unwrap_or(WHOLE),
        shape: Shape::InFlight,
        counted: Counted::calls(),
        grain: 1,
    };
    limit.check()?;
    Ok(limit)
}

/// In microseconds.
fn lease(scan: &mut Scan<'_>) -> Result<u64, String> {
    let count = scan.number(LEASES)?;
    match micros(&scan.peek_word()) {
        Some(length) if (MILLI..=MINUTE).contains(&length) => {
            scan.word();
            Ok(count.saturating_mul(length))
        }
        _ => Err(format!("{LEASES}; found {}", scan.found())),
    }
}

/// The unit, if one is named. Only after a blank: the `k` of `100k/min` is none.
fn counted(scan: &mut Scan<'_>) -> Result<Counted, String> {
    match scan.peek_word().as_str() {
        "" | "per" => Ok(Counted::default()),
        _ if !scan.after_blank() => Ok(Counted::default()),
        _ => Counted::read(scan.piece()),
    }
}

fn window(scan: &mut Scan<'_>) -> Result<Window, String> {
    let count = match scan.at_digit() {
        true => scan.number(WINDOW)?,
        false => 1,
    };
    let (length, unit) = match scan.peek_word().as_str() {
        "d" | "day" | "days" => (DAY, Unit::Day),
        "week" | "weeks" => (WEEK, Unit::Week),
        "month" | "months" => (31 * DAY, Unit::Month),
        "m" => return Err(r#"the unit "m" is ambiguous: write "min" or "month""#.to_owned()),
        word => match micros(word) {
            Some(length) => (length, Unit::Fixed),
            None => {
                let found = scan.found();
                return Err(format!(
                    r#"the window must have one of the units us, ms, s, min, h, day, week, e.g. "100/min"; found {found}"#
                ));
            }
        },
    };
    scan.word();
    Ok(Window {
        // Too long is too long: the range check comes with the other ones.
        micros: count.saturating_mul(length),
        single: count == 1,
        unit,
    })
}

/// The units that have one length everywhere and are not days.
fn micros(word: &str) -> Option<u64> {
    match word {
        "us" => Some(1),
        "ms" => Some(MILLI),
        "s" | "sec" | "second" | "seconds" => Some(SECOND),
        "min" | "minute" | "minutes" => Some(MINUTE),
        "h" | "hour" | "hours" => Some(HOUR),
        _ => None,
    }
}

impl Modifiers {
    fn read(&mut self, scan: &mut Scan<'_>, window: &Window) -> Result<(), String> {
        let found = scan.found();
        match scan.word().as_str() {
            "unpaced" => once(&mut self.unpaced, "unpaced", ()),
            "burst" => once(&mut self.burst, "burst", scan.number(BURST)?),
            "aligned" => once(&mut self.aligned, "aligned", ()),
            "resets" => once(&mut self.resets, "resets", Reset::read(scan, window)?),
            "guard" => once(&mut self.guard, "guard", guard(scan)?),
            "share" => once(&mut self.share, "share", share(scan)?),
            _ => Err(format!("after the window comes {MODIFIERS}; found {found}")),
        }
    }

    /// The one kind that the modifiers ask for.
    fn shape(self, window: &Window) -> Result<Shape, String> {
        let kinds = [
            self.unpaced.map(|()| ("unpaced", Shape::Rolling { paced: false })),
            self.burst.map(|burst| ("burst", Shape::Bucket { burst })),
            self.aligned.map(|()| ("aligned", Shape::Aligned)),
            self.resets.map(|reset| ("resets", Shape::Calendar(reset))),
        ];
        let mut kinds = kinds.into_iter().flatten();
        let first = kinds.next();
        if let (Some((a, _)), Some((b, _))) = (&first, kinds.next()) {
            return Err(format!(r#""{a}" and "{b}" exclude each other: keep one"#));
        }
        match first {
            Some((_, Shape::Calendar(reset))) => Ok(Shape::Calendar(reset)),
            _ if window.unit == Unit::Month => Err(
                r#"months differ in length: say when one begins, e.g. "100/month resets 1 00:00 UTC", or write "30days""#
                    .to_owned(),
            ),
            Some((_, shape)) => Ok(shape),
            None => Ok(Shape::Rolling { paced: true }),
        }
    }
}

fn once<T>(slot: &mut Option<T>, name: &str, value: T) -> Result<(), String> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(format!(r#""{name}" is given twice: keep one"#)),
    }
}

/// Zero needs no unit, so the word after it may already be the next modifier.
fn guard(scan: &mut Scan<'_>) -> Result<u64, String> {
    let count = scan.number(GUARD)?;
    let word = scan.peek_word();
    match micros(&word) {
        Some(length) if length < HOUR => {
            scan.word();
            Ok(count.saturating_mul(length))
        }
        None if count == 0 && (scan.at_end() || word.len() > 2) => Ok(0),
        _ => Err(format!("{GUARD}; found {}", scan.found())),
    }
}

/// A percentage as parts of 10 000.
fn share(scan: &mut Scan<'_>) -> Result<u64, String> {
    let found = scan.found();
    let text = scan.digits();
    let parts = match scan.symbol('%') {
        true => hundredths(text),
        false => None,
    };
    match parts {
        Some(parts @ 1..=WHOLE) => Ok(parts),
        _ => Err(format!("{SHARE}; found {found}")),
    }
}

/// `12.5` to 1250, without a float in between.
fn hundredths(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || decimals.len() > 2 {
        return None;
    }
    format!("{whole}{decimals:0<2}").parse().ok()
}
