//! What requests cost, as their provider tells it: guessed before, known afterwards.

use std::{fmt, sync::Arc};

use reqwest::{Request, Response};

use super::body::{Answer, Keep, watch};
use crate::{flight::Flight, permit::Permit, price::Price, provider::Provider};

type Estimate = Arc<dyn Fn(&Request) -> u64 + Send + Sync>;
type Real = Arc<dyn Fn(&Answer<'_>) -> Option<u64> + Send + Sync>;
type Value = Arc<dyn Fn(&Request) -> Option<String> + Send + Sync>;

/// The closures of a provider, each under the unit or key that it tells.
#[derive(Clone)]
pub struct Meter {
    estimates: Vec<(Arc<str>, Estimate)>,
    reals: Vec<(Arc<str>, Real)>,
    values: Vec<(Arc<str>, Value)>,
    /// Of a body so many bytes are kept for those who look for the cost.
    kept: usize,
}

impl Default for Meter {
    fn default() -> Self {
        Self { estimates: Vec::new(), reals: Vec::new(), values: Vec::new(), kept: 64 * 1024 }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.units().chain(self.keys()).collect::<Vec<_>>();
        f.debug_struct("Meter").field("named", &named).field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl Meter {
    pub fn units(&self) -> impl Iterator<Item = &str> {
        let estimates = self.estimates.iter().map(|(unit, _)| &**unit);
        estimates.chain(self.reals.iter().map(|(unit, _)| &**unit))
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(key, _)| &**key)
    }

    /// What the call does not say itself is guessed.
    pub fn estimate(&self, price: &mut Price, request: &Request) {
        for (unit, estimate) in &self.estimates {
            if !price.has(unit) {
                price.set(unit, estimate(request));
            }
        }
    }

    pub fn guesses(&self) -> bool {
        !self.estimates.is_empty()
    }

    /// The value of a key: as its closure says, else the header of that name.
    pub fn value(&self, key: &str, request: &Request) -> Option<Vec<u8>> {
        match self.values.iter().find(|(named, _)| **named == *key) {
            Some((_, value)) => value(request).map(String::into_bytes),
            None => request.headers().get(key).map(|value| value.as_bytes().to_vec()),
        }
    }

    /// At the end of the answer its places in flight are free, and its permit is settled unless somebody has taken it
    /// before.
    pub fn watch(
        &self,
        response: Response,
        flights: Vec<Flight>,
        take: impl FnOnce() -> Option<Permit> + Send + 'static,
    ) -> Response {
        match (self.reals.is_empty(), flights.is_empty()) {
            (true, true) => return response,
            (true, false) => return watch(response, Keep::Nothing, move |_| drop(flights)),
            _ => {}
        }
        let (status, headers) = (response.status(), response.headers().clone());
        let reals = self.reals.clone();
        watch(response, Keep::Last(self.kept), move |mut seen| {
            drop(flights);
            let Some(permit) = take() else { return };
            let answer = seen.answer(status, &headers);
            let told = reals.iter().filter_map(|(unit, real)| Some((&**unit, real(&answer)?)));
            // The units were checked when the tollgate was built.
            let _ = permit.settle(told.collect::<Vec<_>>());
        })
    }
}

/// What its requests cost, and whose they are (feature `middleware`).
impl Provider {
    /// Guesses how much of a unit a request takes, from its URL, headers and body (`body().as_bytes()`). It is asked
    /// for each request that does not say so itself (`.cost("tokens", n)`): keep it short. A second closure for the
    /// same unit replaces the first.
    ///
    /// ```
    /// # use tollgate::Provider;
    /// # fn main() -> Result<(), tollgate::LimitError> {
    /// let llm = Provider::new("llm").limit("200000 tokens/min".parse()?).estimate("tokens", |request| {
    ///     let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
    ///     body.len() as u64 / 4 + 500
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn estimate(
        mut self,
        unit: &str,
        estimate: impl Fn(&Request) -> u64 + Send + Sync + 'static,
    ) -> Self {
        replace(&mut self.requests.meter.estimates, unit, Arc::new(estimate));
        self
    }

    /// Tells how much of a unit a request has really taken, from its answer; `None`: it stays as guessed. The
    /// difference is charged or given back when the body of the answer has been read to its end or is dropped. See
    /// [`Permit::settle`] for what becomes of it, and [`Answer`] for where to look. It must be short and must
    /// not panic: it runs where the body ends, perhaps in a drop.
    ///
    /// ```
    /// # use tollgate::Provider;
    /// # fn main() -> Result<(), tollgate::LimitError> {
    /// let llm = Provider::new("llm")
    ///     .limit("200000 tokens/min".parse()?)
    ///     .settle("tokens", |answer| answer.json_number("/usage/total_tokens"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Permit::settle`]: crate::Permit::settle
    pub fn settle(
        mut self,
        unit: &str,
        real: impl Fn(&Answer<'_>) -> Option<u64> + Send + Sync + 'static,
    ) -> Self {
        replace(&mut self.requests.meter.reals, unit, Arc::new(real));
        self
    }

    /// How much of the body of an answer is kept for closures of [`settle`](Self::settle), in bytes: all of one
    /// that is no longer, else its end. Default 65,536. Nothing is kept without such a closure.
    pub fn keep_body(mut self, bytes: usize) -> Self {
        self.requests.meter.kept = bytes;
        self
    }

    /// Tells the value of a key that a [`Scope`](crate::Scope) has, from the request. `None`: it has none. Default:
    /// the header of that name.
    ///
    /// ```
    /// # use tollgate::{Provider, Scope};
    /// # fn main() -> Result<(), tollgate::LimitError> {
    /// let acme = Provider::new("acme")
    ///     .limit_in(Scope::all().each("tenant"), "100/min".parse()?)
    ///     .key("tenant", |request| request.url().path_segments()?.nth(1).map(str::to_owned));
    /// # Ok(())
    /// # }
    /// ```
    pub fn key(
        mut self,
        key: &str,
        value: impl Fn(&Request) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        replace(&mut self.requests.meter.values, key, Arc::new(value));
        self
    }
}

fn replace<T>(list: &mut Vec<(Arc<str>, T)>, name: &str, with: T) {
    list.retain(|(named, _)| **named != *name);
    list.push((name.into(), with));
}
