//! Lengths of time as text: `6m0s`, `1h2m3.5s`, `20ms`, `45.837906927s`.

use std::time::Duration;

use super::number::{Decimal, MILLI, SECOND};

/// What Go and protobuf write. Read whole or not at all: a parser that is content with a beginning takes the `4h`
/// of `4hr 59min`, and one that knows more units takes the `m` of `20ms` for minutes.
pub fn read(text: &str) -> Option<Duration> {
    // The only number that needs no unit.
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut sum) = (text, Duration::ZERO);
    loop {
        let unit = rest.find(|c: char| c != '.' && !c.is_ascii_digit())?;
        let (number, more) = rest.split_at(unit);
        let end = more.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(more.len());
        let (unit, more) = more.split_at(end);
        let unit = match unit {
            "d" => 86_400 * SECOND,
            "h" => 3_600 * SECOND,
            "m" => 60 * SECOND,
            "s" => SECOND,
            "ms" => MILLI,
            "us" => 1,
            "ns" => {
                // Nothing here is finer than a microsecond.
                let nanos = Decimal::read(number)?.times(1)?.as_micros().div_ceil(1_000);
                sum = sum.saturating_add(Duration::from_micros(u64::try_from(nanos).ok()?));
                0
            }
            _ => return None,
        };
        if unit > 0 {
            sum = sum.saturating_add(Decimal::read(number)?.wait(unit));
        }
        if more.is_empty() {
            return Some(sum.min(super::number::FARTHEST));
        }
        rest = more;
    }
}
