//! An event is misread, or half of one passes for a whole one.

use http::{HeaderMap, StatusCode};

use super::{
    super::Answer,
    End,
    costs::{TOTAL, event},
};

#[test]
fn an_event_is_misread() {
    for (stream, expected) in [
        ("data: {\"n\": 1}\n\n", Some(1)),
        ("data:{\"n\": 1}\r\n\r\n", Some(1)),
        ("data: {\"n\": 1}\r\r", Some(1)),
        ("\u{feff}data: {\"n\": 1}\n\n", Some(1)),
        // The last one, though it is not the last event, or not ended.
        ("data: {\"n\": 1}\n\ndata: {\"n\": 2}\n\ndata: [DONE]\n\n", Some(2)),
        ("data: {\"n\": 1}\n\ndata: {\"n\": null}\n\n: a comment\n\ndata: {\"m\": 3}\n\n", Some(1)),
        ("data: {\"n\": 1}\n\ndata: {\"n\": 2}", Some(2)),
        ("data: {\"n\": 1}\n\ndata: {\"n\": 2", Some(1)),
        // Several lines, with other fields between.
        ("event: done\ndata: {\"n\":\nid: 5\ndata: 4}\n\n", Some(4)),
        ("data: {\"n\":\ndata\ndata:\ndata: 4}\n\n", Some(4)),
        // A newline stands where the lines were joined.
        ("data: {\"n\": 1\ndata: 2}\n\n", None),
        // No data at all.
        ("{\"n\": 1}\n\n", None),
        ("datum: {\"n\": 1}\n\n", None),
        ("dat: {\"n\": 1}\n\n", None),
        (" data: {\"n\": 1}\n\n", None),
        (":data: {\"n\": 1}\n\n", None),
        ("", None),
    ] {
        assert_eq!(event(stream, "/n"), expected, "{stream:?}");
    }
    assert_eq!(event("data: 12\n\n", ""), Some(12));
    assert_eq!(event("data: 12", ""), None, "perhaps half of 123");
}

/// As several providers stream: with usage in the last event, and null or other usage before.
fn stream(newline: &str) -> String {
    let events = [
        r#"event: start\data: {"usage": null, "text": "data: {\"usage\": {\"total_tokens\": 1}}"}"#,
        r#"data: {"usage": {"total_tokens": 5}}"#,
        r#": still there"#,
        r#"id: 7\data: {"text": "x",\data: "usage":\data: {"total_tokens": 42}}"#,
        r#"data: [DONE]"#,
    ];
    let lines = |event: &str| event.replace("\\data", &format!("{newline}data"));
    events.iter().map(|event| lines(event) + newline + newline).collect()
}

#[test]
fn a_cut_stream_has_another_cost() {
    for newline in ["\n", "\r\n", "\r"] {
        let stream = stream(newline);
        let last = stream.find("data: {\"text\": \"x\"").expect("the event with the cost");
        for at in 0..=stream.len() {
            let cut = &stream.as_bytes()[at..];
            let headers = HeaderMap::new();
            let found = Answer::seen(StatusCode::OK, &headers, End::Dropped, true, cut).event_number(TOTAL);
            assert_eq!(found, (at < last).then_some(42), "{:?}", &stream[at..]);
            // Cut at its other end it never has a cost that was not sent.
            let begun = event(&stream[..at], TOTAL);
            assert!([None, Some(5), Some(42)].contains(&begun), "{:?}", &stream[..at]);
        }
    }
}
