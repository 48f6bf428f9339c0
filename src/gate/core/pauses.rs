//! Pauses: what this replica has heard itself, what the bell tells, and what an answer tells.

use super::{Core, Mail, Patience, Permit, Stage, Verdict};
use crate::{
    clock::Moment,
    ledger::{Answer, Micros},
};

impl<W> Core<W> {
    /// Nothing is handed out before `until`, by our own clock. Only ever later.
    pub fn hold(&mut self, until: Micros) {
        self.stopped_until = self.stopped_until.max(until);
    }

    /// The store may have changed its mind: what it granted before must be confirmed before it flies, and so
    /// must what it grants in the answer that is still under way.
    pub fn doubt(&mut self) {
        self.doubts = self.doubts.wrapping_add(1);
        self.doubt_the_held();
        if let Some(sent) = &mut self.sent {
            sent.doubted = true;
        }
    }

    /// Whether a permit that was handed out may still fly, now that its caller has it.
    pub fn may_fly(&self, permit: &Permit, now: Moment) -> bool {
        permit.is_fresh(now) && permit.doubts == self.doubts && now.mono >= self.stopped_until()
    }

    pub(super) fn doubt_the_held(&mut self) {
        for permit in self.held.iter_mut().filter(|permit| permit.stage == Stage::Ready) {
            permit.stage = Stage::Late;
        }
    }

    /// The net under the bell: an answer tells the pause, and that of earlier ones what lies before it no
    /// longer holds. By the store's clock, so it is exact; that on ours refuses who cannot wait so long.
    pub(super) fn heed_the_pause(&mut self, answer: &Answer) {
        let swallowed =
            |permit: &&mut Permit| permit.stage == Stage::Ready && permit.booked.slot < answer.pause;
        for permit in self.held.iter_mut().filter(swallowed) {
            permit.stage = Stage::Late;
        }
        let until = self.link.local(answer.pause).0;
        self.hold(until);
        if self.settings.parts.is_empty() {
            // It can only be that of the provider.
            self.settings.common.hold(until);
        }
    }

    /// Who cannot wait until the end of a hold.
    pub(super) fn held_up(&self, now: Micros, patience: Patience) -> Option<Verdict> {
        let bound = patience.bound(now);
        let refused = now < self.stopped_until() && bound < self.stopped_until();
        refused.then(|| Verdict::Later { retry_after: self.stopped_until() - now, limit: None })
    }

    /// Those of them who queue are told at once.
    pub(super) fn refuse_the_held_up(&mut self, now: Micros, mail: &mut Mail<W>) {
        if now >= self.stopped_until() {
            return;
        }
        let retry_after = self.stopped_until() - now;
        let mut refuse = |handle| mail.push((handle, Verdict::Later { retry_after, limit: None }));
        while let Some(waiter) = self.queue.pop_overdue(self.stopped_until() - 1) {
            refuse(waiter.handle);
        }
        if self.queue.rejecting() > 0 {
            let rejecting = self.queue.iter().filter(|(_, waiter)| waiter.patience == Patience::Reject);
            for ticket in rejecting.map(|(ticket, _)| ticket).collect::<Vec<_>>() {
                if let Some(waiter) = self.queue.remove(ticket) {
                    refuse(waiter.handle);
                }
            }
        }
    }
}
