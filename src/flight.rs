//! A call in flight.

use std::sync::Arc;

use crate::{gate::Gate, ledger::Costs, store::is_in_flight};

/// The places that a call has under limits of calls in flight: dropped, they are free.
pub struct Flight(Option<(Arc<Gate>, Costs)>);

impl Flight {
    pub fn new(gate: &Arc<Gate>, costs: &Costs) -> Self {
        let mut counted = gate.quota.limits().zip(costs.iter());
        let takes = gate.flies && counted.any(|(limit, cost)| cost > 0 && is_in_flight(limit));
        Self(takes.then(|| (gate.clone(), costs.clone())))
    }

    /// For what has no place of its own.
    pub fn none() -> Self {
        Self(None)
    }

    /// The call never set out: its permit goes back, and the places with it.
    pub fn call_off(mut self) {
        self.0 = None;
    }

    /// Whether there is a place to be freed.
    #[cfg(feature = "middleware")]
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some((gate, costs)) = self.0.take() {
            gate.landed(&costs);
        }
    }
}
