//! What all gates of a provider have in common.

use std::sync::{
    Arc,
    atomic::{
        AtomicI64, AtomicU64, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
};

use super::link::Way;
use crate::ledger::Micros;

/// Gates come and go with their scopes; this stays.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// To the store.
    pub way: Way,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Counts {
    queued: AtomicUsize,
    stopped_until: AtomicI64,
    late: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            queued: AtomicUsize::new(0),
            stopped_until: AtomicI64::new(Micros::MIN),
            late: AtomicU64::new(0),
        }
    }
}

impl Common {
    /// Callers that wait.
    pub fn queued(&self) -> usize {
        self.counts.queued.load(Relaxed)
    }

    pub(super) fn came(&self) {
        self.counts.queued.fetch_add(1, Relaxed);
    }

    pub(super) fn went(&self, callers: usize) {
        self.counts.queued.fetch_sub(callers, Relaxed);
    }

    /// Nothing is handed out before this.
    pub fn stopped_until(&self) -> Micros {
        self.counts.stopped_until.load(SeqCst)
    }

    /// Only ever later.
    pub fn hold(&self, until: Micros) {
        self.counts.stopped_until.fetch_max(until, SeqCst);
    }

    /// Permits that came to hand too late and were exchanged.
    pub fn late(&self) -> u64 {
        self.counts.late.load(Relaxed)
    }

    pub(super) fn was_late(&self) {
        self.counts.late.fetch_add(1, Relaxed);
    }
}
