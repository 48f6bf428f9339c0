//! An end is missed, told twice, or told before it has come.

use std::{mem, time::Duration};

use futures_util::StreamExt;
use http::Method;

use super::{ALL, End, Ends, Wire, client};

const SIZED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n[1,2,3]";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,\r\n4\r\n2,3]\r\n0\r\n\r\n";
const CLOSED: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[1,2,3]";

#[tokio::test]
async fn a_body_that_is_read_is_not_done_once() {
    for answer in [SIZED, CHUNKED, CLOSED] {
        for way in ["bytes", "text", "json", "chunk", "stream"] {
            let (mut response, ends) = Ends::watch(Wire::send(answer).await.get().await, ALL);
            assert!(ends.is_open(), "{way}");
            match way {
                "bytes" => assert_eq!(response.bytes().await.expect("read"), "[1,2,3]"),
                "text" => assert_eq!(response.text().await.expect("read"), "[1,2,3]"),
                "json" => assert_eq!(response.json::<Vec<u8>>().await.expect("read"), [1, 2, 3]),
                "chunk" => {
                    while response.chunk().await.expect("read").is_some() {}
                    ends.check(End::Read, "[1,2,3]");
                    assert_eq!(response.chunk().await.expect("still at its end"), None);
                }
                _ => {
                    let mut stream = response.bytes_stream();
                    while stream.next().await.is_some() {}
                }
            }
            ends.check(End::Read, "[1,2,3]");
        }
    }
}

#[tokio::test]
async fn the_last_byte_of_a_sized_body_is_not_its_end() {
    let (mut response, ends) = Ends::watch(Wire::stall(SIZED).await.get().await, ALL);
    let mut read = 0;
    while read < 7 {
        assert!(ends.is_open());
        read += response.chunk().await.expect("read").expect("not the end").len();
    }
    ends.check(End::Read, "[1,2,3]");
    drop(response);
    ends.check(End::Read, "[1,2,3]");
}

#[tokio::test]
async fn a_body_dropped_half_way_is_not_done() {
    let half = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,\r\n";
    let wire = Wire::stall(half).await;
    let (mut response, ends) = Ends::watch(wire.get().await, ALL);
    assert_eq!(response.chunk().await.expect("read").expect("half"), "[1,");
    // It is held, and not read.
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(ends.is_open());
    drop(response);
    ends.check(End::Dropped, "[1,");

    let wire = Wire::stall(half).await;
    let (response, ends) = Ends::watch(wire.get().await, ALL);
    let reading = tokio::time::timeout(Duration::from_millis(20), response.text()).await;
    assert!(reading.is_err(), "the rest never comes");
    ends.check(End::Dropped, "[1,");
}

#[tokio::test]
async fn a_response_dropped_unread_is_not_done() {
    let failing = "HTTP/1.1 500 Oops\r\ncontent-length: 3\r\n\r\nerr";
    let (response, ends) = Ends::watch(Wire::send(failing).await.get().await, ALL);
    assert!(response.error_for_status().is_err());
    ends.check(End::Dropped, "");

    // Where there is no runtime.
    let (response, ends) = Ends::watch(Wire::send(SIZED).await.get().await, ALL);
    std::thread::spawn(move || drop(response)).join().expect("no panic");
    ends.check(End::Dropped, "");

    let (response, ends) = Ends::watch(Wire::send(SIZED).await.get().await, ALL);
    let read = tokio::spawn(response.text()).await.expect("no panic").expect("read");
    ends.check(End::Read, &read);

    let (response, ends) = Ends::watch(Wire::send(SIZED).await.get().await, ALL);
    mem::forget(response);
    assert!(ends.is_open(), "what is leaked never ends");
}

#[tokio::test]
async fn a_connection_cut_in_mid_body_counts_as_its_end() {
    for cut in [&SIZED[..SIZED.len() - 4], &CHUNKED[..CHUNKED.len() - 11], &CHUNKED[..CHUNKED.len() - 5]] {
        let (mut response, ends) = Ends::watch(Wire::send(cut).await.get().await, ALL);
        let mut read = Vec::new();
        let error = loop {
            match response.chunk().await {
                Ok(chunk) => read.extend(chunk.expect("not the end")),
                Err(error) => break error,
            }
        };
        let read = String::from_utf8(read).expect("text");
        assert!(error.is_decode() && !error.is_timeout(), "{error:?}");
        ends.check(End::Failed, &read);
        assert!(read.starts_with("[1,"), "{read}");
        drop(response);
        ends.check(End::Failed, &read);
    }
}

#[tokio::test]
async fn a_timeout_in_mid_body_is_not_done_or_no_longer_one() {
    let wire = Wire::stall(&SIZED[..SIZED.len() - 4]).await;
    let request = client().get(&wire.url).timeout(Duration::from_millis(100));
    let (response, ends) = Ends::watch(request.send().await.expect("answered"), ALL);
    let error = response.bytes().await.expect_err("the rest never comes");
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(error.url().map(|url| url.path()), Some("/things"));
    ends.check(End::Failed, "[1,");
}

#[tokio::test]
async fn nothing_to_read_is_waited_for() {
    for (method, answer) in [
        (Method::HEAD, "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n"),
        (Method::HEAD, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
        (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n"),
        (Method::GET, "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n"),
        (Method::GET, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    ] {
        let wire = Wire::stall(answer).await;
        let response = client().request(method, &wire.url).send().await.expect("answered");
        let (response, ends) = Ends::watch(response, ALL);
        ends.check(End::Read, "");
        assert_eq!(response.text().await.expect("read"), "");
        ends.check(End::Read, "");
    }
}

#[tokio::test]
async fn an_empty_body_of_unknown_length_is_done_too_early() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    let (response, ends) = Ends::watch(Wire::send(answer).await.get().await, ALL);
    assert!(ends.is_open());
    assert_eq!(response.text().await.expect("read"), "");
    ends.check(End::Read, "");
}
