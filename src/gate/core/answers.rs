//! What the store has said, and what follows for those who wait.

use super::{Core, Mail, Nothing, Patience, Permit, Stage, Verdict};
use crate::{
    clock::Moment,
    ledger::{Answer, Micros, Refused},
    store::StoreError,
};

impl<W> Core<W> {
    /// The store has answered, or has not.
    pub fn answered(&mut self, now: Moment, answer: Result<Answer, StoreError>, mail: &mut Mail<W>) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.failed(&error, mail),
        };
        let Some(sent) = self.sent.take() else { return };
        self.link.heard(sent.at, now, answer.now);
        self.generation = Some(answer.generation);
        self.closed |= sent.call.goodbye;

        let (asked, kept): (Vec<_>, Vec<_>) =
            self.held.drain(..).partition(|permit| permit.stage == Stage::Asked);
        // What an earlier generation granted is not in this one: it must not fly.
        self.held.extend(kept.into_iter().filter(|permit| permit.generation == answer.generation));
        for (permit, slot) in asked.into_iter().zip(&answer.confirmed) {
            if let Some(slot) = *slot {
                self.keep(Permit::new(permit.booked.cost, slot, now, sent.at, &answer, &self.link));
            }
        }
        let mut tickets = sent.asked.iter();
        for (want, outcome) in sent.call.wants.iter().zip(&answer.outcomes) {
            let mine: Vec<_> = tickets.by_ref().take(want.count as usize).collect();
            for (&slot, ticket) in outcome.slots.iter().zip(&mine) {
                let permit = Permit::new(want.cost, slot, now, sent.at, &answer, &self.link);
                // Granted, who would not wait waits for the reply's own way.
                self.queue.promise(**ticket, permit.due + self.link.lateness());
                self.keep(permit);
            }
            let Some(refused) = outcome.refused else { continue };
            for ticket in mine.into_iter().skip(outcome.slots.len()) {
                if let Some(waiter) = self.queue.remove(*ticket) {
                    mail.push((waiter.handle, self.later(&refused, &answer)));
                }
            }
        }
        self.heed_the_pause(&answer);
        if sent.doubted {
            self.doubt_the_held();
        }
        // First what is due: who would not wait is served by that or not at all.
        self.hand_out(now, mail);
        if let (Some(next), Some(want)) = (answer.next, sent.call.wants.last()) {
            self.nothing = Some(Nothing {
                before: self.link.local(next.at).0,
                cost: want.cost,
                limit: next.limit,
                paced: answer.paced,
                barren: answer.outcomes.iter().all(|outcome| outcome.slots.is_empty())
                    && answer.confirmed.iter().flatten().next().is_none(),
            });
            self.refuse_the_hopeless(now, mail);
        }
    }

    /// Nobody waits longer for a store that does not answer than its timeout.
    fn failed(&mut self, error: &StoreError, mail: &mut Mail<W>) {
        self.abandoned();
        while let Some(waiter) = self.queue.pop_first() {
            mail.push((waiter.handle, Verdict::Store(error.clone())));
        }
        // It could not even leave: there is nothing more to be said.
        self.closed |= self.closing;
        if self.closed {
            self.sent = None;
            self.returns.clear();
            self.held.clear();
        }
    }

    fn later(&self, refused: &Refused, answer: &Answer) -> Verdict {
        Verdict::Later { retry_after: (refused.at - answer.now).max(1), limit: refused.limit }
    }

    /// What the store has just said settles it for some who queue.
    fn refuse_the_hopeless(&mut self, now: Moment, mail: &mut Mail<W>) {
        let mut covered = self.held.len();
        let (mut ahead, mut hopeless) = (0, Vec::new());
        for (ticket, waiter) in self.queue.iter() {
            if covered > 0 && waiter.patience != Patience::Reject {
                covered -= 1;
                continue;
            }
            match self.certain_to_miss(now.mono, waiter.cost, waiter.patience, ahead) {
                Some(refusal) => hopeless.push((ticket, refusal)),
                None => ahead += waiter.cost,
            }
        }
        for (ticket, refusal) in hopeless {
            if let Some(waiter) = self.queue.remove(ticket) {
                mail.push((waiter.handle, refusal));
            }
        }
    }

    /// Whether even alone with those ahead of it here a caller would be too late. A bound from below: never
    /// refuses one that could have been served.
    pub(super) fn certain_to_miss(
        &self,
        now: Micros,
        cost: i64,
        patience: Patience,
        ahead: i64,
    ) -> Option<Verdict> {
        if let Some(refusal) = self.held_up(now, patience) {
            return Some(refusal);
        }
        let nothing = self.nothing.filter(|nothing| cost >= nothing.cost)?;
        let queueing = match nothing.limit.filter(|_| nothing.paced && ahead > 0) {
            Some(limit) => self.settings.rules[limit].spacing(ahead) - self.settings.guard,
            None => 0,
        };
        let earliest = nothing.before + queueing.max(0);
        let bound = patience.bound(now);
        let refused = earliest > bound && earliest > now;
        refused.then(|| Verdict::Later { retry_after: earliest - now, limit: nothing.limit })
    }
}
