//! The referee: an HTTP server that keeps its own count and notes when each request arrived.

use std::{
    error::Error,
    net::SocketAddr,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::State,
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{LOCATION, RETRY_AFTER},
    },
    response::{IntoResponse, Response},
    routing::get,
    serve::ListenerExt,
};
use tokio::{
    net::TcpSocket,
    runtime::{Builder, Runtime},
    time::sleep,
};

use crate::{
    Outcome,
    clock::{Clock, Nanos},
    flights::InFlight,
    place::Place,
    price::{self, Price},
    quota::Which,
    rules::{Answer, Page, Rules},
};

/// A whole fleet connects at once. Of a shorter queue the rest would be dropped and try again a second later:
/// a burst that the limiter is not to blame for.
const BACKLOG: u32 = 4096;

/// A request, as the upstream saw it.
#[derive(Clone)]
pub struct Arrival {
    pub at: Nanos,
    /// Which replica it came from.
    pub pod: usize,
    pub page: Page,
    pub price: Price,
    pub accepted: bool,
    /// The limits that refused it.
    pub by: Which,
}

/// What the upstream has noted.
pub struct Log {
    /// In the order in which they were counted.
    pub arrivals: Vec<Arrival>,
    /// How many were answered with a redirect.
    pub redirects: usize,
    /// When it refused everything, if it was to.
    pub trip: Option<Range<Nanos>>,
    /// If it counts them.
    pub in_flight: Option<InFlight>,
}

/// Serves until dropped, on a thread of its own: what the parent draws must not delay an arrival.
pub struct Upstream {
    pub url: String,
    desk: Arc<Desk>,
    _runtime: Runtime,
}

pub struct Desk {
    clock: Clock,
    /// What requests may take, and the headers in which they tell how much.
    units: Vec<(String, HeaderName)>,
    call_time: Duration,
    book: Mutex<Book>,
}

struct Book {
    rules: Rules,
    arrivals: Vec<Arrival>,
    accepted: usize,
    redirects: usize,
}

impl Upstream {
    /// `units`: those that requests name. `call_time`: so long it takes to answer what it accepts.
    pub fn start<'a>(
        rules: Rules,
        units: impl Iterator<Item = &'a str>,
        call_time: Duration,
    ) -> Outcome<Self> {
        let named = |unit: &str| Ok::<_, Box<dyn Error>>((unit.to_owned(), price::header(unit).parse()?));
        let units = units.map(named).collect::<Outcome<_>>()?;
        let book = Mutex::new(Book { rules, arrivals: Vec::new(), accepted: 0, redirects: 0 });
        let desk = Arc::new(Desk { clock: Clock::new(), units, call_time, book });

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
        Log {
            arrivals: book.arrivals.clone(),
            redirects: book.redirects,
            trip: book.rules.trip(),
            in_flight: book.rules.in_flight(),
        }
    }
}

impl Desk {
    /// Counts a request, at once. What has a place holds it as long as it holds what is returned.
    fn arrive(self: &Arc<Self>, page: Page, headers: &HeaderMap) -> (Answer, Option<Place>) {
        let at = self.clock.now();
        let pod = headers.get("x-pod").and_then(number).map_or(usize::MAX, |pod| pod as usize);
        // A redirect is one more request, and the library takes it for no more than that.
        let told = self.units.iter().filter(|_| page == Page::Hit);
        let price = told.filter_map(|(unit, name)| Some((unit.clone(), number(headers.get(name)?)?)));
        let price = Price(price.collect());
        let mut book = self.book();
        let answer = book.rules.answer(at, page, &price);
        let (accepted, by) = match answer {
            Answer::Refused { by, .. } => (false, by),
            _ => (true, Which::default()),
        };
        book.accepted += usize::from(accepted);
        book.redirects += usize::from(answer == Answer::Redirected);
        book.arrivals.push(Arrival { at, pod, page, price, accepted, by });
        let placed = accepted && book.rules.in_flight().is_some();
        (answer, placed.then(|| Place::new(self.clone())))
    }

    /// An answer has ended.
    pub fn leave(&self) {
        let mut book = self.book();
        book.rules.end(self.clock.now());
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(value: &HeaderValue) -> Option<u64> {
    value.to_str().ok()?.parse().ok()
}

async fn serve(desk: Arc<Desk>, page: Page, headers: HeaderMap) -> Response {
    let (answer, place) = desk.arrive(page, &headers);
    let text = match answer {
        Answer::Accepted => "ok",
        Answer::Redirected => "elsewhere",
        Answer::Refused { retry_after, .. } => {
            let seconds = [(RETRY_AFTER, retry_after.to_string())];
            return (StatusCode::TOO_MANY_REQUESTS, seconds, "too many").into_response();
        }
    };
    if !desk.call_time.is_zero() {
        sleep(desk.call_time).await;
    }
    let mut response = match place {
        Some(place) => place.body(text).into_response(),
        None => text.into_response(),
    };
    if answer == Answer::Redirected {
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        response.headers_mut().insert(LOCATION, HeaderValue::from_static("/landed"));
    }
    // What the request took, also in the answer of the page that a redirect has led to.
    for (_, name) in &desk.units {
        response.headers_mut().extend(headers.get(name).map(|amount| (name.clone(), amount.clone())));
    }
    response
}

async fn hit(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    serve(desk, Page::Hit, headers).await
}

async fn landed(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Response {
    serve(desk, Page::Landed, headers).await
}
