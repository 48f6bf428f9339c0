//! How long loops of each priority waited.

use serde::Serialize;

use crate::{
    args::Args,
    clock::Nanos,
    figures::wait,
    mix::{CLASSES, NAMES},
    recorder::{Sent, Tally},
};

/// As JSON shows it. Waits are those that began after two windows.
#[derive(Serialize)]
pub struct Class {
    pub priority: &'static str,
    pub permits: usize,
    pub wait_p50_ms: f64,
    pub wait_p99_ms: f64,
    pub wait_max_ms: f64,
    /// The same in slots: the time in which the tightest limit allows one request.
    pub wait_p50_slots: f64,
    pub wait_p99_slots: f64,
    pub wait_max_slots: f64,
    /// Loops that waited when the run ended, and the longest of them.
    pub unserved: usize,
    pub unserved_max_ms: f64,
}

/// Of each priority that some loop has. `begun`: permits of those who began to wait after two windows; `rate`:
/// requests a second.
pub fn classes(args: &Args, tallies: &[Tally], begun: &[&Sent], rate: f64) -> Vec<Class> {
    let slots = |millis: f64| millis / 1e3 * rate;
    let class = |class: usize| {
        let waits = |part| wait(begun.iter().copied().filter(|sent| sent.class == class), part);
        let unserved = tallies.iter().flat_map(|tally| &tally.unserved).filter(|one| one.0 == class);
        let unserved: Vec<Nanos> = unserved.map(|(_, time)| *time).collect();
        Class {
            priority: NAMES[class],
            permits: begun.iter().filter(|sent| sent.class == class).count(),
            wait_p50_ms: waits(0.5),
            wait_p99_ms: waits(0.99),
            wait_max_ms: waits(1.0),
            wait_p50_slots: slots(waits(0.5)),
            wait_p99_slots: slots(waits(0.99)),
            wait_max_slots: slots(waits(1.0)),
            unserved: unserved.len(),
            unserved_max_ms: unserved.iter().max().map_or(0.0, |time| *time as f64 / 1e6),
        }
    };
    let has_loops = |class: &usize| (0..args.replicas).any(|replica| args.tasks_of(replica)[*class] > 0);
    (0..CLASSES).filter(has_loops).map(class).collect()
}
