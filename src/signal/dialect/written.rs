//! A dialect as it stands in a file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::signal::form::Form;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// For people: where this is documented, when that was read, and what one should know.
    #[serde(default, rename = "source")]
    pub _source: Vec<String>,
    #[serde(default, rename = "checked")]
    pub _checked: Option<String>,
    #[serde(default, rename = "note")]
    pub _note: Option<String>,
    #[serde(default)]
    pub answers: Vec<Answer>,
    #[serde(default)]
    pub headers: Vec<Header>,
    #[serde(default)]
    pub windows: BTreeMap<String, Facts>,
    #[serde(default)]
    pub lengths: Lengths,
    #[serde(default)]
    pub body: Body,
    #[serde(default)]
    pub floor_s: Option<u32>,
    #[serde(default)]
    pub longest_sleep_s: Option<u32>,
}

/// What kind of answer it is, if all that is said here holds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub status: Vec<u16>,
    pub means: Verdict,
    /// Only with a hint that can be read and believed.
    #[serde(default)]
    pub hinted: bool,
    /// Only if a window has nothing left.
    #[serde(default)]
    pub empty: bool,
    #[serde(default)]
    pub header: Option<HeaderSays>,
    #[serde(default)]
    pub body: Option<BodySays>,
    /// The window among `windows` that is empty then, whatever else is said.
    #[serde(default)]
    pub window: Option<String>,
    /// A ban: it has nothing to do with what is left of the windows.
    #[serde(default)]
    pub ban: bool,
}

/// What an answer says about its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Not refused for its rate, whatever follows.
    #[default]
    Other,
    /// Too fast.
    Rate,
    /// Used up, or vetoed: no short retry helps.
    Quota,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderSays {
    pub name: String,
    #[serde(default)]
    pub is: Vec<String>,
    #[serde(default)]
    pub contains: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodySays {
    /// JSON pointers; `*` stands for every member. None: the body as text.
    #[serde(default)]
    pub at: Vec<String>,
    #[serde(default)]
    pub is: Vec<String>,
    #[serde(default)]
    pub contains: Vec<String>,
}

/// A header, or several of one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// One `*` at most; what it stands for names the window.
    pub header: String,
    pub means: Means,
    /// Of what means a time.
    #[serde(default)]
    pub form: Form,
    #[serde(default)]
    pub window: Option<String>,
    /// The windows of a list whose order the provider promises.
    #[serde(default)]
    pub windows: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// How long to wait.
    Wait,
    /// How many are granted in a window.
    Limit,
    /// How many are left.
    Remaining,
    /// How many are used.
    Used,
    /// When the window begins anew.
    Reset,
    /// How long the window is.
    Length,
    /// What the window is called.
    Name,
    /// Requests a second.
    Rate,
    /// `32/40`, `api-usage=25/5000; other=17/250(..)`
    UsedOfLimit,
    /// `20:1,100:120`: a limit and the seconds of its window.
    LimitPerLength,
    /// The same of what is used.
    UsedPerLength,
    /// `b=per_hour;q=10;r=7;t=3540`, `total=100; remaining=99; resets=41`
    Pairs,
    /// `RateLimit` of the drafts 7 to 11.
    RateLimit,
    /// `RateLimit-Policy` beside it.
    RateLimitPolicy,
    /// JSON with percentages: `{"call_count":28,"total_time":25}`
    UsagePercent,
    /// `60:transaction:key, 2700:default;error:organization`: waits in seconds for kinds of calls.
    Waits,
}

/// What a provider documents about a window, and does not send.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Where no answer tells it.
    #[serde(default)]
    pub limit: Option<u32>,
    /// As in a limit: `day resets 00:00 America/Los_Angeles`, `15min aligned`.
    #[serde(default)]
    pub per: Option<String>,
}

/// What the length of a window says about its end, where that is not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// Nothing that one should wait for.
    #[default]
    Nothing,
    /// An empty window has room after so long at the latest.
    Bound,
    /// Windows end at whole multiples of it, by UTC.
    Aligned,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    #[serde(default)]
    pub waits: Vec<BodyWait>,
    #[serde(default)]
    pub bucket: Option<Bucket>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyWait {
    pub at: String,
    #[serde(default)]
    pub form: Form,
    /// The number that follows this in a text.
    #[serde(default)]
    pub after: Option<String>,
}

/// Pointers to what a body tells about a bucket that refills steadily.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    pub limit: String,
    pub remaining: String,
    pub per_second: String,
    /// What the refused request would have taken.
    pub cost: String,
}
