//! The lookup of a time zone, and what to do when there is none.

use jiff::tz::{self, TimeZone};

use super::error::excerpt;

/// Finds a zone by its name in any case. `UTC` needs no database.
pub(super) fn find(name: &str) -> Result<TimeZone, String> {
    if name.is_empty() {
        return Err(r#"name a time zone after the time, e.g. "resets 00:00 UTC""#.to_owned());
    }
    if name.eq_ignore_ascii_case("UTC") {
        return Ok(TimeZone::UTC);
    }
    TimeZone::get(name)
        .ok()
        .filter(|zone| zone.iana_name().is_some_and(is_shared))
        .ok_or_else(|| missing(name, tz::db().is_definitively_empty()))
}

/// Whether a name means the same zone on each machine. Database folders also hold the machine's own zone, and
/// copies whose clock counts leap seconds, which no provider's does.
fn is_shared(name: &str) -> bool {
    let folder = name.split('/').next().unwrap_or(name);
    !matches!(folder, "localtime" | "posixrules" | "posix" | "right")
}

pub(super) fn missing(name: &str, no_database: bool) -> String {
    let name = excerpt(name);
    if no_database {
        format!(
            r#"no data for time zone {name:?} on this machine: install tzdata, enable the cargo feature "tzdb-bundled", or use UTC"#
        )
    } else {
        format!(
            r#"unknown time zone {name:?}: use a name of the time zone database, e.g. "America/Los_Angeles" or "UTC""#
        )
    }
}
