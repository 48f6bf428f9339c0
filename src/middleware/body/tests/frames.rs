//! Bodies as they seldom are: with trailers, of unusual sizes, and with panics in them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use reqwest::{Body, Response};

use super::{ALL, End, Ends, Keep, watch};

/// A body of these parts, the last one first.
#[derive(Default)]
struct Parts {
    next: Vec<Part>,
    size: Option<u64>,
    held: Arc<()>,
}

enum Part {
    Frame(Frame<Bytes>),
    Panic,
}

impl http_body::Body for Parts {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        match self.next.pop() {
            Some(Part::Frame(frame)) => Poll::Ready(Some(Ok(frame))),
            Some(Part::Panic) => panic!("as it was told"),
            None => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.size.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Parts {
    fn of(next: impl Into<Vec<Part>>) -> Self {
        Self { next: next.into(), ..Self::default() }
    }

    fn response(self) -> Response {
        http::Response::new(Body::wrap(self)).into()
    }
}

fn data() -> Part {
    Part::Frame(Frame::data("body".into()))
}

fn poll(body: &mut Body) -> Poll<Option<reqwest::Result<Frame<Bytes>>>> {
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}

fn poll_panics(body: &mut Body) -> bool {
    catch_unwind(AssertUnwindSafe(|| drop(poll(body)))).is_err()
}

/// As reqwest's bodies are if it can decompress.
#[test]
fn an_empty_body_that_does_not_know_it_is_waited_for() {
    let empty = Parts { size: Some(0), ..Parts::default() };
    assert!(!empty.is_end_stream());
    let (response, ends) = Ends::watch(empty.response(), ALL);
    ends.check(End::Read, "");
    drop(response);
    ends.check(End::Read, "");
}

#[test]
fn who_stops_after_the_trailers_has_not_read_to_the_end() {
    let trailers = Frame::trailers([("x-cost".parse().unwrap(), "3".parse().unwrap())].into_iter().collect());
    let (response, ends) = Ends::watch(Parts::of([Part::Frame(trailers), data()]).response(), ALL);
    let mut body = Body::from(response);
    assert!(matches!(poll(&mut body), Poll::Ready(Some(Ok(frame))) if frame.is_data()));
    assert!(ends.is_open());
    let Poll::Ready(Some(Ok(frame))) = poll(&mut body) else { panic!("trailers") };
    assert_eq!(frame.into_trailers().expect("trailers")["x-cost"], "3");
    ends.check(End::Read, "body");
    drop(body);
    ends.check(End::Read, "body");
}

#[test]
fn a_connection_is_in_use_after_its_body_is_done() {
    let parts = Parts::default();
    let held = Arc::downgrade(&parts.held);
    let (told, telling) = (Arc::new(AtomicU32::new(0)), held.clone());
    let count = told.clone();
    let response = watch(parts.response(), Keep::Nothing, move |_| {
        assert_eq!(telling.strong_count(), 0);
        count.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(held.strong_count(), 1);
    drop(response);
    assert_eq!(told.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panic_in_a_poll_is_told_twice() {
    let (response, ends) = Ends::watch(Parts::of([Part::Panic, data()]).response(), ALL);
    let mut body = Body::from(response);
    assert!(!poll_panics(&mut body) && poll_panics(&mut body));
    assert!(ends.is_open());
    drop(body);
    ends.check(End::Dropped, "body");
}

#[test]
fn a_closure_that_panics_is_called_twice() {
    let told = Arc::new(AtomicU32::new(0));
    let count = told.clone();
    let response = watch(Parts::of([data()]).response(), ALL, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        panic!("against the rules");
    });
    let mut body = Body::from(response);
    assert!(!poll_panics(&mut body) && poll_panics(&mut body));
    drop(body);
    assert_eq!(told.load(Ordering::Relaxed), 1);
}
