//! The referee: an HTTP server that keeps its own count and notes when each request arrived.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
    routing::get,
    serve::ListenerExt,
};
use tokio::{
    net::TcpSocket,
    runtime::{Builder, Runtime},
};
use tollgate::Limit;

use crate::{
    Outcome,
    clock::{Clock, Nanos},
    quota::{Quota, UpstreamKind},
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
    pub accepted: bool,
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
    quota: Quota,
    arrivals: Vec<Arrival>,
    accepted: usize,
}

impl Upstream {
    pub fn start(kind: UpstreamKind, limits: &[Limit]) -> Outcome<Self> {
        let book = Mutex::new(Book { quota: Quota::new(kind, limits), arrivals: Vec::new(), accepted: 0 });
        let desk = Arc::new(Desk { clock: Clock::new(), book });

        let runtime = Builder::new_multi_thread().worker_threads(1).event_interval(4).enable_all().build()?;
        let routes = Router::new().route("/hit", get(hit)).with_state(desk.clone());
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

    /// All of them, in the order in which they were counted.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.desk.book().arrivals.clone()
    }
}

impl Desk {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn hit(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    let at = desk.clock.now();
    let pod = headers.get("x-pod").and_then(|pod| pod.to_str().ok()?.parse().ok()).unwrap_or(usize::MAX);
    let verdict = {
        let mut book = desk.book();
        let verdict = book.quota.arrive(at);
        book.accepted += usize::from(verdict.is_ok());
        book.arrivals.push(Arrival { at, pod, accepted: verdict.is_ok() });
        verdict
    };
    match verdict {
        Ok(()) => "ok".into_response(),
        Err(wait) => {
            let seconds = wait.div_ceil(1_000_000_000).max(1).to_string();
            (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, seconds)], "too many").into_response()
        }
    }
}
