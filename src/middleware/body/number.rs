//! Numbers that say what was used: never less than is meant.

use serde_json::Value;

/// The first float that is too large.
const TOO_MUCH: f64 = 18_446_744_073_709_551_616.0;

/// Digits, and perhaps a point and digits, which round it up.
pub fn of_text(text: &str) -> Option<u64> {
    let text = text.trim_ascii();
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let over = part.bytes().any(|digit| digit != b'0');
    whole.parse::<u64>().ok()?.checked_add(over.into())
}

/// What `pointer` leads to in a JSON document, if that is a number or a text that is one.
pub fn in_json(document: &[u8], pointer: &str) -> Option<u64> {
    match serde_json::from_slice::<Value>(document).ok()?.pointer(pointer)? {
        Value::Number(number) => number.as_u64().or_else(|| round_up(number.as_f64()?)),
        Value::String(text) => of_text(text),
        _ => None,
    }
}

fn round_up(number: f64) -> Option<u64> {
    (0.0..TOO_MUCH).contains(&number).then(|| number.ceil() as u64)
}
