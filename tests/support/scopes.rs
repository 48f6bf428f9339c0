//! A provider with limits in scopes, and what each of their states has left.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::{sync::Arc, time::Duration};

use tollgate::{
    Acquire, Limit, Limiter, MemoryStore, Provider, Scope, Tollgate,
    store::{Agreed, Counted, Quota, Store},
};

/// A route, and a URL that goes there.
pub const SEARCH: &str = "POST /v1/search/{index}";
pub const SEARCH_URL: &str = "http://acme.test/v1/search/things";
/// One that goes to none.
pub const OTHER_URL: &str = "http://acme.test/things";

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn limit(text: &str) -> Limit {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// So many at once, as many again when the window is over: a minute and an hour with their guard, a second of which
/// half forgives what a busy machine does late.
pub fn plain(text: &str) -> Limit {
    let text = text.replace("/min", "/59s").replace("/h", "/3599s");
    limit(&format!("{text} unpaced guard 1s"))
}

pub fn scoped(limits: &[(Scope, &str)]) -> Provider {
    let provider = Provider::new("acme").hosts(["acme.test"]);
    limits.iter().fold(provider, |provider, (scope, text)| provider.limit_in(scope.clone(), plain(text)))
}

pub fn on(store: &Arc<impl Store>, provider: Provider) -> (Tollgate, Limiter) {
    let builder = Tollgate::builder().store(store.clone()).provider(provider);
    let tollgate = builder.build().unwrap_or_else(|error| panic!("{error}"));
    let limiter = tollgate.provider("acme").unwrap_or_else(|error| panic!("{error}"));
    (tollgate, limiter)
}

pub fn memory(provider: Provider) -> (Arc<MemoryStore>, Tollgate, Limiter) {
    let store = Arc::new(MemoryStore::new());
    let (tollgate, limiter) = on(&store, provider);
    (store, tollgate, limiter)
}

/// What a limit has left in the state of this scope, as its name ends; empty: that of all requests.
pub async fn left(store: &Arc<impl Store>, text: &str, scope: &str) -> i64 {
    let (provider, limit) = (Arc::from("acme"), plain(text));
    let name = if scope.is_empty() { limit.name() } else { format!("{}:{scope}", limit.name()) };
    let agreed = Agreed::new(Arc::clone(&provider), name.clone(), Scope::all(), limit).into();
    let quota = Quota {
        provider,
        limits: vec![Counted { agreed, name, watched: true, headroom: 0 }],
        parts: Arc::default(),
    };
    store.peek(&quota).await.unwrap_or_else(|error| panic!("{error}")).limits[0].0
}

/// Takes what can be had at once, and tells how many that was.
pub async fn rest(ask: impl Fn() -> Acquire) -> usize {
    let mut taken = 0;
    loop {
        match ask().or_reject().await {
            Ok(_) if taken < 10_000 => taken += 1,
            Ok(_) => panic!("nothing limits it"),
            Err(error) if error.is_rejected() => return taken,
            Err(error) => panic!("{error:?}"),
        }
    }
}
