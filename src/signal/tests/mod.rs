//! What goes wrong when answers are read. The table of whole answers is `tests/headers_misread.rs`.

mod bodies;
mod caches;
mod dialects;
mod hints;
mod lists;
mod structured;
mod times;
mod verdicts;
mod windows;

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Dialect, Refusal, Signal, Window};

/// Mon, 30 Nov 2026 12:00:00 GMT.
const NOW: u64 = 1_796_040_000;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn preset(name: &str) -> Dialect {
    Dialect::named(name).unwrap_or_else(|| panic!("{name} is a preset"))
}

fn map(all: &[(&str, &str)]) -> HeaderMap {
    let name = |name: &str| HeaderName::from_bytes(name.as_bytes()).unwrap();
    all.iter().map(|(key, value)| (name(key), HeaderValue::from_str(value).unwrap())).collect()
}

/// What a preset makes of an answer that comes at [`NOW`].
fn hear(dialect: &str, status: u16, headers: &[(&str, &str)]) -> Signal {
    hear_with(&preset(dialect), status, headers, None)
}

fn hear_with(dialect: &Dialect, status: u16, headers: &[(&str, &str)], body: Option<&str>) -> Signal {
    let status = StatusCode::from_u16(status).unwrap();
    super::read(status, &map(headers), body.map(str::as_bytes), at(NOW), dialect)
}

/// `limit`, `remaining` and the milliseconds of `reset`.
fn window(window: &Window) -> (Option<f64>, Option<f64>, Option<u64>) {
    (window.limit, window.remaining, window.reset.map(|reset| reset.as_millis() as u64))
}
