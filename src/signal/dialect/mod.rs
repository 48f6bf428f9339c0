//! How a provider says that it has had enough: data, not code.

mod check;
mod index;
mod named;
mod written;

use std::{collections::BTreeMap, str::FromStr, sync::Arc, time::Duration};

use http::StatusCode;
use serde::{Deserialize, Deserializer, de};

use self::{check::Window, written::Header};
pub use self::{
    index::Index,
    written::{Answer, Body, BodySays, HeaderSays, Lengths, Means, Verdict},
};
use crate::error::ConfigError;

/// What the answers of a provider mean: which of them refuse a request, which headers say for how long, and how
/// they write it.
///
/// A dialect is data. [`Dialect::named`] has those of well-known providers, and one can be written as JSON or in any
/// other format of serde; a key that does not exist is an error. The default, `generic`, is RFC 9110: a 429, or a 503
/// with a `Retry-After`.
///
/// ```
/// use tollgate::{Dialect, Provider};
///
/// let github = Dialect::named("github").expect("it is there");
/// let acme: Dialect = r#"{
///     "answers": [{ "status": [420], "means": "rate" }],
///     "headers": [
///         { "header": "x-quota-left", "means": "remaining" },
///         { "header": "x-quota-reset", "means": "reset", "form": "epoch_seconds" }
///     ],
///     "floor_s": 5,
///     "longest_sleep_s": 60
/// }"#.parse()?;
/// let provider = Provider::new("acme").dialect(acme);
/// # Ok::<(), tollgate::ConfigError>(())
/// ```
///
/// | key | meaning |
/// |---|---|
/// | `answers` | kinds of answers; the first that fits decides, after them 429, and 503 with a hint, are `rate` |
/// | `headers` | which header `means` what, in which `form`; of several waits the first that can be read counts |
/// | `windows` | what is documented about a window and not sent: its `limit`, and `per` as in a [`Limit`] |
/// | `lengths` | what a window's length says about its end: `nothing`, `bound` or `aligned` (to UTC) |
/// | `body` | where a body in JSON says how long to wait |
/// | `floor_s` | the wait of a refusal that names none, in seconds; default: a backoff |
/// | `longest_sleep_s` | who is told to wait longer, in seconds, gets the refusal at once; default: no such bound |
/// | `source`, `checked`, `note` | for people |
///
/// An entry of `answers` has `status` (a list) and `means`: `rate` (too fast, sent again after the pause), `quota` (used
/// up or vetoed: given back at once) or `other` (no matter of rates). It fits if all that it names holds: `hinted` (a wait
/// can be read), `empty` (a window has nothing left), `header` (`name`, and `is` or `contains`, lists of texts), `body`
/// (the same with `at`, pointers into JSON in which `*` is every member). `window` says which of `windows` is empty then,
/// `ban` that none of them has to do with it.
///
/// An entry of `headers` has the name as `header`, with one `*` at most, which names the window; or that has its name
/// from `window`. What has a time has a `form`. It `means`
///
/// | `means` | example |
/// |---|---|
/// | `wait` | `Retry-After: 30`; three spellings of it are known to every dialect |
/// | `waits` | `60:transaction:key, 2700:error:organization`: the longest |
/// | `limit`, `remaining`, `used` | `100`, `594.0`, `100;w=60, 1000;w=3600`; `200,2000` with `windows`, a list |
/// | `reset`, `length` | when the window begins anew, how long it is |
/// | `name` | what the window is called |
/// | `rate` | requests a second |
/// | `used_of_limit` | `32/40`, `api-usage=25/5000; other=17/250` |
/// | `limit_per_length`, `used_per_length` | `20:1,100:120`, in seconds |
/// | `pairs` | `b=per_hour;q=10;r=7;t=3540`, `total=100; remaining=99; resets=41` |
/// | `rate_limit`, `rate_limit_policy` | the fields of the IETF, drafts 7 to 11 |
/// | `usage_percent` | `{"call_count":28,"total_time":25}` |
///
/// and a `form` is `seconds`, `milliseconds`, `minutes`, `epoch_seconds`, `epoch_milliseconds` (all with fractions),
/// `duration` (`6m0s`), `date_time` (RFC 3339, also without seconds), `http_date`, `seconds_or_date`, or, if none is
/// given, `auto`: any of them, numbers by their magnitude.
///
/// `body` has `waits` (a list of `at`, `form`, and perhaps `after`, the words before the number) and `bucket` (pointers to
/// `limit`, `remaining`, `per_second` and `cost`).
///
/// The files of the presets, in `src/signal/dialects`, are the best examples.
///
/// [`Limit`]: crate::Limit
#[derive(Clone, Debug)]
pub struct Dialect(Arc<Rules>);

/// The same, checked and ready for use.
#[derive(Debug)]
pub struct Rules {
    pub answers: Vec<Answer>,
    /// A bit for each status that one of them is about, without and with a body.
    statuses: [[u64; 16]; 2],
    pub headers: Vec<Header>,
    pub index: Index,
    pub windows: BTreeMap<String, Window>,
    pub lengths: Lengths,
    pub body: Body,
    pub floor: Option<Duration>,
    longest_sleep: Option<Duration>,
}

impl Rules {
    /// Whether an answer of this status may be one of `answers`. Most successes cannot.
    pub fn judges(&self, status: StatusCode, has_body: bool) -> bool {
        let status = usize::from(status.as_u16());
        self.statuses[usize::from(has_body)][status / 64] & 1 << (status % 64) != 0
    }
}

impl Dialect {
    /// A preset, by its name in any case: `github`, `openai`, `shopify_rest`; `-` and `_` are the same.
    /// [`Dialect::names`] lists them.
    pub fn named(name: &str) -> Option<Self> {
        named::find(name)
    }

    /// The names of all presets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        named::names()
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.0
    }

    /// Who is told to wait longer than this gets the refusal at once; the pause holds for everybody all the same.
    pub fn longest_sleep(&self) -> Option<Duration> {
        self.0.longest_sleep
    }

    /// Whether an answer of this status can only be judged by its body.
    pub fn asks_for_body(&self, status: u16) -> bool {
        let Body { waits, bucket } = &self.0.body;
        let of_status = |answer: &&Answer| answer.status.contains(&status);
        let mut answers = self.0.answers.iter().filter(of_status);
        let named = answers.clone().next().is_some();
        named && (!waits.is_empty() || bucket.is_some()) || answers.any(|answer| answer.body.is_some())
    }
}

/// `generic`.
impl Default for Dialect {
    fn default() -> Self {
        named::generic()
    }
}

/// From JSON.
impl FromStr for Dialect {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        serde_json::from_str(text).map_err(|error| ConfigError(format!("a dialect cannot be read: {error}")))
    }
}

impl<'de> Deserialize<'de> for Dialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = written::Written::deserialize(deserializer)?;
        check::rules(written).map(|rules| Self(Arc::new(rules))).map_err(de::Error::custom)
    }
}
