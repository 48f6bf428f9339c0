//! Answers of real providers, in `tests/cases/headers.json`, that are read as something else than they mean.

#![cfg(feature = "middleware")]

use serde_json::Value;

const CASES: &str = include_str!("cases/headers.json");

/// Cases in which the format does not settle the answer and ours is another, with the reason. Only those whose
/// `policy` is `true` may stand here.
const OTHERWISE: &[(&str, &str)] = &[];

#[test]
fn an_answer_is_misread() {
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("JSON");
    assert_eq!(cases.len(), 124);
    let mut wrong = Vec::new();
    for case in &cases {
        let id = case["id"].as_str().expect("each has one");
        let got: Value =
            tollgate::signal::run_case(&case.to_string()).expect("a case").parse().expect("JSON");
        let differs = |field: &&str| got[field].as_f64() != case["expect"][field].as_f64();
        let fields: Vec<_> =
            ["wait_ms", "limit", "remaining", "reset_ms"].into_iter().filter(differs).collect();
        let otherwise = OTHERWISE.iter().any(|(other, _)| *other == id);
        assert!(!otherwise || case["policy"] == true, "{id}: its format settles the answer");
        if fields.is_empty() == otherwise {
            wrong.push(format!("{id}: {fields:?}, got {got}, expected {}", case["expect"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_case_is_run() {
    for text in ["", "{}", "[]", r#"{"profile":"x","status":1,"headers":{},"now":"2026-11-30T12:00:00Z"}"#] {
        tollgate::signal::run_case(text).expect_err(text);
    }
}
