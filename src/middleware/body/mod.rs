//! The end of a response's body: what a call really took is known then, and its place is free again.

mod answer;
mod events;
mod number;
mod tail;
#[cfg(test)]
mod tests;
mod watched;

use std::mem;

use http::{HeaderMap, StatusCode, response::Builder};
use reqwest::{Body, Response, ResponseBuilderExt};

pub use self::answer::Answer;
use self::{tail::Tail, watched::Watched};

/// How much of a body is remembered until its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Nothing,
    /// So many bytes at most: all of a body that is no longer, else its last ones. What a stream has cost stands
    /// in its last event.
    Last(usize),
}

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was read to its end, or had nothing in it to be read.
    Read,
    /// The connection was cut, a timeout was over, or what came could not be decoded.
    Failed,
    /// Nobody wanted the rest, if there was one: who reads events often stops at one that says so, or with the
    /// last byte of a body whose length is not known. What was kept may well hold the cost.
    Dropped,
}

/// What was seen of a body.
#[derive(Debug)]
pub(crate) struct Seen {
    pub end: End,
    pub body: Tail,
}

impl Seen {
    /// The same for who looks for a cost. The status and the headers went to the reader with the response.
    pub fn answer<'a>(&'a mut self, status: StatusCode, headers: &'a HeaderMap) -> Answer<'a> {
        let (end, cut) = (self.end, self.body.is_cut());
        Answer::seen(status, headers, end, cut, self.body.join())
    }
}

/// Tells `done`, once, how the response's body ended: read, failed, or dropped, be it with the whole response. If
/// nothing is left in it (an answer to HEAD, 204, an upgrade) that is now, within this call: who knows it reads
/// nothing. (Of what reqwest would decompress, such as a HEAD's answer with `content-encoding: gzip`, nobody knows.)
/// A body that is held and not read has not ended, and one that is leaked never does.
///
/// The reader gets the body as it comes, trailers included, and the response with all that it had: the address,
/// the extensions, an upgrade. Only an error in the body has two more sources, `request or response body error`,
/// above those that it had.
///
/// `done` runs where the body ends: within a poll or a drop, holding no lock of ours, perhaps outside of a
/// runtime and while a panic unwinds. It must be short, and must not panic: in a drop that aborts the process.
pub(crate) fn watch(response: Response, keep: Keep, done: impl FnOnce(Seen) + Send + 'static) -> Response {
    let url = response.url().clone();
    let (mut head, body) = http::Response::<Body>::from(response).into_parts();
    // The URL travels in an extension that only this builder can make.
    if let Some(url) = Builder::new().url(url).extensions_mut() {
        head.extensions.extend(mem::take(url));
    }
    let body = Body::wrap(Watched::new(body, keep, done));
    http::Response::from_parts(head, body).into()
}
