//! A pause that this replica has heard of: it stops at once, and tells the others.

use std::sync::Arc;

use super::Gate;
use crate::{ledger::Micros, store::StoreError};

impl Gate {
    /// Nothing is handed out before `until`, of the monotonic clock. Needs no store.
    pub fn hold(self: &Arc<Self>, until: Micros) {
        self.change(|core| core.hold(until));
    }

    /// What the store has granted so far must be confirmed before it flies.
    pub fn doubt(self: &Arc<Self>) {
        self.change(|core| core.doubt());
    }

    /// Nobody sends for `time` from now: here at once, elsewhere as soon as the store knows. Tells what is left of
    /// it there. A caller who goes away meanwhile stops nothing: the pause is on its way.
    pub async fn pause(self: &Arc<Self>, time: Micros) -> Result<Micros, StoreError> {
        let heard = self.clock.now().mono;
        self.hold(heard.saturating_add(time));
        let gate = self.clone();
        let stored = tokio::spawn(async move {
            let left = gate.store.pause(&gate.quota, time).await;
            if let Ok(left) = left {
                // Somebody else's may be longer.
                gate.hold(heard.saturating_add(left));
            }
            // Without an answer it may be stored all the same.
            gate.doubt();
            left
        });
        stored
            .await
            .unwrap_or_else(|_| Err(StoreError::answer("the runtime ended before the pause was stored")))
    }
}
