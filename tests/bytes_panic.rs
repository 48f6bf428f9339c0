//! Answers that make the reader panic, wait for ever, or work for ever: any bytes, and real answers with some changed.
//!
//! `FUZZ_MINUTES=10 cargo test --release --test bytes_panic` tries for so long, with another seed each time.

#![cfg(feature = "middleware")]
#![allow(clippy::disallowed_methods, reason = "a run is bounded by real time")]

use std::time::{Duration, Instant};

use proptest::{prelude::*, sample::Index, test_runner::RngSeed};
use serde_json::Value;
use tollgate::{Dialect, signal::check_bytes};

/// The known cases in the form that `check_bytes` reads.
fn seeds() -> Vec<Vec<u8>> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases/headers.json")).expect("JSON");
    cases.iter().map(seed).collect()
}

fn seed(case: &Value) -> Vec<u8> {
    let mut text = format!("{} {} 1796040000\n", case["profile"].as_str().unwrap(), case["status"]);
    for (name, lines) in case["headers"].as_object().unwrap() {
        let one = std::slice::from_ref(lines);
        for line in lines.as_array().map_or(one, Vec::as_slice) {
            text.push_str(&format!("{name}: {}\n", line.as_str().unwrap()));
        }
    }
    if let Some(body) = case["body"].as_str() {
        text.push_str(&format!("\n{body}"));
    }
    text.into_bytes()
}

/// What turns one answer into another that is nearly one.
#[derive(Clone, Debug)]
enum Change {
    Byte(Index, u8),
    Drop(Index, u8),
    Insert(Index, Vec<u8>),
    Repeat(Index, u8),
}

fn change() -> impl Strategy<Value = Change> {
    // What parsers stumble over.
    let piece = prop_oneof![
        prop::sample::select(vec![
            "0",
            "-1",
            "9",
            "99999999999999999999",
            "18446744073709551616",
            "1e9",
            ".",
            ",",
            ";",
            "=",
            ":",
            "/",
            "\"",
            "\n\n",
            "\n",
            "inf",
            "NaN",
            "ms",
            "ns",
            "h",
            "*",
            "{",
            "[",
            ":60 ",
            "\u{a0}",
            "r=0",
            "w=0",
            "0:0"
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, count)| Change::Drop(at, count)),
        (any::<Index>(), piece).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, count)| Change::Repeat(at, count)),
    ]
}

fn changed(mut bytes: Vec<u8>, changes: Vec<Change>) -> Vec<u8> {
    for change in changes {
        if bytes.is_empty() || bytes.len() > 10_000 {
            break;
        }
        let at = |index: Index| index.index(bytes.len());
        match change {
            Change::Byte(index, byte) => {
                let at = at(index);
                bytes[at] = byte;
            }
            Change::Drop(index, count) => {
                let at = at(index);
                bytes.drain(at..(at + usize::from(count) % 30).min(bytes.len()));
            }
            Change::Insert(index, piece) => {
                let at = at(index);
                bytes.splice(at..at, piece);
            }
            Change::Repeat(index, count) => {
                let at = at(index);
                let piece = bytes[at..(at + usize::from(count)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

fn run(cases: u32, seed: u64) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..ProptestConfig::default()
    };
    let answers = seeds();
    let names: Vec<&str> = Dialect::names().collect();
    let near = (any::<Index>(), prop::collection::vec(change(), 0..6), prop::option::of(any::<Index>()));
    proptest!(config.clone(), |((at, changes, other) in near)| {
        let answer = at.get(&answers);
        // The answer of one provider, as if another had sent it.
        let blank = answer.iter().position(|byte| *byte == b' ').unwrap();
        let answer = match other {
            Some(other) => [other.get(&names).as_bytes(), &answer[blank..]].concat(),
            None => answer.clone(),
        };
        check_bytes(&changed(answer, changes));
    });
    let any = (any::<Index>(), prop::collection::vec(any::<u8>(), 0..300));
    proptest!(config, |((name, bytes) in any)| {
        check_bytes(&bytes);
        check_bytes(&[format!("{} 429 1796040000\n", name.get(&names)).as_bytes(), &bytes].concat());
    });
}

#[test]
fn bytes_panic_or_are_read_out_of_bounds() {
    let Some(minutes) = std::env::var("FUZZ_MINUTES").ok().and_then(|text| text.parse::<f64>().ok()) else {
        return run(5_000, 1);
    };
    let (start, mut seed) = (Instant::now(), std::process::id().into());
    println!("from seed {seed} on");
    while start.elapsed() < Duration::from_secs_f64(minutes * 60.0) {
        run(20_000, seed);
        seed += 1;
    }
}

/// A loop that is quadratic in any of these takes minutes.
#[test]
fn a_long_answer_takes_for_ever() {
    let long = 1 << 20;
    for name in Dialect::names() {
        for piece in [
            "9",
            "0.",
            "1s",
            "1:1,",
            "q=1;",
            "b=a;r=1,",
            "\"a\";r=0, ",
            "a=1/2;",
            "[",
            "{\"a\":",
            ":60 ",
            "-",
            " ",
            ",",
        ] {
            let value = piece.repeat(long / 16 / piece.len());
            let mut answer = format!("{name} 429 1796040000\n");
            for header in [
                "retry-after",
                "date",
                "ratelimit",
                "ratelimit-policy",
                "x-ratelimit-limit",
                "x-ratelimit-reset",
                "x-app-rate-limit",
                "x-app-usage",
                "zendesk-ratelimit-a",
                "sforce-limit-info",
                "x-sentry-rate-limits",
                "auth0-client-quota-limit",
            ] {
                answer.push_str(&format!("{header}:{value}\n"));
            }
            answer.push('\n');
            answer.push_str(&value);
            check_bytes(answer.as_bytes());
        }
        let mut answer = format!("{name} 429 1796040000\n");
        for n in 0..8_000 {
            answer.push_str(&format!("x-ratelimit-reset-{n}: 1\nratelimit: \"{n}\";r=1\nretry-after: {n}\n"));
        }
        check_bytes(answer.as_bytes());
    }
}
