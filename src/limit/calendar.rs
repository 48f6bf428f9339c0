//! The resets around an instant. The store knows no zones, so the caller sends it these.

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan};

use super::every::Every;
use super::{Limit, Reset, Shape};

/// How many resets are told: enough that a store whose clock is a period away still finds its own.
const TOLD: usize = 5;

/// 1970-01-01T00:00:00Z and the microsecond before 2201-01-01T00:00:00Z: years of which every zone and every
/// sum is known to be in range.
const FIRST: i64 = 0;
const LAST: i64 = 7_289_654_400_000_000 - 1;

impl Limit {
    /// Five consecutive resets in microseconds since the epoch, the first not after `around`, the second
    /// after it.
    /// `around` is first moved into the years 1970 to 2200. Empty for limits without resets.
    pub(crate) fn boundaries(&self, around: i64) -> Vec<i64> {
        let around = around.clamp(FIRST, LAST);
        match &self.shape {
            Shape::Rolling { .. } | Shape::Bucket { .. } | Shape::InFlight => Vec::new(),
            Shape::Aligned => {
                // At most 366 days, so this and the sums below are far from the ends of the type.
                let window = self.window as i64;
                let first = around - around % window;
                (0..TOLD as i64).map(|k| first + k * window).collect()
            }
            Shape::Calendar(reset) => reset.around(around),
        }
    }
}

impl Reset {
    fn around(&self, around: i64) -> Vec<i64> {
        let now = Timestamp::from_microsecond(around).unwrap_or_default();
        let today = self.zone.to_datetime(now).date();
        // Two periods more on either side than are needed: the reset of this period may be still to come, and
        // islands that crossed the date line skipped a whole day, so that two resets fall together.
        let mut resets: Vec<i64> =
            (-3..=TOLD as i64 + 2).filter_map(|periods| self.instant(self.begin(today, periods)?)).collect();
        resets.sort_unstable();
        resets.dedup();
        let later = resets.partition_point(|reset| *reset <= around);
        let first = later.saturating_sub(1);
        resets.into_iter().skip(first).take(TOLD).collect()
    }

    /// The day on which the period `periods` after that of `today` begins.
    fn begin(&self, today: Date, periods: i64) -> Option<Date> {
        match self.every {
            Every::Day => today.checked_add(periods.days()).ok(),
            Every::Week(day) => {
                let weekday = i64::from(today.weekday().to_monday_zero_offset());
                let since = (weekday - day as i64).rem_euclid(7);
                today.checked_add((periods * 7 - since).days()).ok()
            }
            Every::Month(day) => {
                let first = today.first_of_month();
                let month = first.checked_add(periods.months()).ok()?;
                month.checked_add((i64::from(day) - 1).days()).ok()
            }
        }
    }

    fn instant(&self, date: Date) -> Option<i64> {
        let local = date.at(self.hour as i8, self.minute as i8, 0, 0);
        let instant = self.zone.to_ambiguous_timestamp(local).compatible().ok()?;
        Some(instant.as_microsecond())
    }
}
