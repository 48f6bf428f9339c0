//! Texts that are none, and their errors.

use super::{Hasher, Routes, Scope, check};

fn refusal(scope: &Scope) -> String {
    let error = check(scope).expect_err(&scope.to_string()).to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn a_route_that_matches_nothing_is_accepted() {
    let many: String = (0..26).map(|at| format!("/{{p{at}}}")).collect();
    let long = format!("/{}", "a".repeat(512));
    for (text, remedy) in [
        ("", "a path that begins with '/'"),
        ("POST", "a path that begins with '/'"),
        ("POST ", "a path that begins with '/'"),
        ("POST  /v1", "one space"),
        (" /v1", "is no method"),
        ("POST v1/search", "begins with '/'"),
        ("v1/search", "begins with '/'"),
        ("post /v1", "write the method as POST"),
        ("P@ST /v1", "is no method"),
        ("https://api.acme.com/v1", "begins with '/'"),
        ("/v1/search?q={q}", "leave out the query"),
        ("/v1#top", "leave out the query and the fragment"),
        ("/v1 /v2", "percent-encoded"),
        ("/v1/b\u{fc}cher", "percent-encoded"),
        ("/v1/a\nb", r"has '\n'"),
        ("/v1\\v2", "percent-encoded"),
        ("/v1/../v2", "leave it out"),
        ("/v1/%2E./v2", "leave it out"),
        ("/v1/:id", "write {name}"),
        ("/v1/*", "{*rest} for the rest"),
        ("/v1/{}", "between braces"),
        ("/v1/{*}", "between braces"),
        ("/v1/{a-b}", "between braces"),
        ("/v1/{{a}}", "between braces"),
        ("/v1/{a", "close the brace"),
        ("/v1/{a/b}", "close the brace"),
        ("/v1/a}", "not open"),
        ("/v1/{a}{b}", "one name in braces for each segment"),
        ("/v1/{a}-{b}", "one name in braces for each segment"),
        ("/v1/{*rest}/x", "only as the last segment"),
        ("/v1/a{*rest}", "only as the last segment"),
        ("/v1/{*rest}.png", "only as the last segment"),
        (&many, "more than 25 names"),
        (&long, "longer than 512 bytes"),
    ] {
        let error = refusal(&Scope::route(text));
        assert!(error.contains(remedy), "{text:?}: {error}");
        assert!(error.starts_with("the route \""), "{error}");
        assert!(error.len() < 400, "{error}");
    }
}

#[test]
fn a_route_that_is_one_is_refused() {
    let many: String = (0..25).map(|at| format!("/{{p{at}}}")).collect();
    let long = format!("/{}", "a".repeat(511));
    for text in [
        "/",
        "//",
        "/v1/",
        "GET /",
        "M-SEARCH /v1",
        "POST /v1/search/{index}",
        "/v1/{*rest}",
        "/{*rest}",
        "/v1/{user}/img-{id}.png",
        "/v1/models/{model}:generate",
        "/v1/b%C3%BCcher/a+b@c;d=e,f!g~h|i",
        &many,
        &long,
    ] {
        check(&Scope::route(text)).unwrap();
    }
}

#[test]
fn a_key_is_no_name() {
    let long = "k".repeat(65);
    for key in ["", "a b", "a:b", "a=b", "{a}", "b\u{fc}cher", "a\n", &long] {
        let error = refusal(&Scope::all().each("fine").each(key));
        assert!(error.starts_with("the key \"") && error.contains("use 1 to 64 letters"), "{error}");
    }
    for key in ["tenant", "X-Api-Key", "a.b_c-9", &long[1..]] {
        check(&Scope::route("/v1").each(key)).unwrap();
    }
}

#[test]
fn two_eachs_of_one_key_or_their_order_make_a_difference() {
    let once = Scope::all().each("tenant").each("region");
    assert_eq!(once, Scope::all().each("region").each("tenant").each("region"));
    assert_eq!(once.to_string(), "all, each region, each tenant");
    assert_eq!(Scope::route("GET /v1").each("a").to_string(), "GET /v1, each a");
    assert_ne!(Scope::all(), Scope::route("/v1"));
    assert_eq!(Scope::default(), Scope::all());
}

#[test]
fn more_routes_than_can_be_told_apart() {
    let scopes: Vec<_> = (0..129).map(|at| Scope::route(format!("/{at}"))).collect();
    let error = Routes::new(&scopes, Hasher::of("acme")).unwrap_err().to_string();
    assert!(error.contains("\"/128\"") && error.contains("at most 128"), "{error}");
    let twice: Vec<_> = scopes[..128].iter().chain(&scopes[..128]).cloned().collect();
    assert_eq!(super::routes(&twice).routes().count(), 128);
}
