//! The referee: an HTTP server that keeps its own count and notes when each request arrived.

use std::{
    net::SocketAddr,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{LOCATION, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
    routing::get,
    serve::ListenerExt,
};
use tokio::{
    net::TcpSocket,
    runtime::{Builder, Runtime},
};

use crate::{
    Outcome,
    clock::{Clock, Nanos},
    rules::{Answer, Page, Rules},
};

/// A whole fleet connects at once. Of a shorter queue the rest would be dropped and try again a second later:
/// a burst that the limiter is not to blame for.
const BACKLOG: u32 = 4096;

/// A request, as the upstream saw it.
#[derive(Clone, Copy)]
pub struct Arrival {
    pub at: Nanos,
    /// Which replica it came from.
    pub pod: usize,
    pub page: Page,
    pub accepted: bool,
}

/// What the upstream has noted.
pub struct Log {
    /// In the order in which they were counted.
    pub arrivals: Vec<Arrival>,
    /// How many were answered with a redirect.
    pub redirects: usize,
    /// When it refused everything, if it was to.
    pub trip: Option<Range<Nanos>>,
}

/// Serves until dropped, on a thread of its own: what the parent draws must not delay an arrival.
pub struct Upstream {
    pub url: String,
    desk: Arc<Desk>,
    _runtime: Runtime,
}

struct Desk {
    clock: Clock,
    book: Mutex<Book>,
}

struct Book {
    rules: Rules,
    arrivals: Vec<Arrival>,
    accepted: usize,
    redirects: usize,
}

impl Upstream {
    pub fn start(rules: Rules) -> Outcome<Self> {
        let book = Mutex::new(Book { rules, arrivals: Vec::new(), accepted: 0, redirects: 0 });
        let desk = Arc::new(Desk { clock: Clock::new(), book });

        let runtime = Builder::new_multi_thread().worker_threads(1).event_interval(4).enable_all().build()?;
        let routes = Router::new().route("/hit", get(hit)).route("/landed", get(landed));
        let routes = routes.with_state(desk.clone());
        let listener = {
            let _inside = runtime.enter();
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
            socket.listen(BACKLOG)?
        };
        let url = format!("http://{}", listener.local_addr()?);
        let listener = listener.tap_io(|stream| {
            // Without it an answer is only slower.
            let _ = stream.set_nodelay(true);
        });
        runtime.spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { url, desk, _runtime: runtime })
    }

    /// How many were accepted so far, and how many refused.
    pub fn counts(&self) -> (usize, usize) {
        let book = self.desk.book();
        (book.accepted, book.arrivals.len() - book.accepted)
    }

    /// All of it, so far.
    pub fn log(&self) -> Log {
        let book = self.desk.book();
        Log { arrivals: book.arrivals.clone(), redirects: book.redirects, trip: book.rules.trip() }
    }
}

impl Desk {
    fn answer(&self, page: Page, headers: &HeaderMap) -> Response {
        let at = self.clock.now();
        let pod = headers.get("x-pod").and_then(|pod| pod.to_str().ok()?.parse().ok()).unwrap_or(usize::MAX);
        let answer = {
            let mut book = self.book();
            let answer = book.rules.answer(at, page);
            let accepted = !matches!(answer, Answer::Refused { .. });
            book.accepted += usize::from(accepted);
            book.redirects += usize::from(answer == Answer::Redirected);
            book.arrivals.push(Arrival { at, pod, page, accepted });
            answer
        };
        match answer {
            Answer::Accepted => "ok".into_response(),
            Answer::Redirected => {
                (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/landed")], "elsewhere").into_response()
            }
            Answer::Refused { retry_after } => {
                let seconds = retry_after.to_string();
                (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, seconds)], "too many").into_response()
            }
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hit(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    desk.answer(Page::Hit, &headers)
}

async fn landed(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    desk.answer(Page::Landed, &headers)
}
