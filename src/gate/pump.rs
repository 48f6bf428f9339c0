//! The task that drives a gate while it has something to do. One timer, no ticks.

use std::{future::pending, pin::Pin, sync::Arc};

use super::{Caller, Gate, Mail, Next, Verdict};
use crate::{
    ledger::Answer,
    store::{MemoryStore, StoreError},
};

type Flight = Pin<Box<dyn Future<Output = Result<Option<Answer>, StoreError>> + Send>>;

pub async fn run(watch: Watch) {
    let gate = &watch.gate;
    let mut flight: Option<Flight> = None;
    let mut bell = gate.bell.clone();
    // What has rung so far is known as soon as the gate is locked.
    bell.as_mut().map(|bell| *bell.borrow_and_update());
    loop {
        let (next, returned) = turn(gate);
        if next.idle {
            return;
        }
        if let Some(call) = next.call {
            let gate = gate.clone();
            flight = Some(Box::pin(async move { gate.store.book(&gate.quota, &call).await }));
        }
        if returned {
            continue;
        }
        let wake = next.wake.map(|wake| tokio::time::sleep_until(gate.clock.instant(wake)));
        tokio::select! {
            answer = async { match &mut flight { Some(flight) => flight.await, None => pending().await } } => {
                flight = None;
                hear(gate, answer);
            }
            () = async { match wake { Some(wake) => wake.await, None => pending().await } } => {}
            () = gate.nudge.notified() => {}
            alive = async { match &mut bell { Some(bell) => bell.changed().await, None => pending().await } } => {
                bell = bell.filter(|_| alive.is_ok());
            }
        }
    }
}

/// All that can be done without waiting, with a store that answers at once: the usual call then costs no task
/// and no timer. Whether nothing is left to do.
pub fn settle(watch: &Watch, store: &MemoryStore) -> bool {
    let gate = &watch.gate;
    loop {
        let (next, returned) = turn(gate);
        if next.idle {
            return true;
        }
        if let Some(call) = next.call {
            hear(gate, store.decide(&gate.quota, &call));
        } else if !returned {
            return false;
        }
    }
}

/// What is to be done now, and whether a permit came back meanwhile.
fn turn(gate: &Gate) -> (Next, bool) {
    let mut mail = Mail::new();
    let next = {
        let mut state = gate.lock();
        let next = state.core.poll(gate.clock.now(), &mut mail);
        // Under the same lock as the decision: who comes after it starts another pump.
        state.pumping = !next.idle;
        next
    };
    (next, deliver(gate, mail))
}

fn hear(gate: &Gate, answer: Result<Option<Answer>, StoreError>) {
    let mut mail = Mail::new();
    let closed = {
        let mut state = gate.lock();
        match answer.transpose() {
            Some(answer) => state.core.answered(gate.clock.now(), answer, &mut mail),
            None => state.core.undecided(),
        }
        state.core.is_closed()
    };
    deliver(gate, mail);
    // With calls in flight the pump goes on after that.
    if closed {
        gate.orphaned.notify_waiters();
    }
}

/// Hands verdicts out with no lock held. Whether a permit came back because its caller had just left.
fn deliver(gate: &Gate, mail: Mail<Caller>) -> bool {
    let mut returned = false;
    for (caller, verdict) in mail {
        if let Err(Verdict::Granted(permit)) = caller.send(verdict) {
            gate.lock().core.give_back(permit);
            returned = true;
        }
    }
    returned
}

/// Notices the end of the pump, also when its runtime drops it half-way.
pub struct Watch {
    gate: Arc<Gate>,
}

impl Watch {
    pub fn new(gate: Arc<Gate>) -> Self {
        Self { gate }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        if state.pumping {
            state.pumping = false;
            state.core.abandoned();
        }
        drop(state);
        self.gate.orphaned.notify_waiters();
    }
}
