//! A pause that this replica has heard of.

use std::sync::Arc;

use super::Gate;
use crate::ledger::Micros;

impl Gate {
    /// Nothing is handed out before `until`, of the monotonic clock. Needs no store.
    pub fn hold(self: &Arc<Self>, until: Micros) {
        self.change(|core| core.hold(until));
    }

    /// What the store has granted so far must be confirmed before it flies.
    pub fn doubt(self: &Arc<Self>) {
        self.change(|core| core.doubt());
    }
}
