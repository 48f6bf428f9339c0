//! Calls that wait long must be seen in the log: once per time of trouble, not once per call.

#[path = "support/mod.rs"]
mod support;

use std::{
    io::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use support::with;
use tollgate::Provider;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn one_warning_until_waits_are_short_again() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let warnings = || {
        let text = String::from_utf8(log.0.lock().expect("no panic").clone()).expect("text");
        text.lines().filter(|line| line.contains("WARN") && line.contains("provider=\"acme\"")).count()
    };

    let limiter = with(Provider::new("acme").warn_after(Duration::from_secs(2)), &["1/s unpaced guard 0"]);
    for round in 1..=2 {
        let calls: Vec<_> = (0..5)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move { limiter.acquire().await.map(|_| ()) })
            })
            .collect();
        for call in calls {
            call.await.expect("no panic").expect("served");
        }
        assert_eq!(warnings(), round, "waits of 2, 3 and 4 s");
        tokio::time::sleep(Duration::from_secs(5)).await;
        limiter.acquire().await.expect("at once");
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}
