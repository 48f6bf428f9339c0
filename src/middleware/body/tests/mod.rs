//! Ends that are missed or told twice, bodies that change on the way, and costs that are misread.

mod costs;
mod ends;
mod events;
mod frames;
mod kept;
mod passed;

use std::sync::{Arc, Mutex};

use http::{HeaderMap, StatusCode};
use reqwest::{Client, Response};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};

use super::{End, Keep, Seen, watch};

const ALL: Keep = Keep::Last(1 << 20);

/// An upstream that answers one request, whatever it is, with these bytes.
struct Wire {
    url: String,
    task: JoinHandle<()>,
}

impl Wire {
    /// Closes the connection after the last byte.
    async fn send(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(answer.into(), false).await
    }

    /// Says no more after the last byte, but leaves the connection open.
    async fn stall(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(answer.into(), true).await
    }

    async fn start(answer: Vec<u8>, stalls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/things", listener.local_addr().expect("an address"));
        let task = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                assert_ne!(socket.read_buf(&mut request).await.expect("a request"), 0);
            }
            socket.write_all(&answer).await.expect("sent");
            if stalls {
                std::future::pending::<()>().await;
            }
        });
        Self { url, task }
    }

    async fn get(&self) -> Response {
        client().get(&self.url).send().await.expect("answered")
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn client() -> Client {
    Client::builder().no_proxy().build().expect("a client")
}

/// How a body ended, and what was kept of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ended {
    end: End,
    kept: Vec<u8>,
    cut: bool,
}

/// Of one body. More than one is a fault.
#[derive(Clone, Default)]
struct Ends(Arc<Mutex<Vec<Ended>>>);

impl Ends {
    fn watch(response: Response, keep: Keep) -> (Response, Self) {
        let ends = Self::default();
        let told = ends.clone();
        let response =
            watch(response, keep, move |mut seen| told.0.lock().expect("no panic").push(ended(&mut seen)));
        (response, ends)
    }

    fn all(&self) -> Vec<Ended> {
        self.0.lock().expect("no panic").clone()
    }

    fn is_open(&self) -> bool {
        self.all().is_empty()
    }

    #[track_caller]
    fn check(&self, end: End, kept: &str) {
        assert_eq!(self.all(), [Ended { end, kept: kept.into(), cut: false }]);
    }
}

fn ended(seen: &mut Seen) -> Ended {
    let (end, headers) = (seen.end, HeaderMap::new());
    let answer = seen.answer(StatusCode::OK, &headers);
    // A body is whole if it was read to its end and not cut at its beginning.
    let cut = answer.body().is_none() && end == End::Read;
    Ended { end, kept: answer.tail().to_vec(), cut }
}
