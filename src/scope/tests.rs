//! What goes wrong with scopes.

mod calls;
mod matching;
mod texts;
mod values;

use std::{collections::BTreeMap, sync::Arc};

use super::{Hasher, Routes, Scope, ScopeId, State, Target};
use crate::error::ConfigError;

fn routes(scopes: &[Scope]) -> Routes {
    Routes::new(scopes, Hasher::of("acme")).unwrap()
}

fn check(scope: &Scope) -> Result<(), ConfigError> {
    Routes::new(std::slice::from_ref(scope), Hasher::of("acme")).map(|_| ())
}

fn http<'a>(method: &'a str, path: &'a str) -> Target<'a> {
    Target::Http { method, path }
}

fn find(routes: &Routes, target: Target<'_>, values: &[(&str, &str)]) -> ScopeId {
    let values: BTreeMap<_, _> = values.iter().copied().collect();
    routes.find(target, |key| values.get(key).copied())
}

fn states(routes: &Routes, target: Target<'_>, values: &[(&str, &str)]) -> Vec<State> {
    routes.states(&find(routes, target, values)).collect()
}

fn part(suffix: &str) -> State {
    State::Part(Arc::from(suffix))
}

/// Whether the one route counts the request.
fn counts(text: &str, method: &str, path: &str) -> bool {
    let routes = routes(&[Scope::route(text)]);
    states(&routes, http(method, path), &[]) == [part(&text.replace(':', "::"))]
}
