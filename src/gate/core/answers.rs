//! What the store has said, and what follows for those who wait.

use super::{Core, Mail, Nothing, Patience, Permit, Stage, Ticket, Verdict, flights::PATROL};
use crate::{
    clock::Moment,
    ledger::{Answer, Booked, Costs, Micros, Refused, Rule},
    store::StoreError,
};

impl<W> Core<W> {
    /// The store has answered, or has not.
    pub fn answered(&mut self, now: Moment, answer: Result<Answer, StoreError>, mail: &mut Mail<W>) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return self.failed(now, &error, mail),
        };
        let Some(sent) = self.sent.take() else { return };
        self.link.heard(sent.at, now, answer.now);
        self.heard = sent.first.mono;
        self.generation = Some(answer.generation);
        self.closed |= sent.call.goodbye;

        // What the store calls far must be confirmed, whatever it looks like from here.
        let near = answer.decided + sent.call.reach();
        let far = |slot, class| slot > near && class > answer.highest;
        let (asked, kept): (Vec<_>, Vec<_>) =
            self.held.drain(..).partition(|permit| permit.stage == Stage::Asked);
        // What an earlier generation granted is not in this one: it must not fly.
        self.held.extend(kept.into_iter().filter(|permit| permit.generation == answer.generation));
        if sent.call.generation != Some(answer.generation) || answer.confirmed.contains(&None) {
            self.doubt_the_places(&sent.call.places);
        }
        // As of then: a repeated answer gives no places to what has come near since.
        let is_near = |slot| slot <= near;
        for (permit, slot) in asked.into_iter().zip(&answer.confirmed) {
            if let Some(slot) = *slot {
                let seated = permit.seated || is_near(slot);
                let booked = Booked { slot, far: far(slot, permit.booked.class), ..permit.booked };
                let permit = Permit::new(booked, now, sent.at, &answer, &self.link, &self.settings.rules);
                self.keep(self.flights.seat(permit, seated));
            }
        }
        let mut tickets = sent.asked.iter();
        for (want, outcome) in sent.call.wants.iter().zip(&answer.outcomes) {
            let mine: Vec<_> = tickets.by_ref().take(want.count as usize).collect();
            for (&slot, ticket) in outcome.slots.iter().zip(&mine) {
                let (costs, class) = (want.costs.clone(), want.class);
                let booked = Booked { slot, costs, class, far: far(slot, class) };
                let permit = Permit::new(booked, now, sent.at, &answer, &self.link, &self.settings.rules);
                let permit = self.flights.seat(permit, is_near(slot));
                // Granted, who would not wait waits for the reply's own way.
                self.queue.promise(**ticket, permit.due + self.link.lateness());
                if let Some(waiter) = self.queue.remove_if_before(**ticket, permit.due) {
                    let limit = answer.next.and_then(|next| next.limit).or(Some(0));
                    let retry_after = (permit.due - now.mono).max(1);
                    mail.push((waiter.handle, Verdict::Later { retry_after, limit }));
                }
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
        if sent.changes != self.changes {
            // It may have been decided by the limits that were in force before.
            self.give_up_all();
            return;
        }
        // First what is due: who would not wait is served by that or not at all.
        self.hand_out(now, mail);
        if let (Some(next), Some(want)) = (answer.next, sent.call.wants.last()) {
            let barren = answer.outcomes.iter().all(|outcome| outcome.slots.is_empty())
                && answer.confirmed.iter().flatten().next().is_none();
            // A place in flight comes back whenever a call ends.
            let any_time =
                next.limit.is_some_and(|limit| matches!(self.settings.rules[limit], Rule::Flight(_)));
            let before = if any_time { now.mono } else { self.link.local(next.at).0 };
            self.flights.in_line = any_time && answer.paced;
            let again = match any_time {
                // Who needs no place asks on as if nobody stood in the line.
                true if !barren && self.lacks_permits_without_places() => None,
                true => (self.flights.in_line && !sent.called_up).then_some(now.mono + PATROL),
                false => barren.then_some(before - self.link.confirm_lead()),
            };
            self.nothing = Some(Nothing {
                before,
                costs: want.costs.clone(),
                class: want.class,
                limit: next.limit,
                paced: answer.paced,
                again,
            });
            self.refuse_the_hopeless(now, mail);
        } else {
            // Who asks for nothing stands in no line.
            self.flights.in_line = false;
        }
    }

    /// Nobody waits longer for a store that does not answer than its timeout.
    fn failed(&mut self, now: Moment, error: &StoreError, mail: &mut Mail<W>) {
        self.abandoned();
        if let Some(sent) = &mut self.sent {
            sent.retry = now.mono + PATROL;
            self.flights.landed |= sent.landed;
        }
        // It does not stand there for long if it does not ask.
        self.flights.in_line = false;
        while let Some(waiter) = self.queue.pop_first() {
            mail.push((waiter.handle, Verdict::Store(error.clone())));
        }
        // It could not even leave: there is nothing more to be said.
        self.closed |= self.closing;
        if self.closed {
            self.returns.clear();
            self.held.clear();
            if !self.flights.flies() {
                self.sent = None;
                self.flights.landed = false;
            }
        }
    }

    fn later(&self, refused: &Refused, answer: &Answer) -> Verdict {
        Verdict::Later { retry_after: (refused.at - answer.now).max(1), limit: refused.limit }
    }

    /// What the store has just said settles it for some who queue.
    fn refuse_the_hopeless(&mut self, now: Moment, mail: &mut Mail<W>) {
        let mut covered = self.held.len();
        let mut ahead: Vec<_> = self.settings.rules.iter().map(|_| 0).collect();
        let mut hopeless = Vec::new();
        for (ticket, waiter) in self.queue.iter() {
            if covered > 0 && waiter.patience != Patience::Reject {
                covered -= 1;
                continue;
            }
            let patience = waiter.patience;
            match self.certain_to_miss(now.mono, &waiter.costs, ticket, patience, |limit| ahead[limit]) {
                Some(refusal) => hopeless.push((ticket, refusal)),
                None => ahead.iter_mut().zip(waiter.costs.iter()).for_each(|(ahead, cost)| *ahead += cost),
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
        costs: &Costs,
        ticket: Ticket,
        patience: Patience,
        ahead: impl Fn(usize) -> i64,
    ) -> Option<Verdict> {
        if let Some(refusal) = self.held_up(now, patience) {
            return Some(refusal);
        }
        let nothing = self.nothing.as_ref().filter(|nothing| {
            // Who goes first may have what others have booked.
            costs.covers(&nothing.costs) && self.queue.class(ticket) >= nothing.class
        })?;
        let queueing = nothing.limit.filter(|_| nothing.paced).map_or(0, |limit| match ahead(limit) {
            1.. => self.settings.rules[limit].spacing(ahead(limit)) - self.settings.guard,
            _ => 0,
        });
        let earliest = nothing.before + queueing.max(0);
        let bound = patience.bound(now);
        let refused = earliest > bound && earliest > now;
        refused.then(|| Verdict::Later { retry_after: earliest - now, limit: nothing.limit })
    }
}
