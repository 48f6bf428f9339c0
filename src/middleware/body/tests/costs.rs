//! A cost is misread, or made of garbage.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::{collection::vec, prelude::*};

use super::{super::Answer, End};

pub const TOTAL: &str = "/usage/total_tokens";

fn json(body: &str, pointer: &str) -> Option<u64> {
    Answer::new(StatusCode::OK, &HeaderMap::new(), body.as_bytes()).json_number(pointer)
}

pub fn event(stream: &str, pointer: &str) -> Option<u64> {
    Answer::new(StatusCode::OK, &HeaderMap::new(), stream.as_bytes()).event_number(pointer)
}

#[test]
fn a_number_is_rounded_down_or_garbage_is_believed() {
    for (text, expected) in [
        ("0", Some(0)),
        ("17", Some(17)),
        ("017", Some(17)),
        (" 17\t", Some(17)),
        ("17.0", Some(17)),
        ("17.01", Some(18)),
        ("0.0000000000000000000000000001", Some(1)),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551615.1", None),
        ("18446744073709551616", None),
        ("", None),
        (".", None),
        (".5", None),
        ("5.", None),
        ("1.2.3", None),
        ("-1", None),
        ("-0.5", None),
        ("+1", None),
        ("1e3", None),
        ("1_000", None),
        ("1,000", None),
        ("NaN", None),
        ("inf", None),
        ("0x10", None),
        ("12 tokens", None),
        ("1\u{0661}", None),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("x-cost", HeaderValue::from_bytes(text.as_bytes()).expect("a value"));
        let answer = Answer::new(StatusCode::OK, &headers, b"");
        assert_eq!(answer.header_number("X-Cost"), expected, "{text}");
        assert_eq!(answer.header_number("x-other"), None);
        assert_eq!(answer.header_number("not a name"), None);
        // As text in JSON it is the same.
        assert_eq!(
            json(&format!(r#"{{"usage": "{text}"}}"#).replace('\t', " "), "/usage"),
            expected,
            "{text}"
        );
    }
    let name = HeaderName::from_static("x-cost");
    let twice = [(name.clone(), HeaderValue::from_static("1")), (name, HeaderValue::from_static("2"))];
    let headers = twice.into_iter().collect();
    assert_eq!(Answer::new(StatusCode::OK, &headers, b"").header_number("x-cost"), Some(1));
}

#[test]
fn a_number_in_json_is_misread() {
    for (number, expected) in [
        ("17", Some(17)),
        ("17.0", Some(17)),
        ("17.01", Some(18)),
        ("1.5e3", Some(1500)),
        ("1e-9", Some(1)),
        ("0", Some(0)),
        ("-0.0", Some(0)),
        ("-1", None),
        ("-0.5", None),
        ("18446744073709551615", Some(u64::MAX)),
        ("18446744073709551616", None),
        ("1e400", None),
        ("null", None),
        ("true", None),
        ("[17]", None),
        (r#"{"total": 17}"#, None),
    ] {
        let body = format!(r#"{{"id": 3, "usage": {{"total_tokens": {number}}}}}"#);
        assert_eq!(json(&body, TOTAL), expected, "{number}");
        assert_eq!(event(&format!("data: {body}\n\n"), TOTAL), expected, "{number}");
        assert_eq!(json(&body, "/id"), Some(3).filter(|_| number != "1e400"));
        for pointer in
            ["", "/", "usage", "usage.total_tokens", "$.usage", "/usage/total", "/usage/total_tokens/"]
        {
            assert_eq!(json(&body, pointer), None, "{number} {pointer}");
        }
    }
    assert_eq!(json(r#"{"a/b": {"~": [1, 2, 3]}}"#, "/a~1b/~0/2"), Some(3));
    assert_eq!(json("17", ""), Some(17));
    for broken in ["", "{", r#"{"usage": {"total_tokens": 17}"#, r#"{"usage": {"total_tokens": 17}} x"#] {
        assert_eq!(json(broken, TOTAL), None, "{broken}");
    }
    assert_eq!(json(&"[".repeat(1 << 20), TOTAL), None);
}

#[test]
fn half_a_body_passes_for_a_whole_one() {
    let headers = HeaderMap::new();
    let body = br#"{"usage": {"total_tokens": 17}}"#;
    for (end, cut) in [(End::Failed, false), (End::Dropped, false), (End::Read, true)] {
        let answer = Answer::seen(StatusCode::OK, &headers, end, cut, body);
        assert_eq!((answer.body(), answer.json_number(TOTAL)), (None, None));
        assert_eq!(answer.tail(), body);
    }
}

proptest! {
    #[test]
    fn some_bytes_make_it_panic(
        bytes in vec(any::<u8>(), 0..200),
        pieces in vec(prop_oneof!["data: ?", "[\r\n]{1,3}", ":", "[{}\\[\\]\",]", "\"n\": ?", "[0-9.eE-]{1,25}", ".{0,5}"], 0..20),
        pointer in prop_oneof!["/n", "(/[~0-9n-]{0,3}){0,3}", ".{0,5}"],
        cut: bool,
    ) {
        for body in [bytes, pieces.concat().into_bytes()] {
            let mut headers = HeaderMap::new();
            if let Ok(value) = HeaderValue::from_bytes(&body) {
                headers.insert("x-cost", value);
            }
            for end in [End::Read, End::Failed, End::Dropped] {
                let answer = Answer::seen(StatusCode::OK, &headers, end, cut, &body);
                let _ = (answer.header_number("x-cost"), answer.header_number(&pointer));
                let _ = (answer.json_number(&pointer), answer.event_number(&pointer), answer.body());
            }
        }
    }

    #[test]
    fn a_whole_number_is_not_read_back(number: u64, part in 0_u32..100) {
        let text = format!("{number}.{part:02}");
        let expected = number.checked_add(u64::from(part > 0));
        let headers = [("x-cost".parse().unwrap(), HeaderValue::from_str(&text).unwrap())].into_iter().collect();
        prop_assert_eq!(Answer::new(StatusCode::OK, &headers, b"").header_number("x-cost"), expected);
        let body = format!(r#"{{"usage": {{"total_tokens": {number}}}}}"#);
        prop_assert_eq!(json(&body, TOTAL), Some(number));
        prop_assert_eq!(event(&format!("data: {body}"), TOTAL), Some(number));
    }
}
