//! What it took to get through.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::Response;

use crate::{error::Error, limit::Limit, permit::Permit, scope::Scope};

/// What it took to get a request through: an extension of each response that a provider's gate let pass.
///
/// ```
/// # fn example(response: &tollgate::reqwest::Response) {
/// if let Some(toll) = tollgate::Toll::of(response) {
///     println!("waited {:?}, {:?} left of {:?}", toll.waited(), toll.remaining(), toll.limit());
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Toll {
    waited: Duration,
    attempts: u32,
    hops: u32,
    limit: Option<(Limit, Scope)>,
    remaining: Option<u64>,
    open: Open,
}

/// The permit of a request, until its real cost is told; whoever takes it first settles it.
#[derive(Clone, Debug, Default)]
pub struct Open(Arc<Mutex<Option<Permit>>>);

impl Open {
    pub fn take(&self) -> Option<Permit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Toll {
    pub(super) fn new(waited: Duration, attempts: u32, hops: u32, last: &Permit) -> Self {
        let (limit, remaining) = (last.limit().cloned().zip(last.scope().cloned()), last.remaining());
        Self { waited, attempts, hops, limit, remaining, open: Open::default() }
    }

    /// Keeps the permit of the request.
    pub(super) fn hold(&self, permit: Permit) -> Open {
        *self.open.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
        self.open.clone()
    }

    /// Of a response, unless it passed untouched.
    pub fn of(response: &Response) -> Option<&Self> {
        response.extensions().get()
    }

    /// For permits, pauses and between attempts, all in all.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How often the request was sent: 1, and once more for each refusal that was waited out.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Redirect hops that were charged on top.
    pub fn hops(&self) -> u32 {
        self.hops
    }

    /// The limit that had the least left, of what it admits, when the last permit was booked. `None`: the request
    /// counts in none.
    pub fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref().map(|(limit, _)| limit)
    }

    /// Which requests that limit is for.
    pub fn scope(&self) -> Option<&Scope> {
        self.limit.as_ref().map(|(_, scope)| scope)
    }

    /// What that limit had left, for all replicas. `None`: the provider is only observed, or there is no limit.
    pub fn remaining(&self) -> Option<u64> {
        self.remaining
    }

    /// What the request really cost is known: see [`Permit::settle`]. It goes before what the provider's closures
    /// tell, if it comes before the end of the body. Only the first time counts; tells whether it did.
    ///
    /// # Errors
    /// When no limit counts one of the units; nothing is settled then.
    ///
    /// ```
    /// # fn example(response: &tollgate::reqwest::Response) -> Result<(), tollgate::Error> {
    /// if let Some(toll) = tollgate::Toll::of(response) {
    ///     toll.settle([("tokens", 1_234)])?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn settle<'a>(&self, real: impl IntoIterator<Item = (&'a str, u64)>) -> Result<bool, Error> {
        let mut open = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(permit) = &*open else { return Ok(false) };
        let price = permit.price(real)?;
        let permit = open.take();
        // The store may be told in this very call.
        drop(open);
        permit.into_iter().for_each(|permit| permit.settle_at(&price));
        Ok(true)
    }
}
