//! What it took to get through.

use std::time::Duration;

use reqwest::Response;

use crate::{limit::Limit, limiter::Permit};

/// What it took to get a request through: an extension of each response that a provider's gate let pass.
///
/// ```
/// # fn example(response: &tollgate::reqwest::Response) {
/// if let Some(toll) = tollgate::Toll::of(response) {
///     println!("waited {:?}, {:?} left of {}", toll.waited(), toll.remaining(), toll.limit());
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Toll {
    waited: Duration,
    attempts: u32,
    hops: u32,
    limit: Limit,
    remaining: Option<u64>,
}

impl Toll {
    pub(super) fn new(waited: Duration, attempts: u32, hops: u32, last: &Permit) -> Self {
        Self { waited, attempts, hops, limit: last.limit().clone(), remaining: last.remaining() }
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

    /// The limit that had the least left when the last permit was booked.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// What that limit had left, for all replicas. `None`: the provider is only observed.
    pub fn remaining(&self) -> Option<u64> {
        self.remaining
    }
}
