//! What a body says, for the dialects that ask for it. Only its beginning is looked at.

use std::{cell::OnceCell, time::Duration};

use serde_json::Value;

use super::{
    base::Base,
    dialect::{Body as Rules, BodySays},
    read::{Drafts, seconds},
};

/// A refusal in a body that is longer is not looked for.
pub const LONGEST: usize = 64 * 1024;

/// A body, parsed when that is needed.
pub struct Body<'a> {
    bytes: &'a [u8],
    json: OnceCell<Option<Value>>,
}

impl<'a> Body<'a> {
    pub fn new(bytes: Option<&'a [u8]>) -> Self {
        let bytes = bytes.unwrap_or_default();
        Self { bytes: &bytes[..bytes.len().min(LONGEST)], json: OnceCell::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn json(&self) -> Option<&Value> {
        self.json.get_or_init(|| serde_json::from_slice(self.bytes).ok()).as_ref()
    }

    /// All that a pointer leads to; `*` is every member.
    fn at(&self, pointer: &str) -> Vec<&Value> {
        let mut found: Vec<&Value> = self.json().into_iter().collect();
        for step in pointer.split('/').skip(1) {
            found = found.into_iter().flat_map(|value| members(value, step)).collect();
        }
        found
    }

    pub fn says(&self, what: &BodySays) -> bool {
        if self.is_empty() {
            return false;
        }
        if what.at.is_empty() {
            let text = String::from_utf8_lossy(self.bytes);
            return what.contains.iter().any(|part| text.contains(part))
                || what.is.iter().any(|is| text == *is);
        }
        let mut values = what.at.iter().flat_map(|pointer| self.at(pointer)).filter_map(as_text);
        values.any(|text| what.is.contains(&text) || what.contains.iter().any(|part| text.contains(part)))
    }

    /// The first wait that can be read, in the order of the dialect; of several at one pointer the longest.
    pub fn wait(&self, rules: &Rules, base: &Base<'_>) -> Option<Duration> {
        rules.waits.iter().filter(|_| !self.is_empty()).find_map(|rule| {
            let texts = self.at(&rule.at).into_iter().filter_map(as_text);
            let read = |text: String| match &rule.after {
                None => rule.form.read(text.trim(), base),
                Some(words) => rule.form.read(number(text.split_once(&**words)?.1), base),
            };
            texts.filter_map(read).max()
        })
    }

    /// A bucket that refills steadily becomes a window, and tells when the refused call would have passed.
    pub fn bucket(&self, rules: &Rules, windows: &mut Drafts<'_>) -> Refill {
        self.refill(rules, windows).unwrap_or_default()
    }

    fn refill(&self, rules: &Rules, windows: &mut Drafts<'_>) -> Option<Refill> {
        let bucket = rules.bucket.as_ref().filter(|_| !self.is_empty())?;
        let number =
            |pointer: &str| self.at(pointer).into_iter().find_map(Value::as_f64).filter(|n| *n >= 0.0);
        let (limit, remaining) = (number(&bucket.limit)?, number(&bucket.remaining)?);
        // A rate of zero never refills: the quotient is no time.
        let rate = number(&bucket.per_second).unwrap_or_default();
        let time = |missing: f64| seconds(missing.max(0.0) / rate);
        let draft = windows.at("", "bucket", 0)?;
        (draft.limit, draft.remaining) = (Some(limit), Some(remaining));
        time(limit - remaining).into_iter().for_each(|reset| draft.reset(0, reset));
        let cost = number(&bucket.cost)?;
        if cost > limit {
            return Some(Refill::Never);
        }
        time(cost - remaining).map(Refill::After)
    }
}

/// When a call that a bucket refused would pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refill {
    #[default]
    Unknown,
    After(Duration),
    /// It costs more than there can be.
    Never,
}

fn members<'v>(value: &'v Value, step: &str) -> Vec<&'v Value> {
    match value {
        Value::Object(map) if step == "*" => map.values().collect(),
        Value::Array(list) if step == "*" => list.iter().collect(),
        Value::Object(map) => map.get(step).into_iter().collect(),
        Value::Array(list) => step.parse().ok().and_then(|at: usize| list.get(at)).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Codes are numbers here and texts there.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The number with which a text begins.
fn number(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}
