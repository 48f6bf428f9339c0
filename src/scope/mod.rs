//! Which requests share one state of a limit.

mod hash;
mod key;
mod route;
mod routes;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fmt, sync::Arc};

use crate::limit::Limit;

pub(crate) use hash::Hasher;
pub(crate) use routes::{Routes, ScopeId, State, Target};

/// Which requests of a provider count in a limit, and which of them share one state of it.
///
/// ```
/// use tollgate::Scope;
///
/// let everything = Scope::all(); // the default
/// let searches = Scope::route("POST /v1/search/{index}");
/// let each_tenant = Scope::all().each("tenant");
/// let searches_of_each_tenant = Scope::route("POST /v1/search/{index}").each("tenant");
/// ```
///
/// Scopes do not exclude each other: a request counts in every limit whose scope it matches, and must find room
/// in all of them. One that matches no route counts only in limits without one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[must_use]
pub struct Scope {
    /// The canonical text, method and pattern.
    route: Option<Arc<str>>,
    keys: BTreeSet<Arc<str>>,
}

impl Scope {
    /// All requests of the provider share one state: the default.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only requests to this route count, and they share one state, whatever stands in the place of `{index}`.
    ///
    /// The text is a method, one space and a pattern of the path; without the method, any method counts. The
    /// method is in upper case and compared as it is: `HEAD` is not `GET`. In the pattern, `{name}` is a part of
    /// one segment that is not empty, at most one in each segment and 25 in all, e.g. `/v1/{user}/img-{id}.png`.
    /// `{*rest}` is the rest of the path, at its end only, and not empty either: `/v1/{*rest}` matches neither
    /// `/v1` nor `/v1/`. A name consists of ASCII letters, digits and `_`. The text has at most 512 bytes.
    ///
    /// The path is compared as the URL has it, percent-encoded and in its case, without the query. A slash at
    /// the end makes another path: `/v1/search` does not match `/v1/search/`.
    ///
    /// A request that is not HTTP has no method and no path: it counts if the call names the route by this text.
    ///
    /// The text is checked when the tollgate is built; what cannot be a route, or could match nothing, is an
    /// error then.
    ///
    /// ```
    /// use tollgate::Scope;
    ///
    /// let searches = Scope::route("POST /v1/search/{index}");
    /// let all_below = Scope::route("/v1/{*rest}");
    /// ```
    pub fn route(text: impl AsRef<str>) -> Self {
        Self { route: Some(text.as_ref().into()), keys: BTreeSet::new() }
    }

    /// Each value of the key has a state of its own: `100/min` of each tenant. With several keys, each
    /// combination of their values has; naming a key twice changes nothing.
    ///
    /// The name is yours to choose, 1 to 64 of the characters `A-Z a-z 0-9 _ . -`, and compared as it is; it is
    /// checked when the tollgate is built. Its value is any bytes of any length. Requests that have no value
    /// for the key share one state: they are limited together, never not at all. An empty value is a value.
    ///
    /// The store gets a keyed hash of the value, never the value.
    ///
    /// ```
    /// use tollgate::Scope;
    ///
    /// let each_token_and_region = Scope::all().each("authorization").each("region");
    /// ```
    pub fn each(mut self, key: impl AsRef<str>) -> Self {
        self.keys.insert(key.as_ref().into());
        self
    }

    /// Whether all requests share one state.
    pub(crate) fn is_all(&self) -> bool {
        self.route.is_none() && self.keys.is_empty()
    }

    /// A limit as errors show it: `10/s (POST /v1/search)`.
    pub(crate) fn shown_with(&self, limit: &Limit) -> String {
        if self.is_all() { limit.to_string() } else { format!("{limit} ({self})") }
    }

    /// Whether there is a state for each value of something, so that nobody knows how many.
    pub(crate) fn is_keyed(&self) -> bool {
        !self.keys.is_empty()
    }
}

/// As in `POST /v1/search/{index}, each region, each tenant`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.route.as_deref().unwrap_or("all"))?;
        self.keys.iter().try_for_each(|key| write!(f, ", each {key}"))
    }
}

/// A text for an error: its beginning, if it is long, with what is no letter or sign escaped.
fn shown(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
