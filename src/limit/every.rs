//! How often a calendar window begins, and on which day.

use std::fmt;

use super::error::excerpt;
use super::reset::TIME;

/// The day on which a week begins.
///
/// ```
/// use tollgate::{Reset, Weekday};
///
/// let reset = Reset::weekly(Weekday::Sunday, 0, 0, "UTC")?;
/// assert_eq!(reset.to_string(), "sun 00:00 UTC");
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[allow(missing_docs, reason = "the names of the days say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

/// In the order of [`Weekday`].
const DAYS: [(&str, &str, Weekday); 7] = [
    ("mon", "monday", Weekday::Monday),
    ("tue", "tuesday", Weekday::Tuesday),
    ("wed", "wednesday", Weekday::Wednesday),
    ("thu", "thursday", Weekday::Thursday),
    ("fri", "friday", Weekday::Friday),
    ("sat", "saturday", Weekday::Saturday),
    ("sun", "sunday", Weekday::Sunday),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Every {
    Day,
    Week(Weekday),
    /// The day of the month, 1 to 28.
    Month(u8),
}

impl Every {
    /// The same period, beginning on the day that a text names.
    pub(super) fn on(self, day: &str) -> Result<Every, String> {
        let expected = match self {
            Every::Day => TIME,
            Every::Week(_) => {
                let named = |name: &str| day.eq_ignore_ascii_case(name);
                if let Some((.., day)) = DAYS.iter().find(|(a, b, _)| named(a) || named(b)) {
                    return Ok(Every::Week(*day));
                }
                r#"a week resets on mon to sun, e.g. "resets mon 00:00 UTC""#
            }
            Every::Month(_) => {
                if !day.is_empty() && day.bytes().all(|b| b.is_ascii_digit()) {
                    // An overflow is a day that no month has.
                    return Ok(Every::Month(day.parse().unwrap_or(u8::MAX)));
                }
                r#"a month resets on day 1 to 28, e.g. "resets 1 00:00 UTC""#
            }
        };
        Err(format!("{expected}; found {:?}", excerpt(day)))
    }
}

/// As it stands before the time: `mon `, `1 `, or nothing.
impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Every::Day => Ok(()),
            Every::Week(day) => write!(f, "{} ", DAYS[*day as usize].0),
            Every::Month(day) => write!(f, "{day} "),
        }
    }
}
