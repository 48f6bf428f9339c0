//! The scopes of all limits of a provider, and where a call belongs.

use std::{collections::BTreeSet, fmt::Write, sync::Arc};

use super::{
    Scope,
    hash::{Hash, Hasher},
    key,
    route::Route,
};
use crate::error::ConfigError;

/// As many as a [`ScopeId`] has bits.
const MOST: usize = 128;

/// The scopes of the limits of one provider, in the order of the limits.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    limits: Vec<Limited>,
    /// Each once.
    routes: Vec<Listed>,
    /// Each once, sorted.
    keys: Vec<Arc<str>>,
    hasher: Hasher,
}

#[derive(Clone, Debug)]
struct Listed {
    text: Arc<str>,
    /// In the names of states a colon ends it, so its own are doubled.
    name: Arc<str>,
    route: Route,
}

/// The scope of one limit: places in the lists of all.
#[derive(Clone, Debug)]
struct Limited {
    route: Option<usize>,
    keys: Vec<usize>,
}

/// What a call goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// The path as the URL has it.
    #[cfg_attr(not(feature = "middleware"), allow(dead_code, reason = "requests come by the middleware"))]
    Http { method: &'a str, path: &'a str },
    /// No HTTP: the routes that the call names, by their texts.
    Named(&'a [Arc<str>]),
}

/// Which states a call uses: equal if they are the same ones, of the same provider. Holds no value of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ScopeId {
    /// A bit for each route that matches.
    routes: u128,
    /// For each key; `None` if no limit of this call needs one.
    keys: Option<Arc<[Slot]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Slot {
    /// No limit of this call has the key: its value makes no difference.
    Unused,
    /// Shared by all calls without a value.
    Missing,
    Value(Hash),
}

/// Where a call counts in one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not at all: it goes to another route.
    Elsewhere,
    /// In the one state of the limit.
    Whole,
    /// In the state whose name has this suffix.
    Part(Arc<str>),
}

impl Routes {
    /// The scopes in the order of the limits.
    pub(crate) fn new(scopes: &[Scope], hasher: Hasher) -> Result<Self, ConfigError> {
        let keys: BTreeSet<_> = scopes.iter().flat_map(|scope| &scope.keys).cloned().collect();
        keys.iter().try_for_each(|name| key::check(name))?;
        let mut all =
            Self { limits: Vec::new(), routes: Vec::new(), keys: keys.into_iter().collect(), hasher };
        for scope in scopes {
            let route = scope.route.as_ref().map(|text| all.place(text)).transpose()?;
            let keys = (0..all.keys.len()).filter(|at| scope.keys.contains(&all.keys[*at])).collect();
            all.limits.push(Limited { route, keys });
        }
        Ok(all)
    }

    fn place(&mut self, text: &Arc<str>) -> Result<usize, ConfigError> {
        if let Some(at) = self.routes.iter().position(|known| known.text == *text) {
            return Ok(at);
        }
        if self.routes.len() == MOST {
            return Err(ConfigError(format!(
                "the route \"{text}\" is one too many: a provider has at most {MOST}; join some by a pattern"
            )));
        }
        let name = if text.contains(':') { text.replace(':', "::").into() } else { text.clone() };
        self.routes.push(Listed { text: text.clone(), name, route: Route::parse(text)? });
        Ok(self.routes.len() - 1)
    }

    /// Nothing to look for: every call has the same [`ScopeId`], which is the default.
    pub(crate) fn is_plain(&self) -> bool {
        self.routes.is_empty() && self.keys.is_empty()
    }

    /// The names of all keys, sorted.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| &**key)
    }

    /// The texts of all routes, in the order of the limits.
    pub(crate) fn routes(&self) -> impl Iterator<Item = &str> {
        self.routes.iter().map(|listed| &*listed.text)
    }

    /// Asks for the value of each key that this call needs, once. Allocates only if it needs one, or for a
    /// pattern with more than three names in braces.
    pub(crate) fn find<V: AsRef<[u8]>>(
        &self,
        target: Target<'_>,
        mut value: impl FnMut(&str) -> Option<V>,
    ) -> ScopeId {
        if self.is_plain() {
            return ScopeId::default();
        }
        let hits = self.routes.iter().map(|Listed { text, route, .. }| match target {
            Target::Http { method, path } => route.matches(method, path),
            Target::Named(texts) => texts.contains(text),
        });
        let routes = hits.enumerate().fold(0, |bits, (at, hit)| bits | u128::from(hit) << at);
        let used = |key| self.limits.iter().any(|limit| limit.applies(routes) && limit.keys.contains(&key));
        let slots = self.keys.iter().enumerate().map(|(at, name)| match used(at) {
            false => Slot::Unused,
            true => {
                value(name).map_or(Slot::Missing, |value| Slot::Value(self.hasher.hash(name, value.as_ref())))
            }
        });
        ScopeId { routes, keys: (0..self.keys.len()).any(used).then(|| slots.collect()) }
    }

    /// For each limit, in their order. Allocates for those with keys only.
    pub(crate) fn states(&self, id: &ScopeId) -> impl Iterator<Item = State> {
        self.limits.iter().map(|limit| {
            if !limit.applies(id.routes) {
                return State::Elsewhere;
            }
            let name = limit.route.map(|at| &self.routes[at].name);
            match name {
                None if limit.keys.is_empty() => State::Whole,
                Some(name) if limit.keys.is_empty() => State::Part(name.clone()),
                _ => State::Part(self.suffix(name, &limit.keys, id).into()),
            }
        })
    }

    /// As in `POST /v1/search/{index}:region=-:tenant=0123..`, where `-` stands for no value.
    fn suffix(&self, route: Option<&Arc<str>>, keys: &[usize], id: &ScopeId) -> String {
        let mut suffix = route.map_or_else(String::new, |name| format!("{name}:"));
        for (nth, &at) in keys.iter().enumerate() {
            let colon = if nth == 0 { "" } else { ":" };
            let name = &self.keys[at];
            // Writing to a string does not fail.
            let _ = match id.keys.as_deref().and_then(|slots| slots.get(at)) {
                Some(Slot::Value(hash)) => write!(suffix, "{colon}{name}={hash}"),
                _ => write!(suffix, "{colon}{name}=-"),
            };
        }
        suffix
    }
}

impl Limited {
    fn applies(&self, routes: u128) -> bool {
        self.route.is_none_or(|at| routes >> at & 1 == 1)
    }
}
