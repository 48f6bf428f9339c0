//! A caller's place in the queue, freed when the caller goes away.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Ask, Gate, Permit, Ticket, Verdict};
use crate::{clock::Moment, ledger::Micros};

/// Dropped, it leaves nothing behind: the place is free, and a permit already on its way goes to the next.
pub struct Place {
    gate: Arc<Gate>,
    ticket: Ticket,
    told: oneshot::Receiver<Verdict>,
    done: bool,
}

impl Place {
    pub fn take(gate: &Arc<Gate>, ask: Ask) -> Result<Self, Verdict> {
        let (handle, told) = oneshot::channel();
        let now = gate.clock.mono();
        let ticket = gate.change(|core| core.arrive(now, ask, handle))?;
        Ok(Self { gate: gate.clone(), ticket, told, done: false })
    }

    /// The place that a permit came from, to have it exchanged.
    pub fn retake(gate: &Arc<Gate>, ask: &Ask, permit: Permit) -> Self {
        let (handle, told) = oneshot::channel();
        let ticket = permit.ticket;
        let waiter = ask.waiter(gate.clock.mono(), handle);
        gate.change(|core| core.renew(ticket, waiter, permit));
        Self { gate: gate.clone(), ticket, told, done: false }
    }

    /// What the gate says. Survives the end of the runtime that drove it: the next caller takes over.
    pub async fn verdict(&mut self) -> Result<Permit, Verdict> {
        let told = loop {
            if let Ok(told) = self.told.try_recv() {
                break told;
            }
            let orphaned = self.gate.orphaned.notified();
            tokio::pin!(orphaned);
            orphaned.as_mut().enable();
            self.gate.change(|_| ());
            tokio::select! {
                told = &mut self.told => break told.unwrap_or(Verdict::Closed),
                () = orphaned => {}
            }
        };
        self.done = true;
        match told {
            Verdict::Granted(mut permit) => {
                permit.ticket = self.ticket;
                Ok(permit)
            }
            refused => Err(refused),
        }
    }

    /// The permit came to hand when it might no longer fly: back into the queue, at the old place.
    pub fn came_late(&mut self, now: Moment, ask: &Ask, arrived: Micros, permit: Permit) {
        let (handle, told) = oneshot::channel();
        let waiter = ask.waiter(arrived, handle);
        self.gate.change(|core| core.came_late(now, self.ticket, waiter, permit));
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
