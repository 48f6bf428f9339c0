//! The way of a request: through its provider's gate, onto the wire, and back.

mod body;
mod call;
mod client;
mod hops;
mod meter;
mod pass;
mod route;
mod toll;
mod trip;
mod upstream;

pub use self::{
    body::Answer,
    call::{Call, RequestBuilderExt},
    client::Middleware,
    toll::Toll,
};
pub(crate) use self::{
    route::{Judge, Matcher, overlap},
    upstream::{Requests, Upstream},
};
