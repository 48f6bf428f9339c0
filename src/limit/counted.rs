//! What a limit counts: requests, or a unit that the text names.

use std::fmt;
use std::sync::Arc;

use super::error::excerpt;

const REQUESTS: &str = "requests";
/// The name stands in Redis keys and in each error.
const LONGEST: usize = 32;

/// Each would be a slip or misread: a word between count and window, a modifier before its place, a multiplier
/// of the count.
const TAKEN: [&str; 20] = [
    "per", "in", "a", "an", "any", "each", "every", "of", "unpaced", "burst", "aligned", "resets", "guard",
    "share", "k", "m", "g", "thousand", "million", "billion",
];

/// Nothing stands for requests, which are most limits and cost no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Counted(Option<Arc<str>>);

impl Counted {
    /// A word in any case. Short forms of requests mean requests: as units of their own nobody would charge
    /// them.
    pub(super) fn read(text: &str) -> Result<Counted, String> {
        let word = text.to_ascii_lowercase();
        let letter = |c: char| c.is_ascii_lowercase();
        if word.len() > LONGEST
            || !word.starts_with(letter)
            || !word.chars().all(|c| letter(c) || c.is_ascii_digit() || c == '_')
        {
            let found = excerpt(text);
            return Err(format!(
                r#"the unit must be a word of letters, digits and "_", from 1 to {LONGEST} long, that begins with a letter, e.g. "tokens"; found {found:?}"#
            ));
        }
        // `100 per60s` is a window without a blank before it, so that no unit may look like it.
        let letters = word.split(|c| !letter(c)).next();
        if TAKEN.contains(&word.as_str()) || letters == Some("per") {
            return Err(format!(
                r#"the unit cannot be {word:?}, which means something else: use another word, or none, e.g. "100/min""#
            ));
        }
        match word.as_str() {
            REQUESTS | "request" | "reqs" | "req" => Ok(Counted::default()),
            _ => Ok(Counted::unchecked(&word)),
        }
    }

    /// What a limit of calls in flight counts: each takes one place, whatever it costs.
    pub(super) fn calls() -> Counted {
        Counted::unchecked("calls")
    }

    /// For the error that shows it.
    pub(super) fn unchecked(text: &str) -> Counted {
        Counted(Some(text.into()))
    }

    pub(super) fn name(&self) -> &str {
        self.0.as_deref().unwrap_or(REQUESTS)
    }
}

/// As it stands after the count: ` tokens`, or nothing.
impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_deref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}
