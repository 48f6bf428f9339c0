//! Redirects: each hop is a request of its own on the wire.
//!
//! reqwest asks its redirect policy, a plain function, whether to follow, and sends the next request when it is
//! polled again. So the policy notes where the hop would go, and whoever polls the request sees the note and
//! does not poll again before there is a permit for it. A hop that the policy then refuses ends the request in
//! the same poll, and is never charged.

use std::{cell::RefCell, future::poll_fn, pin::Pin, task::Poll};

use http::Extensions;
use reqwest::{
    Method, Response, StatusCode, Url,
    redirect::{Attempt, Policy},
};
use reqwest_middleware::Result;

use crate::tollgate::Tollgate;

thread_local! {
    /// The requests that are being polled on this thread right now, the innermost last: layers may nest.
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// A request while it is polled.
struct Frame {
    at: Spot,
    /// A hop that the policy was asked for.
    asked: Option<Hop>,
}

/// A call as one tollgate sees it. Layers hand on the same extensions; what a layer inside asks for on its own
/// account has others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    tollgate: usize,
    extensions: usize,
}

/// The next request of a redirect chain.
pub struct Hop {
    pub to: Url,
    /// To the host and port that the last one went to.
    pub stays: bool,
    /// Of the answer that leads there.
    status: StatusCode,
}

/// How far a request has come.
pub enum Step {
    /// It is over. `unsent`: since the last step nothing was put on the wire.
    Done { result: Result<Response>, unsent: bool },
    /// It will be sent on to here when it is polled again.
    Hop(Hop),
}

/// What reqwest-middleware makes of the layers inside and the client.
pub type Run<'a> = Pin<Box<dyn Future<Output = Result<Response>> + Send + 'a>>;

impl Spot {
    pub fn new(tollgate: &Tollgate, extensions: &Extensions) -> Self {
        Self { tollgate: tollgate.id(), extensions: std::ptr::from_ref(extensions).addr() }
    }

    /// Whether this very call is being polled inside this tollgate already.
    pub fn is_inside(self) -> bool {
        FRAMES.with_borrow(|frames| frames.iter().any(|frame| frame.at == self))
    }
}

/// Polls a request until it is over or about to follow a redirect.
pub async fn step(at: Spot, run: &mut Run<'_>) -> Step {
    let mut unsent = true;
    let mut noted: Option<Box<Hop>> = None;
    poll_fn(|context| {
        if let Some(hop) = noted.take() {
            return Poll::Ready(Step::Hop(*hop));
        }
        let inside = Inside::enter(at);
        let polled = run.as_mut().poll(context);
        match (polled, inside.leave()) {
            // What is answered was sent in an earlier poll: the network takes its time.
            (Poll::Ready(result), _) => Poll::Ready(Step::Done { result, unsent }),
            // A tollgate around this one has its own note of the hop, and sees it when this poll is over: not
            // before may the hop be sent.
            (Poll::Pending, Some(hop)) if is_nested() => {
                noted = Some(Box::new(hop));
                context.waker().wake_by_ref();
                Poll::Pending
            }
            (Poll::Pending, Some(hop)) => Poll::Ready(Step::Hop(hop)),
            (Poll::Pending, None) => {
                unsent = false;
                Poll::Pending
            }
        }
    })
    .await
}

/// Whether somebody polls whoever asks.
fn is_nested() -> bool {
    FRAMES.with_borrow(|frames| !frames.is_empty())
}

/// A frame is there for exactly one poll, also if that panics.
struct Inside;

impl Inside {
    fn enter(at: Spot) -> Self {
        FRAMES.with_borrow_mut(|frames| frames.push(Frame { at, asked: None }));
        Self
    }

    fn leave(self) -> Option<Hop> {
        std::mem::forget(self);
        FRAMES.with_borrow_mut(Vec::pop)?.asked
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        FRAMES.with_borrow_mut(Vec::pop);
    }
}

/// What `policy` decides, and a note of each hop for whoever polls the request.
pub fn noting(tollgate: &Tollgate, policy: Policy) -> Policy {
    let tollgate = tollgate.id();
    Policy::custom(move |attempt| {
        FRAMES.with_borrow_mut(|frames| {
            if let Some(frame) = frames.iter_mut().rfind(|frame| frame.at.tollgate == tollgate) {
                frame.asked = Some(Hop::of(&attempt));
            }
        });
        policy.redirect(attempt)
    })
}

impl Hop {
    fn of(attempt: &Attempt<'_>) -> Self {
        let place = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
        let stays = attempt.previous().last().is_some_and(|last| place(last) == place(attempt.url()));
        Self { to: attempt.url().clone(), stays, status: attempt.status() }
    }

    /// The last request may have been done: only 307 and 308 ask for the same elsewhere.
    pub fn is_done(&self) -> bool {
        ![StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT].contains(&self.status)
    }

    /// How reqwest goes on.
    pub fn method(&self, last: &Method) -> Method {
        match self.status {
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND if last == Method::POST => Method::GET,
            StatusCode::SEE_OTHER if last != Method::HEAD => Method::GET,
            _ => last.clone(),
        }
    }
}
