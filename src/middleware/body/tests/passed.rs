//! Something of a response is lost or changed on the way.

use std::{error::Error, pin::Pin, time::Duration};

use http::{HeaderValue, Version};
use http_body::{Body as _, Frame};
use reqwest::{Body, Response};
use tokio::io::AsyncReadExt;

use super::{ALL, End, Ends, Keep, Wire, client};

#[derive(Clone, Debug, PartialEq)]
struct Mark(u32);

/// All that reqwest tells of a response without reading it.
fn head(response: &Response) -> String {
    format!(
        "{} {:?} {:?} {} {:?} {:?} {:?} {:?}",
        response.status(),
        response.version(),
        response.headers(),
        response.url(),
        response.content_length(),
        response.remote_addr(),
        response.extensions().get::<Mark>(),
        // It holds the reason, which is an extension.
        response.error_for_status_ref().map(drop),
    )
}

#[tokio::test]
async fn the_head_of_a_response_changes() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nx-two: 1\r\nx-two: 2\r\n\r\nbody",
        "HTTP/1.0 404 Nothing Of That Kind\r\n\r\nbody",
        "HTTP/1.1 503 Oops\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        let wire = Wire::send(answer).await;
        let request = client().get(format!("{}?page=2", wire.url));
        let mut response = request.send().await.expect("answered");
        response.extensions_mut().insert(Mark(7));
        let before = head(&response);
        let (mut response, _) = Ends::watch(response, ALL);
        assert_eq!(head(&response), before);
        assert!(before.contains("/things?page=2") && before.contains("127.0.0.1"), "{before}");
        // Twice is as good as once.
        response.extensions_mut().insert(Mark(8));
        response.headers_mut().insert("x-two", HeaderValue::from_static("3"));
        let before = head(&response);
        let (response, _) = Ends::watch(response, Keep::Nothing);
        assert_eq!(head(&response), before);
    }
}

#[tokio::test]
async fn a_version_or_an_address_is_made_up() {
    let (response, _) = Ends::watch(http::Response::new("body").into(), ALL);
    assert_eq!((response.version(), response.remote_addr()), (Version::HTTP_11, None));
    assert_eq!(response.content_length(), Some(4));
}

#[tokio::test]
async fn the_length_is_wrong_half_way() {
    let wire = Wire::stall("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n[1,").await;
    let (response, ends) = Ends::watch(wire.get().await, ALL);
    let mut body = Body::from(response);
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(7), false));
    frame(&mut body).await;
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(4), false));
    assert!(ends.is_open());

    let (response, _) = Ends::watch(http::Response::new("[1]").into(), Keep::Nothing);
    let mut body = Body::from(response);
    frame(&mut body).await;
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
}

#[tokio::test]
async fn trailers_are_lost() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-cost\r\n\r\n\
                  4\r\nbody\r\n0\r\nx-cost: 3\r\n\r\n";
    let (response, ends) = Ends::watch(Wire::stall(answer).await.get().await, ALL);
    let mut body = Body::from(response);
    assert_eq!(frame(&mut body).await.into_data().expect("data"), "body");
    assert!(ends.is_open());
    assert_eq!(frame(&mut body).await.into_trailers().expect("trailers")["x-cost"], "3");
    ends.check(End::Read, "body");
}

async fn frame(body: &mut Body) -> Frame<bytes::Bytes> {
    std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context))
        .await
        .expect("more")
        .expect("read")
}

#[tokio::test]
async fn an_upgrade_is_lost_or_holds_its_place() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello";
    let wire = Wire::stall(answer).await;
    let request = client().get(&wire.url).header("connection", "upgrade").header("upgrade", "echo");
    let (response, ends) = Ends::watch(request.send().await.expect("answered"), ALL);
    ends.check(End::Read, "");
    let mut socket = response.upgrade().await.expect("upgraded");
    let mut hello = [0; 5];
    socket.read_exact(&mut hello).await.expect("read");
    assert_eq!(&hello, b"hello");
    ends.check(End::Read, "");
}

#[tokio::test]
async fn the_cause_of_an_error_is_lost() {
    let causes = |error: &reqwest::Error| {
        let mut causes = Vec::new();
        let mut next = error.source();
        while let Some(error) = next {
            causes.push(error.to_string());
            next = error.source();
        }
        causes
    };
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n[1,";
    let bare = Wire::send(cut).await.get().await.bytes().await.expect_err("cut");
    let (response, _) = Ends::watch(Wire::send(cut).await.get().await, ALL);
    let watched = response.bytes().await.expect_err("cut");
    let (bare, watched) = (causes(&bare), causes(&watched));
    assert!(watched.ends_with(&bare), "{watched:?} {bare:?}");
    assert!(watched.len() - bare.len() <= 2, "{watched:?} {bare:?}");
}

#[tokio::test]
async fn a_large_body_changes() {
    let sent: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1048576\r\n\r\n".to_vec();
    answer.extend(&sent);
    let (response, ends) = Ends::watch(Wire::send(answer).await.get().await, Keep::Last(1000));
    let read = tokio::time::timeout(Duration::from_secs(30), response.bytes()).await;
    assert!(read.expect("in time").expect("read") == sent);
    let [ended] = &ends.all()[..] else { panic!("once") };
    assert!(ended.end == End::Read && ended.cut && sent.ends_with(&ended.kept));
    assert_eq!(ended.kept.len(), 1000);
}
