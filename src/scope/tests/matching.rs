//! Requests that count where they should not, or do not where they should.

use std::cell::Cell;

use proptest::prelude::*;

use super::{Scope, check, counts, http, part, routes, states};
use crate::scope::State;

#[test]
fn a_method_counts_as_another() {
    assert!(counts("GET /v1", "GET", "/v1"));
    assert!(!counts("GET /v1", "HEAD", "/v1"));
    assert!(!counts("GET /v1", "get", "/v1"));
    assert!(!counts("GET /v1", "", "/v1"));
    for method in ["GET", "POST", "PURGE", "get", ""] {
        assert!(counts("/v1", method, "/v1"), "{method}");
    }
}

#[test]
fn a_path_counts_as_another() {
    for (route, path, expected) in [
        ("/v1/search", "/v1/search", true),
        ("/v1/search", "/v1/search/", false),
        ("/v1/search/", "/v1/search", false),
        ("/v1/search", "/v1/Search", false),
        ("/v1/search", "/v1/searches", false),
        ("/v1/search", "/v1//search", false),
        ("/v1/{id}", "/v1/7", true),
        ("/v1/{id}", "/v1/", false),
        ("/v1/{id}", "/v1/7/", false),
        ("/v1/{id}", "/v1/7/8", false),
        ("/v1/{id}", "/v1/a%2Fb", true),
        ("/v1/{id}/x", "/v1//x", false),
        ("/v1/img-{id}.png", "/v1/img-7.png", true),
        ("/v1/img-{id}.png", "/v1/img-.png", false),
        ("/v1/img-{id}.png", "/v1/img-7.png.png", true),
        ("/v1/{*rest}", "/v1/a", true),
        ("/v1/{*rest}", "/v1/a/b/", true),
        ("/v1/{*rest}", "/v1//", true),
        ("/v1/{*rest}", "/v1/", false),
        ("/v1/{*rest}", "/v1", false),
        ("/{*rest}", "/", false),
        ("/", "/", true),
        ("/", "", false),
        ("/v1", "v1", false),
    ] {
        assert_eq!(counts(route, "GET", path), expected, "{route} {path}");
    }
}

#[test]
fn a_request_counts_only_in_the_best_of_its_routes() {
    let routes = routes(&[
        Scope::route("/v1/{*rest}"),
        Scope::all(),
        Scope::route("/v1/search"),
        Scope::route("POST /v1/{name}"),
        Scope::route("/v1/{other}"),
        Scope::route("/v1/{*rest}"),
    ]);
    let search = states(&routes, http("POST", "/v1/search"), &[]);
    let expected = [
        part("/v1/{*rest}"),
        State::Whole,
        part("/v1/search"),
        part("POST /v1/{name}"),
        part("/v1/{other}"),
        part("/v1/{*rest}"),
    ];
    assert_eq!(search, expected);
    let deep = states(&routes, http("POST", "/v1/a/b"), &[]);
    let hits: Vec<_> = deep.iter().map(|state| *state != State::Elsewhere).collect();
    assert_eq!(hits, [true, true, false, false, false, true]);
    let none = states(&routes, http("GET", "/v2"), &[]);
    assert_eq!(none.iter().filter(|state| **state == State::Elsewhere).count(), 5);
    assert_eq!(none[1], State::Whole);
}

/// What is not a pattern costs a check, never a panic; and what passes it is a path that a URL can have.
#[test]
fn texts_and_paths_panic_or_no_url_can_have_them() {
    let near = "(GET |post | )?(/(\\{|\\}|\\*|:|\\.|[a-c]|%2e|%|\\{a\\}|\\{\\*r\\}|[!-~]|\\PC){0,5}){0,4}";
    let text = prop_oneof![near, ".{0,20}", "(/\\{[a-z]{1,3}\\}){20,30}"];
    let path = prop_oneof![".{0,20}", "(/[a-c{}*%.]{0,3}){0,30}"];
    let accepted = Cell::new(0);
    proptest!(config(20_000), |(text in text, path in path, method in "GET|.{0,4}")| {
        let scope = Scope::route(&text);
        if check(&scope).is_ok() {
            // The pattern itself, with names for braces, is a path that it matches.
            let pattern = &text[text.find('/').expect("a slash")..];
            let own = pattern.replace("{*", "{").replace(['{', '}'], "x");
            let own_method = text.split_once(' ').map_or("GET", |(method, _)| method);
            let url = reqwest::Url::parse(&format!("http://a{own}")).expect("a URL");
            prop_assert!(counts(&text, own_method, url.path()), "{} {}", text, url);
            accepted.set(accepted.get() + 1);
            let routes = routes(&[scope]);
            states(&routes, http(&method, &path), &[]);
        }
    });
    assert!(accepted.get() > 1_000, "only {} of the texts were routes", accepted.get());
}

#[test]
fn a_name_in_braces_matches_otherwise_than_the_simplest_reading() {
    let segment = prop_oneof!["\\{x\\}", "[ab]{0,2}", "[ab]{0,2}\\{x\\}[ab]{0,2}"];
    let pattern = prop::collection::vec(segment, 1..4);
    let path = prop::collection::vec("[abc]{0,4}", 1..4);
    let hits = Cell::new(0);
    let fits = |(own, other): (&String, &String)| match own.split_once("{x}") {
        None => own == other,
        Some((before, after)) => {
            other.len() > before.len() + after.len() && other.starts_with(before) && other.ends_with(after)
        }
    };
    proptest!(config(20_000), |(pattern in pattern, path in path)| {
        let expected = pattern.len() == path.len() && pattern.iter().zip(&path).all(fits);
        hits.set(hits.get() + u32::from(expected));
        let (pattern, path) = (format!("/{}", pattern.join("/")), format!("/{}", path.join("/")));
        prop_assert_eq!(counts(&pattern, "GET", &path), expected, "{} {}", pattern, path);
    });
    assert!(hits.get() > 1_000, "only {} of the paths matched", hits.get());
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        ..ProptestConfig::default()
    }
}
