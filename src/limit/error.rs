//! Why a limit was refused.

use std::fmt;

/// More of an offending text than this says nothing more, and would flood a log.
const SHOWN: usize = 120;

/// A [`Limit`](crate::Limit) or [`Reset`](crate::Reset) that cannot be.
///
/// The message names the offending text, what is wrong with it and what was expected, on one line.
///
/// ```
/// let error = "100/m".parse::<tollgate::Limit>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"invalid limit "100/m": the unit "m" is ambiguous: write "min" or "month""#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitError {
    subject: &'static str,
    text: String,
    problem: String,
}

impl LimitError {
    pub(super) fn limit(text: impl AsRef<str>, problem: String) -> LimitError {
        LimitError::new("limit", text.as_ref(), problem)
    }

    pub(super) fn reset(text: impl AsRef<str>, problem: String) -> LimitError {
        LimitError::new("reset", text.as_ref(), problem)
    }

    fn new(subject: &'static str, text: &str, problem: String) -> LimitError {
        LimitError { subject, text: excerpt(text), problem }
    }
}

/// The beginning of a text, if it is long.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `{:?}` escapes control characters: the text may come from a file that somebody else wrote.
        write!(f, "invalid {} {:?}: {}", self.subject, self.text, self.problem)
    }
}

impl std::error::Error for LimitError {}
