//! Values that can be read where they should not, and hashes that are equal and should not be.

use std::collections::BTreeSet;

use super::{Hasher, Routes, Scope, http};

const SECRET: &[u8] = b"0123456789abcdef";

fn hash(hasher: &Hasher, key: &str, value: &[u8]) -> String {
    hasher.hash(key, value).to_string()
}

/// Replicas of two versions would each have a quota of their own.
#[test]
fn the_hash_is_another_in_another_version() {
    assert_eq!(hash(&Hasher::of("acme"), "tenant", b"blue"), "8a1d179748bb112c5fc501afd9ec7fca");
    let secret = Hasher::with_secret(SECRET, "acme").unwrap();
    assert_eq!(hash(&secret, "tenant", b"blue"), "89b070315530e09402440cf41b6a0207");
}

#[test]
fn what_differs_has_one_hash() {
    let acme = Hasher::of("acme");
    let long = vec![7; 1 << 20];
    let hashes = [
        hash(&acme, "ab", b"c"),
        hash(&acme, "a", b"bc"),
        hash(&acme, "abc", b""),
        hash(&acme, "", b"abc"),
        hash(&acme, "ab", b"C"),
        hash(&acme, "ab", b"c\0"),
        hash(&acme, "ab", &long),
        hash(&acme, "ab", &long[1..]),
        hash(&acme, "ab", &[0xff, 0xfe, 0]),
        hash(&Hasher::of("other"), "ab", b"c"),
        hash(&Hasher::with_secret(SECRET, "acme").unwrap(), "ab", b"c"),
        hash(&Hasher::with_secret(SECRET, "other").unwrap(), "ab", b"c"),
        hash(&Hasher::with_secret(b"another secret!!", "acme").unwrap(), "ab", b"c"),
    ];
    for hash in &hashes {
        assert_eq!(hash.len(), 32, "{hash}");
        assert!(hash.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')), "{hash}");
    }
    assert_eq!(hashes.iter().collect::<BTreeSet<_>>().len(), hashes.len());
}

#[test]
fn a_hash_with_zeros_in_front_is_shorter() {
    let acme = Hasher::of("acme");
    let zero =
        (0..10_000_u32).map(|at| hash(&acme, "k", &at.to_le_bytes())).find(|hash| hash.starts_with("000"));
    assert_eq!(zero.expect("one of 4,096").len(), 32);
}

#[test]
fn a_secret_that_is_none_is_accepted() {
    for secret in [&b""[..], b"hunter2", &SECRET[1..]] {
        let error = Hasher::with_secret(secret, "acme").unwrap_err().to_string();
        assert!(error.contains("provider \"acme\"") && error.contains("at least 16"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_value_or_a_secret_can_be_read() {
    let value = "sk-live-hunter2";
    let scopes = [Scope::all().each("authorization"), Scope::route("GET /v1").each("authorization")];
    let routes = Routes::new(&scopes, Hasher::with_secret(SECRET, "acme").unwrap()).unwrap();
    let id = routes.find(http("GET", "/v1"), |_| Some(value));
    let states: Vec<_> = routes.states(&id).collect();
    let bytes = format!("{:?}", value.as_bytes());
    for text in [format!("{routes:?}"), format!("{id:?}"), format!("{id:#?}"), format!("{states:?}")] {
        for secret in ["hunter2", "0123456789abcdef", bytes.trim_matches(['[', ']'])] {
            assert!(!text.contains(secret), "{text}");
        }
        let inner = format!("{:?}", SECRET).replace(['[', ']'], "");
        assert!(!text.contains(&inner), "{text}");
    }
}
