//! What a call's answer says about what it has cost.

use http::{HeaderMap, StatusCode};

use super::{End, events, number};

/// An answer of an upstream, when its body has ended: what the call has really cost is in it.
///
/// Bytes are counted, and JSON is read, as reqwest passes them on: decompressed if it does that.
///
/// ```
/// use tollgate::{Answer, http::{HeaderMap, StatusCode}};
///
/// fn tokens(answer: &Answer<'_>) -> Option<u64> {
///     let pointer = "/usage/total_tokens";
///     answer.json_number(pointer).or_else(|| answer.event_number(pointer))
/// }
///
/// let headers = HeaderMap::new();
/// let whole = Answer::new(StatusCode::OK, &headers, br#"{"usage": {"total_tokens": 17}}"#);
/// assert_eq!(tokens(&whole), Some(17));
///
/// let stream = b"data: {\"text\": \"Hi\"}\n\ndata: {\"usage\": {\"total_tokens\": 9}}\n\ndata: [DONE]\n\n";
/// assert_eq!(tokens(&Answer::new(StatusCode::OK, &headers, stream)), Some(9));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    status: StatusCode,
    headers: &'a HeaderMap,
    tail: &'a [u8],
    /// There was more before it.
    cut: bool,
    /// There was no more after it.
    read: bool,
}

impl<'a> Answer<'a> {
    /// With a whole body: to test what looks for the cost.
    pub fn new(status: StatusCode, headers: &'a HeaderMap, body: &'a [u8]) -> Self {
        Self::seen(status, headers, End::Read, false, body)
    }

    pub(super) fn seen(
        status: StatusCode,
        headers: &'a HeaderMap,
        end: End,
        cut: bool,
        tail: &'a [u8],
    ) -> Self {
        Self { status, headers, tail, cut, read: end == End::Read }
    }

    /// Its status. Refusals and errors have bodies, too.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Its headers, as they came.
    pub fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// The whole body. `None`: it was longer than what is kept of it, or not read to its end.
    pub fn body(&self) -> Option<&'a [u8]> {
        (self.read && !self.cut).then_some(self.tail)
    }

    /// What is kept of the body: its end, or if it was not read to its end, the end of what was read. Empty if
    /// nothing is kept.
    pub fn tail(&self) -> &'a [u8] {
        self.tail
    }

    /// The number in a header, 0 to 2^64 - 1; a decimal number is rounded up. `None`: it is missing, or its first
    /// value is anything else, such as negative, `1e3` or `12 tokens`.
    ///
    /// ```
    /// # use tollgate::{Answer, http::{HeaderMap, HeaderValue, StatusCode}};
    /// let headers = HeaderMap::from_iter([("x-cost".parse()?, HeaderValue::from_static("2.5"))]);
    /// assert_eq!(Answer::new(StatusCode::OK, &headers, b"").header_number("X-Cost"), Some(3));
    /// # Ok::<(), tollgate::http::header::InvalidHeaderName>(())
    /// ```
    pub fn header_number(&self, name: &str) -> Option<u64> {
        number::of_text(self.headers.get(name)?.to_str().ok()?)
    }

    /// The number to which a JSON pointer leads in the whole body, such as `/usage/total_tokens` (RFC 6901: it
    /// begins with a slash, or is empty). 0 to 2^64 - 1; a decimal number is rounded up. A text that holds such a
    /// number, as in a header, counts too. `None`: there is none, the body is not JSON, or [`body`](Self::body)
    /// does not have it.
    pub fn json_number(&self, pointer: &str) -> Option<u64> {
        number::in_json(self.body()?, pointer)
    }

    /// The same in a stream of server-sent events: of the last event that has a number there. Of a stream that is
    /// not kept whole its end is looked through, and so is one that failed or that the reader did not read to its
    /// end. An event is JSON, in one line of `data` or several; those that are not, such as `[DONE]`, are passed
    /// over. `None`: none has it, or the one that has it is longer than what is kept.
    pub fn event_number(&self, pointer: &str) -> Option<u64> {
        events::data(self.tail, self.cut).iter().rev().find_map(|event| number::in_json(event, pointer))
    }
}
