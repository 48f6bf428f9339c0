//! A caller that would not wait is refused, although a permit was booked for it: it only heard of it late.

#[path = "support/far.rs"]
mod far;
#[path = "support/mod.rs"]
mod support;

use std::{
    future::IntoFuture,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use far::Far;
use tollgate::{Provider, Tollgate};

#[tokio::test(start_paused = true)]
async fn because_its_own_permit_has_taken_the_room() {
    // A slot is no sooner than its answer may be late, where the guard does not forgive that.
    for (guard, waited) in [("0s", 2_055), ("20ms", 2_051), ("1s", 2_030)] {
        let store = Arc::new(Far::default());
        let limit = format!("1/366day unpaced guard {guard}").parse().expect("a limit");
        let provider = Provider::new("acme").limit(limit);
        let tollgate = Tollgate::builder().store(store.clone()).provider(provider).build().expect("built");
        let limiter = tollgate.provider("acme").expect("there");
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut call = limiter.acquire().or_reject().into_future();
        assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        // The permit comes, and nobody looks at it for longer than it may fly. It is exchanged, which takes its time.
        tokio::time::sleep(Duration::from_secs(2)).await;
        store.takes(&[Duration::from_millis(30)]);
        let permit = call.await.unwrap_or_else(|error| panic!("guard {guard}: {error}"));
        assert_eq!(permit.waited(), Duration::from_millis(waited));
        assert!(limiter.counts().late >= 1, "it was exchanged");
        limiter.acquire().or_reject().await.expect_err("there was one");
    }
}
