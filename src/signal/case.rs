//! One answer as JSON in, what it means as JSON out: for tables of cases that are no code.

use std::{collections::BTreeMap, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Dialect, date, read};

#[derive(Deserialize)]
struct Case {
    profile: String,
    status: u16,
    headers: BTreeMap<String, Lines>,
    #[serde(default)]
    body: Option<String>,
    now: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    One(String),
    Many(Vec<String>),
}

#[derive(Serialize)]
struct Outcome {
    wait_ms: Option<u64>,
    limit: Value,
    remaining: Value,
    reset_ms: Option<u64>,
}

/// Reads the answer of one case, as they stand in `tests/cases/headers.json`: `profile` (a preset; what is none is read
/// as `unknown`), `status`, `headers` (a text, or a list of lines; a character up to U+00FF is a byte), perhaps a
/// `body`, and `now` as RFC 3339. Other members are ignored.
///
/// Gives `wait_ms`, and `limit`, `remaining` and `reset_ms` of the window that binds; milliseconds up to whole ones.
///
/// # Errors
///
/// What is no such case, in words.
pub fn run_case(json: &str) -> Result<String, String> {
    let case: Case = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let status = StatusCode::from_u16(case.status).map_err(|error| error.to_string())?;
    let now = date::iso(&case.now).ok_or_else(|| format!("{:?} is no time", case.now))?;
    let dialect = Dialect::named(&case.profile).or_else(|| Dialect::named("unknown")).unwrap_or_default();
    let headers = headers(&case)?;
    let body = case.body.as_deref().map(str::as_bytes);
    let signal = read(status, &headers, body, now, &dialect);
    let binding = signal.binding().cloned().unwrap_or_default();
    let outcome = Outcome {
        wait_ms: signal.wait.map(millis),
        limit: count(binding.limit),
        remaining: count(binding.remaining),
        reset_ms: binding.reset.map(millis),
    };
    serde_json::to_string(&outcome).map_err(|error| error.to_string())
}

fn headers(case: &Case) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, lines) in &case.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| format!("{name:?}: {error}"))?;
        let lines = match lines {
            Lines::One(line) => std::slice::from_ref(line),
            Lines::Many(lines) => lines,
        };
        for line in lines {
            let bytes: Option<Vec<u8>> = line.chars().map(|letter| u8::try_from(letter).ok()).collect();
            let bytes = bytes.unwrap_or_else(|| line.as_bytes().to_vec());
            let value = HeaderValue::from_bytes(&bytes).map_err(|error| format!("{line:?}: {error}"))?;
            headers.try_append(&name, value).map_err(|error| error.to_string())?;
        }
    }
    Ok(headers)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Whole numbers without a point.
fn count(count: Option<f64>) -> Value {
    match count {
        Some(count) if count.fract() == 0.0 && count.abs() < 1e15 => Value::from(count as i64),
        Some(count) => Value::from(count),
        None => Value::Null,
    }
}
