//! A limiter goes, with a word or without, and its runtime ends right after: what it had booked goes back.

use std::{sync::Arc, time::Duration};

use tollgate::{MemoryStore, Provider, Tollgate};

fn replica(store: &Arc<MemoryStore>) -> Tollgate {
    let provider = Provider::new("acme").limit("10/s unpaced guard 0".parse().expect("a limit"));
    Tollgate::builder().store(store.clone()).provider(provider).build().expect("built")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// On the real clock: a runtime ends for good. What is looked at stands from 1.0 s to 2.0 s after the start.
#[test]
fn leaves_its_slots_to_the_others() {
    for shutdown in [false, true] {
        let store = Arc::new(MemoryStore::new());
        runtime().block_on(async {
            let tollgate = replica(&store);
            let limiter = tollgate.provider("acme").expect("there");
            while limiter.acquire().or_reject().await.is_ok() {}
            // A slot a second ahead is booked for this one.
            let waiting = tokio::spawn(async move { limiter.acquire().await.map(|_| ()) });
            tokio::time::sleep(Duration::from_millis(20)).await;
            if shutdown {
                tollgate.shutdown().await;
                assert!(waiting.await.expect("no panic").expect_err("shut down").is_closed());
            } else {
                waiting.abort();
                let _ = waiting.await;
            }
            drop(tollgate);
            tokio::time::sleep(Duration::from_millis(20)).await;
        });
        std::thread::sleep(Duration::from_millis(1_100));
        let left = runtime().block_on(async {
            let other = replica(&store).provider("acme").expect("there");
            other.peek().await.expect("in memory").limits[0].left
        });
        assert_eq!(left, 10, "shutdown: {shutdown}");
    }
}
