//! A body around a body.

use std::{
    mem,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use reqwest::Body;

use super::{End, Keep, Seen, Tail};

type Next<T> = Poll<Option<Result<T, reqwest::Error>>>;

/// Passes everything on, and remembers some of it.
pub struct Watched<F: FnOnce(Seen)> {
    /// Dropped first: when a dropped body is reported its connection is no longer in use.
    body: Body,
    ending: Ending<F>,
}

/// Tells how it ended, when that is clear and at the latest when it is dropped.
struct Ending<F: FnOnce(Seen)> {
    tail: Tail,
    /// Never locked: reqwest wants bodies that are `Sync`, which a closure need not be.
    done: Mutex<Option<F>>,
}

impl<F: FnOnce(Seen)> Watched<F> {
    pub fn new(body: Body, keep: Keep, done: F) -> Self {
        let tail = Tail::new(keep);
        let mut watched = Self { body, ending: Ending { tail, done: Mutex::new(Some(done)) } };
        if watched.is_over() {
            watched.ending.tell(End::Read);
        }
        watched
    }

    /// Whether nothing more will be read. A body that reqwest may have to decompress does not say that it is
    /// at its end, but how much is left.
    fn is_over(&self) -> bool {
        self.body.is_end_stream() || self.body.size_hint().exact() == Some(0)
    }
}

impl<F: FnOnce(Seen)> Ending<F> {
    fn tell(&mut self, end: End) {
        // Taken before it is called: whatever panics, it is not called again.
        if let Some(done) = self.done.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            done(Seen { end, body: mem::take(&mut self.tail) });
        }
    }
}

impl<F: FnOnce(Seen)> Drop for Ending<F> {
    fn drop(&mut self) {
        self.tell(End::Dropped);
    }
}

/// Nothing in it is polled in place: its body is boxed, and its closure is moved out to be called.
impl<F: FnOnce(Seen)> Unpin for Watched<F> {}

impl<F: FnOnce(Seen) + Send + 'static> http_body::Body for Watched<F> {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Next<Frame<Bytes>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &next {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.ending.tail.push(data);
                }
                // Who has all that was promised asks for no more. After trailers there is no more.
                if frame.is_trailers() || self.is_over() {
                    self.ending.tell(End::Read);
                }
            }
            Some(Err(_)) => self.ending.tell(End::Failed),
            None => self.ending.tell(End::Read),
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
