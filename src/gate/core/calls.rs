//! What the gate asks of the store, and when.

use std::collections::HashMap;

use super::{Core, MOST_WANTS, Patience, Permit, Sent, Stage, Ticket};
use crate::{
    clock::Moment,
    ledger::{Call, Costs, Micros, Want},
};

impl<W> Core<W> {
    pub(super) fn next_call(&mut self, now: Moment) -> Option<Call> {
        self.forget_the_lost(now);
        let goodbye = self.closing && !self.closed;
        let retrying = self.retry_at().is_some_and(|at| at <= now.mono);
        if let Some(sent) = &mut self.sent {
            if sent.under_way || (self.queue.len() == 0 && !goodbye && !retrying) {
                return None;
            }
            sent.under_way = true;
            sent.at = now;
            // The store may repeat what it said the first time.
            sent.doubted = true;
            sent.called_up = true;
            return Some(sent.call.clone());
        }
        let lead = self.link.confirm_lead();
        self.drop_surplus();
        let landed = self.flights.landed;
        let owing = !self.returns.is_empty() || !self.settles.is_empty() || landed;
        if owing {
            // Room comes back: what the store said before no longer holds, and what is far may be had sooner.
            self.nothing = None;
            self.doubt_the_far();
        }
        let confirm = |permit: &Permit| permit.needs_confirming(now.mono, lead);
        let confirming = self.held.iter().any(confirm);
        let renewing = self.renew_at().is_some_and(|at| at <= now.mono);
        let asking = self.wants_more(now, confirming || renewing, lead);
        let leaving = self.flights.in_line && !asking && !self.wants_more(now, true, lead);
        let greeting = self.hello && !self.closing;
        if !(renewing || confirming || asking || leaving || goodbye || owing || greeting) {
            return None;
        }
        let mut call = Call {
            member: self.settings.member,
            generation: self.generation,
            lead: self.link.lead(),
            late: self.link.late(),
            horizon: self.link.horizon(),
            // Also of what it tells after that: nobody shares with it any more.
            goodbye: self.closing,
            places: self.places(),
            parts: self.settings.parts.clone(),
            ..Call::default()
        };
        // What an earlier generation granted is not in this one.
        let known = self.generation;
        let ours = |generation| Some(generation) == known;
        let returns = self.returns.drain(..).filter(|(generation, _)| ours(*generation));
        call.returns.extend(returns.map(|(_, permit)| permit));
        let settles = self.settles.drain(..).filter(|(generation, _)| ours(*generation));
        call.settles.extend(settles.map(|(_, change)| change));
        for permit in self.held.iter_mut().filter(|permit| confirm(permit)) {
            permit.stage = Stage::Asked;
            call.confirms.push(self.flights.missing(permit));
        }
        let asked = if asking { self.fill_wants(now, &mut call.wants) } else { Vec::new() };
        call.more = self.queue.len() > asked.len();
        self.number += 1;
        call.number = self.number;
        self.hello = false;
        self.sent = Some(Sent {
            call: call.clone(),
            at: now,
            first: now,
            under_way: true,
            retry: now.mono,
            doubted: false,
            called_up: false,
            landed,
            changes: self.changes,
            asked,
        });
        Some(call)
    }

    /// Far permits whose callers have gone are returned at once: until then they take room from others. Near
    /// ones wait for the next caller.
    fn drop_surplus(&mut self) {
        for at in (0..self.held.len()).rev() {
            let permit = &self.held[at];
            let unwanted = permit.stage != Stage::Asked && (permit.is_far() || permit.stage == Stage::Late);
            if unwanted && self.held_of(&permit.booked.costs) > self.queue.count_of(&permit.booked.costs) {
                let permit = self.held.remove(at);
                permit.into_iter().for_each(|permit| self.give_up(permit));
            }
        }
    }

    fn doubt_the_far(&mut self) {
        let far = |permit: &&mut Permit| permit.stage == Stage::Ready && permit.is_far();
        self.held.iter_mut().filter(far).for_each(|permit| permit.stage = Stage::Late);
    }

    pub(super) fn held_of(&self, costs: &Costs) -> usize {
        self.held.iter().filter(|permit| permit.booked.costs == *costs).count()
    }

    /// Whether somebody waits for whom no permit is held: a permit serves only its own costs.
    pub(super) fn lacks_permits(&self) -> bool {
        self.queue.costs().any(|(costs, count)| count > self.held_of(costs))
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
        let again = self.nothing.as_ref().and_then(|nothing| nothing.again);
        refill.into_iter().chain(again).max()
    }

    /// Everybody for whom no permit is held yet.
    fn fill_wants(&self, now: Moment, wants: &mut Vec<Want>) -> Vec<Ticket> {
        let mut covered: HashMap<Costs, usize> = HashMap::new();
        for permit in &self.held {
            *covered.entry(permit.booked.costs.clone()).or_default() += 1;
        }
        let mut asked = Vec::new();
        for (ticket, waiter) in self.queue.iter() {
            let same = covered.get_mut(&waiter.costs).filter(|left| **left > 0);
            // Who will not wait is not served by a permit that is not due yet.
            if let Some(left) = same.filter(|_| waiter.patience != Patience::Reject) {
                *left -= 1;
                continue;
            }
            if asked.len() == MOST_WANTS {
                break;
            }
            let class = self.queue.class(ticket);
            let budget = match waiter.patience {
                Patience::Reject => 0,
                Patience::Until(deadline) => coarse((deadline - now.mono - self.link.half()).max(0)),
            };
            match wants.last_mut().filter(|want| {
                want.costs == waiter.costs && want.class == class && want.budget == Some(budget)
            }) {
                Some(want) => want.count += 1,
                None => {
                    let costs = waiter.costs.clone();
                    wants.push(Want { costs, class, budget: Some(budget), count: 1 });
                }
            }
            asked.push(ticket);
        }
        asked
    }
}

/// A budget, or up to an eighth more: callers who came one after the other are one want, which the store answers in the
/// time of one. Whom that grants too late a slot the gate refuses.
fn coarse(budget: Micros) -> Micros {
    let step = i64::try_from((budget as u64 / 16).next_power_of_two()).unwrap_or(1);
    budget.div_euclid(step).saturating_add(1).saturating_mul(step)
}
