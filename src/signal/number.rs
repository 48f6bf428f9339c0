//! Numbers in headers: digits, perhaps a fraction. No sign, no exponent, no `inf`, no float on the way to a wait.

use std::time::Duration;

/// Ten thousand years. What is further away is no time that a provider can mean, and this much can be added to
/// any date without an overflow.
pub const FARTHEST: Duration = Duration::from_secs(315_576_000_000);

/// What more digits than fit stand for, as RFC 9111 (1.2.2) has it for the seconds of a cache: 2^31 seconds.
const TOO_MANY: Duration = Duration::from_secs(1 << 31);

/// Places after the point that count; what is left after them counts as one more of the last.
const PLACES: usize = 12;
const PARTS: u128 = 10u128.pow(PLACES as u32);

/// How long a unit is, in microseconds.
pub const SECOND: u64 = 1_000_000;
pub const MILLI: u64 = 1_000;

/// `2`, `2.0` or `0.314`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// The largest, if there are more digits than fit.
    pub whole: u64,
    parts: u64,
}

impl Decimal {
    /// A number that was read by somebody else.
    pub fn whole(whole: u64) -> Self {
        Self { whole, parts: 0 }
    }

    pub fn read(text: &str) -> Option<Self> {
        if let Some(whole) = digits(text) {
            return Some(Self::whole(whole));
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        if !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let (near, rest) = fraction.split_at(fraction.len().min(PLACES));
        let zeros = 10u64.pow((PLACES - near.len()) as u32);
        let more = rest.bytes().any(|b| b != b'0');
        let parts = near.parse::<u64>().ok()? * zeros + u64::from(more);
        Some(Self { whole: whole.parse().unwrap_or(u64::MAX), parts })
    }

    /// So many units, up to a whole microsecond. `None` beyond [`FARTHEST`].
    pub fn times(self, unit: u64) -> Option<Duration> {
        let parts = match self.parts {
            0 => 0,
            parts => u64::try_from((u128::from(parts) * u128::from(unit)).div_ceil(PARTS)).ok()?,
        };
        let time = Duration::from_micros(self.whole.checked_mul(unit)?.checked_add(parts)?);
        (time <= FARTHEST).then_some(time)
    }

    /// The same as a wait: a number is a number, so one that is too large is a long wait and not none.
    pub fn wait(self, unit: u64) -> Duration {
        self.times(unit).unwrap_or(TOO_MANY)
    }
}

/// Up to whole microseconds.
pub fn round_up(time: Duration) -> Option<Duration> {
    let micros = u64::from(time.subsec_nanos().div_ceil(1_000));
    let micros = time.as_secs().checked_mul(SECOND)?.checked_add(micros)?;
    Some(Duration::from_micros(micros)).filter(|time| *time <= FARTHEST)
}

/// What nearly all numbers are: a few digits.
fn digits(text: &str) -> Option<u64> {
    if text.is_empty() || text.len() > 15 {
        return None;
    }
    text.bytes()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// How many a provider grants or has left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// Finite and not negative. Some providers count in fractions (`594.0`), some have rates below one.
    Known(f64),
    /// A number below zero: what some send for "not known".
    Sentinel,
}

impl Count {
    pub fn read(text: &str) -> Option<Self> {
        if let Some(count) = digits(text) {
            // A float holds fifteen digits.
            return Some(Self::Known(count as f64));
        }
        if let Some(text) = text.strip_prefix('-') {
            return Decimal::read(text).map(|_| Self::Sentinel);
        }
        Decimal::read(text)?;
        // The grammar is checked, so this is neither `inf` nor an exponent.
        text.parse::<f64>().ok().filter(|count| count.is_finite()).map(Self::Known)
    }
}
