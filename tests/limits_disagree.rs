//! Replicas are configured with different limits, as while they are deployed one by one: the larger one is used, or
//! nobody is told. Alone in its process: whether anybody listens to a log line is remembered for all threads.

#![cfg(feature = "middleware")]

#[path = "support/remote.rs"]
mod remote;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::time::Duration;

use remote::Remote;
use tollgate::Limiter;
use upstream::Log;

async fn in_force(limiter: &Limiter) -> String {
    limiter.peek().await.expect("it answers").limits[0].in_force.to_string()
}

async fn take_all(limiter: &Limiter) -> usize {
    let mut taken = 0;
    while limiter.acquire().or_reject().await.is_ok() {
        taken += 1;
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn the_larger_one_is_used_or_nobody_is_told() {
    let (log, _guard) = Log::capture();
    let store = Remote::new(Duration::from_millis(2));
    let (tollgate, old) = store.another().replica(&["100/s unpaced guard 0"]);
    assert_eq!(take_all(&old).await, 100);
    tokio::time::sleep(Duration::from_secs(1)).await;

    let (_tollgate, new) = store.another().replica(&["60/s unpaced guard 0"]);
    assert_eq!(take_all(&new).await, 60);
    assert_eq!(take_all(&old).await, 0, "the smaller one is used up");
    for limiter in [&old, &new] {
        assert_eq!(in_force(limiter).await, "60/s unpaced guard 0s");
    }
    let told = log.text();
    for (configured, others) in [("100/s", "60/s"), ("60/s", "100/s")] {
        let line = told.lines().filter(|line| {
            line.contains("replicas have different limits")
                && line.contains(&format!("configured=\"{configured} unpaced guard 0s\""))
                && line.contains(&format!("others=\"{others} unpaced guard 0s\""))
                && line.contains("in_force=\"60/s unpaced guard 0s\"")
        });
        assert_eq!(line.count(), 1, "to the one with {configured}: {told}");
    }

    // A third one sees what there is with its first call.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (_third, third) = store.another().replica(&["80/s unpaced guard 0"]);
    assert_eq!(take_all(&third).await, 60);

    // Those who are not heard of any more do not count: not after a minute.
    tollgate.shutdown().await;
    drop(third);
    let mut until = 0;
    for second in 0..100 {
        // Asks also what it need not, to be heard.
        new.acquire().await.expect("served");
        if in_force(&new).await != "60/s unpaced guard 0s" || second == 62 {
            until = second;
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(until, 62, "its own one is the smallest");
    assert_eq!(log.text().matches("all replicas have the same limit again").count(), 1, "{}", log.text());
}
