//! The gate as a pure state machine: who waits, which permits are held, what to ask of the store next.
//! Time is an argument; what it wants done it returns. `Gate` drives it on tokio, the simulation in
//! virtual time.

use std::collections::VecDeque;

use super::{
    link::Link,
    permit::{Permit, Stage},
    queue::{Patience, Queue, Ticket, Waiter},
};
use crate::{
    clock::Moment,
    ledger::{Answer, Call, Generation, Micros, Refused, Rule, Want},
    store::StoreError,
};

/// Callers asked for in one call; the rest go into the next.
const MOST_WANTS: usize = 1_024;

/// What a gate is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    pub member: u64,
    /// The limits that are booked together. The resets of calendars do not matter here.
    pub rules: Vec<Rule>,
    /// The smallest guard among them.
    pub guard: Micros,
    /// Callers that may wait.
    pub queue: usize,
}

/// What a caller is told. Waits in microseconds.
#[derive(Debug)]
pub enum Verdict {
    Granted(Permit),
    /// Not now: try again after `retry_after`. `limit`: which one; `None`: the provider is paused.
    Later {
        retry_after: Micros,
        limit: Option<usize>,
    },
    /// Never: the limit admits less at once.
    Never {
        limit: usize,
    },
    /// This replica asks too fast.
    Ceiling {
        retry_after: Micros,
    },
    QueueFull,
    Closed,
    Store(StoreError),
}

/// What to do next.
#[derive(Debug, Default)]
pub struct Next {
    pub call: Option<Call>,
    /// When to look again, if nothing happens before.
    pub wake: Option<Micros>,
    /// Nothing is held, queued or under way: nobody needs to look until the next caller comes.
    pub idle: bool,
}

/// Verdicts on their way to callers, to be delivered when no lock is held.
pub type Mail<W> = Vec<(W, Verdict)>;

#[derive(Debug)]
pub struct Core<W> {
    settings: Settings,
    link: Link,
    queue: Queue<W>,
    tickets: Ticket,
    /// In the order of their slots.
    held: VecDeque<Permit>,
    returns: Vec<Permit>,
    /// The call under way, or, after a failure, the one to be sent again before anything new: it may have
    /// been carried out, and by its number the store then tells what was booked.
    sent: Option<Sent>,
    number: i64,
    generation: Option<Generation>,
    nothing: Option<Nothing>,
    hello: bool,
    closing: bool,
    closed: bool,
    /// Permits that came to hand too late and were exchanged.
    late: u64,
}

#[derive(Debug)]
struct Sent {
    call: Call,
    at: Moment,
    under_way: bool,
    asked: Vec<Ticket>,
}

/// The store's last "nothing before", on our clock.
#[derive(Clone, Copy, Debug)]
struct Nothing {
    before: Micros,
    /// It holds for callers that want no less.
    cost: i64,
    limit: Option<usize>,
    paced: bool,
    /// The answer granted nothing at all: asking again sooner is of no use.
    barren: bool,
}

impl<W> Core<W> {
    pub fn new(settings: Settings) -> Self {
        Self {
            link: Link::new(settings.guard),
            settings,
            queue: Queue::new(),
            tickets: 0,
            held: VecDeque::new(),
            returns: Vec::new(),
            sent: None,
            number: 0,
            generation: None,
            nothing: None,
            hello: true,
            closing: false,
            closed: false,
            late: 0,
        }
    }

    pub fn late(&self) -> u64 {
        self.late
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// A caller comes. What is certain already is said at once.
    pub fn arrive(
        &mut self,
        now: Micros,
        cost: i64,
        patience: Patience,
        handle: W,
    ) -> Result<Ticket, Verdict> {
        if self.closing {
            return Err(Verdict::Closed);
        }
        if let Some(limit) = self.settings.rules.iter().position(|rule| cost > rule.max()) {
            return Err(Verdict::Never { limit });
        }
        if self.queue.len() >= self.settings.queue {
            return Err(Verdict::QueueFull);
        }
        let booked: i64 = self.held.iter().map(|permit| permit.booked.cost).sum();
        if let Some(refusal) = self.certain_to_miss(now, cost, patience, self.queue.cost() - booked) {
            return Err(refusal);
        }
        self.tickets += 1;
        self.queue.push(self.tickets, Waiter { cost, arrived: now, patience, handle });
        Ok(self.tickets)
    }

    /// A caller gives up. Whether it was still waiting.
    pub fn leave(&mut self, ticket: Ticket) -> bool {
        self.queue.remove(ticket).is_some()
    }

    /// A permit comes back unused. While it is fresh the next caller may have it.
    pub fn give_back(&mut self, permit: Permit) {
        if permit.stage == Stage::Ready {
            self.hold(permit);
        } else {
            self.returns.push(permit);
        }
    }

    /// A permit came to hand too late to fly: its caller takes its place again, and the slot is exchanged.
    pub fn came_late(
        &mut self,
        ticket: Ticket,
        cost: i64,
        arrived: Micros,
        patience: Patience,
        handle: W,
        mut permit: Permit,
    ) {
        permit.stage = Stage::Late;
        self.late += 1;
        self.hold(permit);
        self.queue.push(ticket, Waiter { cost, arrived, patience, handle });
    }

    /// Gives everything back and says goodbye.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Whoever was to send the call or hear its answer is gone.
    pub fn abandoned(&mut self) {
        if let Some(sent) = &mut self.sent {
            sent.under_way = false;
        }
    }

    /// Hands out what is due and says what to do next.
    pub fn poll(&mut self, now: Moment, mail: &mut Mail<W>) -> Next {
        if self.closing {
            while let Some(waiter) = self.queue.pop_first() {
                mail.push((waiter.handle, Verdict::Closed));
            }
            let (asked, free): (Vec<_>, Vec<_>) =
                self.held.drain(..).partition(|permit| permit.stage == Stage::Asked);
            self.held.extend(asked);
            self.returns.extend(free);
        }
        self.hand_out(now, mail);
        while let Some(waiter) = self.queue.pop_overdue(now.mono) {
            let before = self.nothing.map_or(now.mono, |nothing| nothing.before);
            let limit = self.nothing.map_or(Some(0), |nothing| nothing.limit);
            mail.push((waiter.handle, Verdict::Later { retry_after: (before - now.mono).max(1), limit }));
        }
        let call = self.next_call(now);
        let idle =
            self.sent.is_none() && self.queue.len() == 0 && self.held.is_empty() && self.returns.is_empty();
        Next { call, wake: self.wake(now), idle: idle && (!self.closing || self.closed) }
    }

    /// Permits whose slot has come go to the first callers that want their cost; what nobody wants goes back.
    fn hand_out(&mut self, now: Moment, mail: &mut Mail<W>) {
        let mut at = 0;
        while at < self.held.len() && self.held[at].due <= now.mono {
            if self.held[at].stage != Stage::Ready {
                at += 1;
            } else if !self.held[at].is_fresh(now) && self.queue.count_of(self.held[at].booked.cost) > 0 {
                self.held[at].stage = Stage::Late;
                self.late += 1;
            } else if let Some(mut permit) = self.held.remove(at) {
                match self.queue.pop_cost(permit.booked.cost) {
                    Some(waiter) => {
                        permit.waited = now.mono - waiter.arrived;
                        mail.push((waiter.handle, Verdict::Granted(permit)));
                    }
                    None => self.returns.push(permit),
                }
            }
        }
    }

    fn next_call(&mut self, now: Moment) -> Option<Call> {
        if let Some(sent) = &mut self.sent {
            if sent.under_way || (self.queue.len() == 0 && !self.closing) {
                return None;
            }
            sent.under_way = true;
            sent.at = now;
            return Some(sent.call.clone());
        }
        let lead = self.link.confirm_lead();
        self.drop_surplus(now, lead);
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
        self.sent = Some(Sent { call: call.clone(), at: now, under_way: true, asked });
        Some(call)
    }

    /// Far permits that nobody will want are returned instead of confirmed.
    fn drop_surplus(&mut self, now: Moment, lead: Micros) {
        for at in (0..self.held.len()).rev() {
            let cost = self.held[at].booked.cost;
            let same = || self.held.iter().filter(|other| other.booked.cost == cost).count();
            if self.held[at].needs_confirming(now.mono, lead) && same() > self.queue.count_of(cost) {
                self.returns.extend(self.held.remove(at));
            }
        }
    }

    fn wants_more(&self, now: Moment, confirming: bool, lead: Micros) -> bool {
        if self.queue.rejecting() > 0 {
            return true;
        }
        if self.queue.len() <= self.held.len() {
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
    fn ask_at(&self) -> Option<Micros> {
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
                self.hold(Permit::new(permit.booked.cost, slot, now, sent.at, &answer, &self.link));
            }
        }
        let mut tickets = sent.asked.iter();
        for (want, outcome) in sent.call.wants.iter().zip(&answer.outcomes) {
            let mine: Vec<_> = tickets.by_ref().take(want.count as usize).collect();
            for (&slot, ticket) in outcome.slots.iter().zip(&mine) {
                let permit = Permit::new(want.cost, slot, now, sent.at, &answer, &self.link);
                // Granted, who would not wait waits for the reply's own way.
                self.queue.promise(**ticket, permit.due + self.link.lateness());
                self.hold(permit);
            }
            let Some(refused) = outcome.refused else { continue };
            for ticket in mine.into_iter().skip(outcome.slots.len()) {
                if let Some(waiter) = self.queue.remove(*ticket) {
                    mail.push((waiter.handle, self.later(&refused, &answer)));
                }
            }
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
    fn certain_to_miss(&self, now: Micros, cost: i64, patience: Patience, ahead: i64) -> Option<Verdict> {
        let nothing = self.nothing.filter(|nothing| cost >= nothing.cost)?;
        let queueing = match nothing.limit.filter(|_| nothing.paced && ahead > 0) {
            Some(limit) => self.settings.rules[limit].spacing(ahead) - self.settings.guard,
            None => 0,
        };
        let earliest = nothing.before + queueing.max(0);
        let bound = match patience {
            Patience::Reject => now,
            Patience::Until(deadline) => deadline,
        };
        let refused = earliest > bound && earliest > now;
        refused.then(|| Verdict::Later { retry_after: earliest - now, limit: nothing.limit })
    }

    fn hold(&mut self, permit: Permit) {
        let at = self.held.partition_point(|other| other.due <= permit.due);
        self.held.insert(at, permit);
    }

    fn wake(&self, now: Moment) -> Option<Micros> {
        let free = self.sent.is_none();
        let lead = self.link.confirm_lead();
        let held = self
            .held
            .iter()
            .filter(|permit| permit.stage == Stage::Ready)
            .map(|permit| if permit.is_far() { permit.due - lead } else { permit.due });
        let ask = if free && self.queue.len() > self.held.len() { self.ask_at() } else { None };
        let times = held.chain(ask).chain(self.queue.next_deadline());
        times.filter(|&time| time > now.mono).min()
    }
}
