//! Replicas are configured with different limits: what they keep to exceeds one of them in one of its numbers.

#[path = "support/remote.rs"]
mod remote;

use std::time::Duration;

use remote::Remote;
use tollgate::Limiter;

async fn in_force(limiter: &Limiter) -> String {
    limiter.peek().await.expect("it answers").limits[0].in_force.to_string()
}

/// Each number by itself: a longer guard, a smaller burst, a shorter lease.
#[tokio::test(start_paused = true)]
async fn a_part_of_the_larger_one_is_used() {
    for (one, other, both) in [
        ("100/s guard 50ms", "80/s guard 10ms", "80/s"),
        ("100/s unpaced guard 10ms", "100/s guard 20ms", "100/s guard 20ms"),
        ("100/s share 50%", "80/s", "100/s share 50%"),
        ("10/s burst 20", "20/s burst 10", "10/s burst 10"),
        ("20 in flight lease 10s", "10 in flight lease 5s", "10 in flight lease 10s"),
        ("100/day aligned", "200/day aligned guard 5s", "100/day aligned guard 5s"),
    ] {
        for (one, other) in [(one, other), (other, one)] {
            let store = Remote::new(Duration::from_millis(2));
            let (_one, one) = store.another().replica(&[one]);
            let (_other, other) = store.another().replica(&[other]);
            one.acquire().await.expect("served");
            other.acquire().await.expect("served");
            assert_eq!((in_force(&one).await, in_force(&other).await), (both.to_owned(), both.to_owned()));
        }
    }
}
