//! The canonical text, the name, and serde as that text.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use super::check::LEASE;
use super::{DAY, HOUR, Limit, MILLI, MINUTE, SECOND, Shape, WEEK, WHOLE};

/// Microseconds, the name of one and the name of several; the longest first.
const UNITS: [(u64, &str, &str); 7] = [
    (WEEK, "week", "weeks"),
    (DAY, "day", "days"),
    (HOUR, "h", "h"),
    (MINUTE, "min", "min"),
    (SECOND, "s", "s"),
    (MILLI, "ms", "ms"),
    (1, "us", "us"),
];

impl Limit {
    /// What the limit counts and over which period, never how many: `requests:60s`, `tokens:60s`.
    ///
    /// Part of a Redis key: replicas that are told different counts during a rollout still share one state.
    /// The period is in the largest exact unit of `s`, `ms` and `us`.
    ///
    /// ```
    /// use tollgate::Limit;
    ///
    /// let name = |text: &str| text.parse::<Limit>().map(|limit| limit.name());
    /// assert_eq!(name("100/min")?, "requests:60s");
    /// assert_eq!(name("200000 tokens/min")?, "tokens:60s");
    /// assert_eq!(name("10/100ms burst 20")?, "requests:100ms:bucket");
    /// assert_eq!(name("100/day aligned")?, "requests:86400s:aligned");
    /// assert_eq!(name("100/day resets 00:00 UTC")?, "requests:day@00:00@UTC");
    /// assert_eq!(name("100/week resets 00:00 UTC")?, "requests:week@mon@00:00@UTC");
    /// assert_eq!(name("100/month resets 00:00 UTC")?, "requests:month@1@00:00@UTC");
    /// assert_eq!(name("20 in flight")?, "in_flight");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn name(&self) -> String {
        let (unit, period) = (self.unit(), several(self.window, &UNITS[4..]));
        match &self.shape {
            Shape::Rolling { .. } => format!("{unit}:{period}"),
            Shape::Bucket { .. } => format!("{unit}:{period}:bucket"),
            Shape::Aligned => format!("{unit}:{period}:aligned"),
            Shape::Calendar(reset) => format!("{unit}:{}", reset.name()),
            Shape::InFlight => "in_flight".to_owned(),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shape {
            Shape::InFlight => write!(f, "{} in flight", self.max)?,
            _ => write!(f, "{}{}/", self.max, self.counted)?,
        }
        match &self.shape {
            Shape::InFlight if self.window == LEASE => {}
            Shape::InFlight => write!(f, " lease {}", guard_text(self.window))?,
            Shape::Calendar(reset) => write!(f, "{} resets {reset}", reset.period())?,
            _ => f.write_str(&window_text(self.window))?,
        }
        match self.shape {
            Shape::Rolling { paced: false } => f.write_str(" unpaced")?,
            Shape::Bucket { burst } => write!(f, " burst {burst}")?,
            Shape::Aligned => f.write_str(" aligned")?,
            Shape::Rolling { paced: true } | Shape::Calendar(_) | Shape::InFlight => {}
        }
        if let Some(guard) = self.guard {
            write!(f, " guard {}", guard_text(guard))?;
        }
        if self.share != WHOLE {
            write!(f, " share {}%", percent(self.share))?;
        }
        Ok(())
    }
}

/// A window as it follows the slash: `min`, `30s`, `2days`.
pub(super) fn window_text(window: u64) -> String {
    UNITS
        .iter()
        .find(|(unit, ..)| *unit == window)
        .map_or_else(|| several(window, &UNITS), |(_, one, _)| (*one).to_owned())
}

/// A guard or a lease, whose units end at the minute: `0s`, `10ms`, `60min`.
pub(super) fn guard_text(guard: u64) -> String {
    several(guard, &UNITS[3..])
}

fn several(micros: u64, units: &[(u64, &str, &str)]) -> String {
    match units.iter().find(|(unit, ..)| micros.is_multiple_of(*unit)) {
        Some((unit, _, name)) if micros > 0 => format!("{}{name}", micros / unit),
        _ => "0s".to_owned(),
    }
}

/// Parts of 10 000 as a percentage with as many decimals as it needs, at most two.
fn percent(share: u64) -> String {
    let text = format!("{}.{:02}", share / 100, share % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Limit, D::Error> {
        struct Text;

        impl de::Visitor<'_> for Text {
            type Value = Limit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(r#"a limit as text, e.g. "100/min""#)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Limit, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}
