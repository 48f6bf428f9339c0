//! When a calendar window begins: a time of day in a zone, daily, weekly or monthly.

use std::fmt;
use std::hash::{Hash, Hasher};

use jiff::tz::TimeZone;

use super::error::excerpt;
use super::every::{Every, Weekday};
use super::parse::{Unit, Window};
use super::scan::Scan;
use super::{DAY, LimitError, WEEK, zone};

pub(super) const TIME: &str = r#"the time must be from 00:00 to 23:59, e.g. "resets 00:00 UTC""#;

/// When a calendar window begins; see [`Limit::calendar`](crate::Limit::calendar).
///
/// On a day whose clock skips the time, the reset comes as much later as the clock skips; on a day that has
/// the time twice, it is the first. Days with a change of clocks last 23 or 25 hours.
///
/// ```
/// use tollgate::{Reset, Weekday};
///
/// let reset = Reset::weekly(Weekday::Monday, 9, 30, "europe/berlin")?;
/// assert_eq!(reset.to_string(), "mon 09:30 Europe/Berlin");
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone)]
pub struct Reset {
    pub(super) every: Every,
    pub(super) hour: u8,
    pub(super) minute: u8,
    /// Looked up once: the database may be gone or changed later.
    pub(super) zone: TimeZone,
}

impl Reset {
    /// Every day at `hour`:`minute` of `zone`, a name of the time zone database in any case, or `UTC`.
    ///
    /// # Errors
    ///
    /// `hour` is above 23, `minute` above 59, `zone` is unknown, or the machine has no time zone data (the cargo
    /// feature `tzdb-bundled` brings it along).
    ///
    /// ```
    /// let reset = tollgate::Reset::daily(0, 0, "America/Los_Angeles")?;
    /// assert_eq!(reset.to_string(), "00:00 America/Los_Angeles");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn daily(hour: u8, minute: u8, zone: &str) -> Result<Reset, LimitError> {
        Reset::build(Every::Day, hour, minute, zone)
    }

    /// Every week on `day` at `hour`:`minute` of `zone`.
    ///
    /// # Errors
    ///
    /// As of [`Reset::daily`].
    ///
    /// ```
    /// use tollgate::{Reset, Weekday};
    ///
    /// let reset = Reset::weekly(Weekday::Monday, 0, 0, "UTC")?;
    /// assert_eq!(reset.to_string(), "mon 00:00 UTC");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn weekly(day: Weekday, hour: u8, minute: u8, zone: &str) -> Result<Reset, LimitError> {
        Reset::build(Every::Week(day), hour, minute, zone)
    }

    /// Every month on `day`, 1 to 28 (the days that every month has), at `hour`:`minute` of `zone`.
    ///
    /// # Errors
    ///
    /// `day` is not 1 to 28, or as of [`Reset::daily`].
    ///
    /// ```
    /// let reset = tollgate::Reset::monthly(1, 0, 0, "UTC")?;
    /// assert_eq!(reset.to_string(), "1 00:00 UTC");
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn monthly(day: u8, hour: u8, minute: u8, zone: &str) -> Result<Reset, LimitError> {
        Reset::build(Every::Month(day), hour, minute, zone)
    }

    fn build(every: Every, hour: u8, minute: u8, zone: &str) -> Result<Reset, LimitError> {
        Reset::new(every, hour, minute, zone)
            .map_err(|problem| LimitError::reset(format!("{every}{hour:02}:{minute:02} {zone}"), problem))
    }

    fn new(every: Every, hour: u8, minute: u8, zone: &str) -> Result<Reset, String> {
        if let Every::Month(day) = every
            && !(1..=28).contains(&day)
        {
            return Err(r#"the day of the month must be from 1 to 28, which every month has, e.g. "resets 1 00:00 UTC""#.to_owned());
        }
        if hour > 23 || minute > 59 {
            return Err(TIME.to_owned());
        }
        Ok(Reset { every, hour, minute, zone: zone::find(zone)? })
    }

    /// Reads what follows `resets`: a day if the window has one to choose, the time, the zone.
    pub(super) fn read(scan: &mut Scan<'_>, window: &Window) -> Result<Reset, String> {
        let default = match window.unit {
            Unit::Day if window.single => Every::Day,
            Unit::Week if window.single => Every::Week(Weekday::Monday),
            Unit::Month if window.single => Every::Month(1),
            _ => {
                return Err(r#""resets" goes with /day, /week or /month, else use "aligned""#.to_owned());
            }
        };
        let first = scan.chunk();
        let (every, time) = match first.contains(':') {
            true => (default, first),
            false => (default.on(first)?, scan.chunk()),
        };
        let (hour, minute) = clock(time).ok_or_else(|| format!("{TIME}; found {:?}", excerpt(time)))?;
        Reset::new(every, hour, minute, scan.chunk())
    }

    /// The word of the window: `day`, `week` or `month`.
    pub(super) fn period(&self) -> &'static str {
        match self.every {
            Every::Day => "day",
            Every::Week(_) => "week",
            Every::Month(_) => "month",
        }
    }

    /// The length that stands for the window, in microseconds.
    pub(super) fn nominal(&self) -> u64 {
        match self.every {
            Every::Day => DAY,
            Every::Week(_) => WEEK,
            Every::Month(_) => 31 * DAY,
        }
    }

    /// The reset as a part of a Redis key: without blanks.
    pub(super) fn name(&self) -> String {
        format!("{} {self}", self.period()).replace(' ', "@")
    }

    fn identity(&self) -> (Every, u8, u8, &str) {
        (self.every, self.hour, self.minute, self.zone_name())
    }

    fn zone_name(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }
}

/// Hours and minutes of `HH:MM`.
fn clock(text: &str) -> Option<(u8, u8)> {
    let (hour, minute) = text.split_once(':')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(hour) || !digits(minute) || minute.len() != 2 {
        return None;
    }
    Some((hour.parse().ok()?, minute.parse().ok()?))
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute) = (self.hour, self.minute);
        write!(f, "{}{hour:02}:{minute:02} {}", self.every, self.zone_name())
    }
}

impl fmt::Debug for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reset({self})")
    }
}

// A zone is its name: two loads of the database, before and after an update, are the same reset.
impl PartialEq for Reset {
    fn eq(&self, other: &Reset) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Reset {}

impl Hash for Reset {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}
