//! What the gate asks of the store, and when.

use super::{Core, MOST_WANTS, Patience, Permit, Sent, Stage, Ticket};
use crate::{
    clock::Moment,
    ledger::{Call, Micros, Want},
};

impl<W> Core<W> {
    pub(super) fn next_call(&mut self, now: Moment) -> Option<Call> {
        if let Some(sent) = &mut self.sent {
            if sent.under_way || (self.queue.len() == 0 && !self.closing) {
                return None;
            }
            sent.under_way = true;
            sent.at = now;
            // The store may repeat what it said the first time.
            sent.doubted = true;
            return Some(sent.call.clone());
        }
        let lead = self.link.confirm_lead();
        self.drop_surplus();
        let confirm = |permit: &Permit| permit.needs_confirming(now.mono, lead);
        let confirming = self.held.iter().any(confirm);
        let asking = self.wants_more(now, confirming, lead);
        let goodbye = self.closing && !self.closed;
        if !(confirming || asking || goodbye || !self.returns.is_empty() || (self.hello && !self.closing)) {
            return None;
        }
        let mut call = Call {
            member: self.settings.member,
            generation: self.generation,
            lead: self.link.lead(),
            late: self.link.late(),
            horizon: self.link.horizon(),
            goodbye,
            ..Call::default()
        };
        let generation = self.generation;
        if !self.returns.is_empty() {
            // Room comes back: what the store said before no longer holds.
            self.nothing = None;
        }
        call.returns.extend(
            self.returns
                .drain(..)
                .filter(|permit| Some(permit.generation) == generation)
                .map(|permit| permit.booked),
        );
        for permit in self.held.iter_mut().filter(|permit| confirm(permit)) {
            permit.stage = Stage::Asked;
            call.confirms.push(permit.booked);
        }
        let asked = if asking { self.fill_wants(now, &mut call.wants) } else { Vec::new() };
        call.more = self.queue.len() > asked.len();
        self.number += 1;
        call.number = self.number;
        self.hello = false;
        self.sent = Some(Sent { call: call.clone(), at: now, under_way: true, doubted: false, asked });
        Some(call)
    }

    /// Far permits whose callers have gone are returned at once: until then they take room from others. Near
    /// ones wait for the next caller.
    fn drop_surplus(&mut self) {
        for at in (0..self.held.len()).rev() {
            let permit = &self.held[at];
            let unwanted = permit.stage != Stage::Asked && (permit.is_far() || permit.stage == Stage::Late);
            if unwanted && self.held_of(permit.booked.cost) > self.queue.count_of(permit.booked.cost) {
                self.returns.extend(self.held.remove(at));
            }
        }
    }

    fn held_of(&self, cost: i64) -> usize {
        self.held.iter().filter(|permit| permit.booked.cost == cost).count()
    }

    /// Whether somebody waits for whom no permit is held: a permit serves only its own cost.
    pub(super) fn lacks_permits(&self) -> bool {
        self.queue.costs().any(|(cost, count)| count > self.held_of(cost))
    }

    fn wants_more(&self, now: Moment, confirming: bool, lead: Micros) -> bool {
        if self.queue.rejecting() > 0 {
            return true;
        }
        if !self.lacks_permits() {
            return false;
        }
        // One far slot at a time: with two a replica would hold a double share for good.
        let far = |permit: &Permit| permit.is_far() && !permit.needs_confirming(now.mono, lead);
        if self.held.iter().any(far) {
            return false;
        }
        // Its confirmation asks for the next in the same call: two calls per slot otherwise.
        confirming || self.ask_at().is_none_or(|at| at <= now.mono)
    }

    /// When to ask for more while enough callers wait: shortly before the last permit at hand is due, but not
    /// before there is something to be had. `None`: at once.
    pub(super) fn ask_at(&self) -> Option<Micros> {
        let last = self.held.iter().rfind(|permit| !permit.is_far());
        let refill = last.map(|last| last.due - self.link.refill());
        let barren = self.nothing.filter(|nothing| nothing.barren);
        let again = barren.map(|nothing| nothing.before - self.link.confirm_lead());
        refill.into_iter().chain(again).max()
    }

    /// Everybody for whom no permit is held yet.
    fn fill_wants(&self, now: Moment, wants: &mut Vec<Want>) -> Vec<Ticket> {
        let mut covered: Vec<(i64, usize)> = Vec::new();
        for permit in &self.held {
            match covered.iter_mut().find(|(cost, _)| *cost == permit.booked.cost) {
                Some((_, count)) => *count += 1,
                None => covered.push((permit.booked.cost, 1)),
            }
        }
        let mut asked = Vec::new();
        for (ticket, waiter) in self.queue.iter() {
            let same = covered.iter_mut().find(|(cost, left)| *cost == waiter.cost && *left > 0);
            // Who will not wait is not served by a permit that is not due yet.
            if let Some((_, left)) = same.filter(|_| waiter.patience != Patience::Reject) {
                *left -= 1;
                continue;
            }
            if asked.len() == MOST_WANTS {
                break;
            }
            let budget = match waiter.patience {
                Patience::Reject => 0,
                Patience::Until(deadline) => (deadline - now.mono - self.link.half()).max(0),
            };
            match wants.last_mut().filter(|want| want.cost == waiter.cost && want.budget == Some(budget)) {
                Some(want) => want.count += 1,
                None => wants.push(Want { cost: waiter.cost, budget: Some(budget), count: 1 }),
            }
            asked.push(ticket);
        }
        asked
    }
}
