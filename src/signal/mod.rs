//! What an upstream says about our rate: a response that means "slow down", and the wait when it names none.
//!
//! Pure: a response or a refusal and the time go in, a wait comes out. Any bytes may come in; none panics.

mod backoff;
mod retry_after;
#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};

pub use backoff::{Refusals, Schedule};

/// A hint longer than this is an epoch, milliseconds or garbage: no quota we know returns later than a month.
/// It is not believed, rather than shortened: a number read wrongly says nothing about the wait. No schedule
/// has longer delays either.
const LONGEST: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// An upstream that throttles us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The upstream's own word, kept whole, in whole microseconds, at most 31 days. Zero is a word too: "now".
    /// `None`: it gave none that can be read.
    pub wait: Option<Duration>,
}

/// Whether a response throttles us. 429 always does. 503 does with a `Retry-After` that can be read: without,
/// it says that something is broken, not that we are too fast.
///
/// `now` is when the response came, for upstreams whose `Date` cannot be read.
pub fn read(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Option<Signal> {
    match status {
        StatusCode::TOO_MANY_REQUESTS => Some(Signal { wait: retry_after::wait(headers, now) }),
        StatusCode::SERVICE_UNAVAILABLE => {
            retry_after::wait(headers, now).map(|wait| Signal { wait: Some(wait) })
        }
        _ => None,
    }
}
