//! Layers of others, for stacks around and inside a tollgate.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::time::Duration;

use axum::http::Extensions;
use reqwest_retry::{Jitter, RetryTransientMiddleware, policies::ExponentialBackoff};
use tollgate::{
    Error,
    reqwest::{Request, Response},
    reqwest_middleware::{self, ClientBuilder, Middleware, Next},
};

use super::upstream::{Answer, answer, plain};

const SECOND: Duration = Duration::from_secs(1);

/// A quota that no test uses up.
pub const ROOMY: &str = "1000/h unpaced guard 0";

/// The error of a call, which must be one of ours.
pub fn ours(result: reqwest_middleware::Result<Response>) -> Error {
    let error = result.expect_err("refused");
    Error::find(&error).unwrap_or_else(|| panic!("not ours: {error:?}"))
}

/// Lets a request through as it is.
pub struct Nothing;

#[async_trait::async_trait]
impl Middleware for Nothing {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        next.run(request, extensions).await
    }
}

pub fn bare() -> ClientBuilder {
    ClientBuilder::new(plain().build().expect("a client"))
}

/// The usual retry layer: so many attempts more, a second apart.
pub fn retry(more: u32) -> RetryTransientMiddleware<ExponentialBackoff> {
    let policy = ExponentialBackoff::builder().retry_bounds(SECOND, SECOND).jitter(Jitter::None);
    RetryTransientMiddleware::new_with_policy(policy.build_with_max_retries(more))
}

pub fn broken() -> Answer {
    answer(500, &[], "")
}
