//! What several tests need.
#![allow(dead_code)]

use std::{
    task::{Context, Waker},
    time::Duration,
};

use tokio::time::Instant;
use tollgate::{Limiter, Provider, Tollgate};

/// A limiter in memory, on whatever clock the test runs on.
pub fn limiter(limits: &[&str]) -> Limiter {
    with(Provider::new("acme"), limits)
}

pub fn with(provider: Provider, limits: &[&str]) -> Limiter {
    let provider = limits.iter().fold(provider, |provider, limit| {
        provider.limit(limit.parse().unwrap_or_else(|error| panic!("{error}")))
    });
    let tollgate = Tollgate::builder().provider(provider).build().unwrap_or_else(|error| panic!("{error}"));
    tollgate.provider("acme").unwrap_or_else(|error| panic!("{error}"))
}

/// Time since the test began, on tokio's clock, which is where permits take theirs from.
pub struct Watch(Instant);

impl Watch {
    #[allow(clippy::disallowed_methods)] // The clock under test is tokio's.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn read(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Polls a future so many times, letting everything else run in between, and drops it. Whether it was done.
pub async fn abandon_after<F: Future>(future: F, polls: usize) -> bool {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        if future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return true;
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    false
}
