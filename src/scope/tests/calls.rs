//! Calls that share a state and should not, or the other way round.

use std::sync::Arc;

use super::{Hasher, Routes, Scope, Target, find, http, part, routes, states};
use crate::scope::{ScopeId, State};

const SEARCH: &str = "POST /v1/search/{index}";

#[test]
fn a_provider_without_scopes_pays_for_them() {
    let routes = routes(&[Scope::all(), Scope::all()]);
    assert!(routes.is_plain());
    let id = routes.find(http("GET", "/"), |_| -> Option<&str> { unreachable!("there is no key") });
    assert_eq!(id, ScopeId::default());
    assert_eq!(routes.states(&id).collect::<Vec<_>>(), [State::Whole, State::Whole]);
    assert!(!super::routes(&[Scope::route("/")]).is_plain());
    assert!(!super::routes(&[Scope::all().each("tenant")]).is_plain());
}

#[test]
fn a_route_without_keys_allocates() {
    let keyed = Scope::route("/v2").each("tenant");
    let routes = routes(&[Scope::all(), Scope::route(SEARCH), Scope::route("/{a}/{b}/{c}"), keyed]);
    let mut hits = 0;
    let allocated = allocation_counter::measure(|| {
        let id = routes.find(http("POST", "/v1/search/things"), |_| Some("blue"));
        hits = routes.states(&id.clone()).filter(|state| matches!(state, State::Part(_))).count();
    });
    assert_eq!((hits, allocated.count_total), (2, 0));
}

#[test]
fn values_of_a_key_share_a_state() {
    let routes = routes(&[Scope::all().each("tenant"), Scope::route(SEARCH).each("tenant"), Scope::all()]);
    let target = http("POST", "/v1/search/things");
    let blue = states(&routes, target, &[("tenant", "blue"), ("unused", "x")]);
    let suffix = "tenant=8a1d179748bb112c5fc501afd9ec7fca";
    assert_eq!(blue, [part(suffix), part(&format!("{SEARCH}:{suffix}")), State::Whole]);
    let red = states(&routes, target, &[("tenant", "red")]);
    assert!(red[0] != blue[0] && red[1] != blue[1] && red[2] == blue[2]);
    let elsewhere = states(&routes, http("GET", "/"), &[("tenant", "blue")]);
    assert_eq!(elsewhere, [part(suffix), State::Elsewhere, State::Whole]);
}

#[test]
fn a_call_without_a_value_is_not_limited_or_taken_for_one_with_an_empty_one() {
    let routes = routes(&[Scope::all().each("tenant").each("region")]);
    assert_eq!(states(&routes, http("GET", "/"), &[]), [part("region=-:tenant=-")]);
    let empty = states(&routes, http("GET", "/"), &[("tenant", "")]);
    let dash = states(&routes, http("GET", "/"), &[("tenant", "-")]);
    assert!(
        matches!(&empty[0], State::Part(suffix) if suffix.starts_with("region=-:tenant=") && suffix.len() > 40)
    );
    assert_ne!(empty, dash);
}

#[test]
fn a_colon_in_a_route_ends_its_name() {
    let routes = routes(&[Scope::route("/a:b"), Scope::route("/a:b").each("c")]);
    assert_eq!(states(&routes, http("GET", "/a:b"), &[]), [part("/a::b"), part("/a::b:c=-")]);
}

#[test]
fn the_order_of_keys_makes_other_states() {
    let one = routes(&[Scope::all().each("tenant").each("region")]);
    let other = routes(&[Scope::all().each("region").each("tenant")]);
    let values = [("region", "eu"), ("tenant", "blue")];
    let suffix = states(&one, http("GET", "/"), &values);
    assert_eq!(suffix, states(&other, http("GET", "/"), &values));
    assert!(
        matches!(&suffix[0], State::Part(text) if text.starts_with("region=") && text.contains(":tenant="))
    );
    assert_eq!(one.keys().collect::<Vec<_>>(), ["region", "tenant"]);
}

#[test]
fn a_value_that_no_limit_of_the_call_needs_makes_another_id() {
    let routes = routes(&[Scope::route("/v1").each("tenant"), Scope::route("/v2").each("region")]);
    let values = |tenant, region| [("tenant", tenant), ("region", region)];
    let id = |path, values: &[_]| find(&routes, http("GET", path), values);
    assert_eq!(id("/v1", &values("blue", "eu")), id("/v1", &values("blue", "us")));
    assert_ne!(id("/v1", &values("blue", "eu")), id("/v1", &values("red", "eu")));
    assert_ne!(id("/v1", &values("blue", "eu")), id("/v1", &[]));
    assert_ne!(id("/v1", &[]), id("/v2", &[]));
    assert_eq!(id("/v3", &values("blue", "eu")), ScopeId::default());
}

#[test]
fn a_value_is_asked_for_twice_or_without_need() {
    let scope = |path: &str| Scope::route(path).each("tenant");
    let routes = routes(&[scope("/v1"), scope("/{any}"), Scope::route("/v2").each("region")]);
    let mut asked = Vec::new();
    routes.find(http("GET", "/v1"), |key| {
        asked.push(key.to_owned());
        Some("x")
    });
    assert_eq!(asked, ["tenant"]);
}

#[test]
fn what_is_not_http_counts_in_routes_that_it_does_not_name() {
    let routes = routes(&[Scope::route(SEARCH), Scope::route("/v1/{*rest}"), Scope::all()]);
    assert_eq!(routes.routes().collect::<Vec<_>>(), [SEARCH, "/v1/{*rest}"]);
    let named = |texts: &[&str]| {
        let texts: Vec<Arc<str>> = texts.iter().map(|text| Arc::from(*text)).collect();
        states(&routes, Target::Named(&texts), &[])
    };
    assert_eq!(named(&[]), [State::Elsewhere, State::Elsewhere, State::Whole]);
    assert_eq!(named(&[SEARCH]), [part(SEARCH), State::Elsewhere, State::Whole]);
    assert_eq!(named(&["/v1/{*rest}", SEARCH]), [part(SEARCH), part("/v1/{*rest}"), State::Whole]);
    assert_eq!(named(&["/v1/x"])[1], State::Elsewhere);
}

#[test]
fn the_last_route_has_no_bit() {
    let scopes: Vec<_> = (0..128).map(|at| Scope::route(format!("/{at}"))).collect();
    let routes = Routes::new(&scopes, Hasher::of("acme")).unwrap();
    for at in [0, 63, 64, 127] {
        let states = states(&routes, http("GET", &format!("/{at}")), &[]);
        let hits: Vec<_> = (0..128).filter(|at| states[*at] != State::Elsewhere).collect();
        assert_eq!(hits, [at]);
    }
}

#[test]
fn an_id_of_other_routes_panics() {
    let many = routes(&[Scope::all().each("a").each("b"), Scope::route("/v1").each("c")]);
    let few = routes(&[Scope::all().each("a")]);
    let id = find(&few, http("GET", "/v1"), &[("a", "1")]);
    assert_eq!(many.states(&id).count(), 2);
    assert_eq!(many.states(&ScopeId::default()).count(), 2);
}
