//! A caller's place in the queue, freed when the caller goes away.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Gate, Patience, Permit, Ticket, Verdict};
use crate::ledger::Micros;

/// Dropped, it leaves nothing behind: the place is free, and a permit already on its way goes to the next.
pub struct Place {
    gate: Arc<Gate>,
    ticket: Ticket,
    told: oneshot::Receiver<Verdict>,
    done: bool,
}

impl Place {
    pub fn take(gate: &Arc<Gate>, cost: i64, patience: Patience) -> Result<Self, Verdict> {
        let (handle, told) = oneshot::channel();
        let now = gate.clock.now().mono;
        let ticket = gate.change(|core| core.arrive(now, cost, patience, handle))?;
        Ok(Self { gate: gate.clone(), ticket, told, done: false })
    }

    /// What the gate says. Survives the end of the runtime that drove it: the next caller takes over.
    pub async fn verdict(&mut self) -> Result<Permit, Verdict> {
        loop {
            let orphaned = self.gate.orphaned.notified();
            tokio::pin!(orphaned);
            orphaned.as_mut().enable();
            self.gate.change(|_| ());
            let told = tokio::select! {
                told = &mut self.told => told,
                () = orphaned => continue,
            };
            self.done = true;
            return match told.unwrap_or(Verdict::Closed) {
                Verdict::Granted(permit) => Ok(permit),
                refused => Err(refused),
            };
        }
    }

    /// The permit came to hand too late: back into the queue, at the old place.
    pub fn retake(&mut self, cost: i64, arrived: Micros, patience: Patience, permit: Permit) {
        let (handle, told) = oneshot::channel();
        let ticket = self.ticket;
        self.gate.change(|core| core.came_late(ticket, cost, arrived, patience, handle, permit));
        (self.told, self.done) = (told, false);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.told.close();
        match self.told.try_recv() {
            Ok(Verdict::Granted(permit)) => self.gate.give_back(permit),
            _ => _ = self.gate.change(|core| core.leave(self.ticket)),
        }
    }
}
