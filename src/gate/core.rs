//! The gate as a pure state machine: who waits, which permits are held, what to ask of the store next.
//! Time is an argument; what it wants done it returns. `Gate` drives it on tokio, the simulation in
//! virtual time.

mod answers;
mod calls;
mod changes;
mod flights;
mod pauses;

use std::{collections::VecDeque, sync::Arc};

use self::flights::Flights;
use super::{
    common::Common,
    link::Link,
    permit::{Permit, Stage},
    queue::{Ask, Patience, Priority, Queue, Ticket, Waiter},
};
use crate::{
    clock::Moment,
    ledger::{Booked, Call, Class, Costs, Generation, Micros, Rule, SECOND},
    store::{StoreError, Taken},
};

/// Callers asked for in one call; the rest go into the next.
const MOST_WANTS: usize = 1_024;
/// So long a call that failed may be sent again. The store remembers twice as long that it was carried out.
const REPEATABLE: Micros = 30 * SECOND;

/// What a gate is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    pub member: u64,
    /// The limits that are booked together. The resets of calendars do not matter here.
    pub rules: Vec<Rule>,
    /// The smallest guard among them.
    pub guard: Micros,
    /// Callers that may wait, at all gates of the provider.
    pub queue: usize,
    /// Who has waited so long goes before who comes now with the next higher priority.
    pub ageing: Micros,
    /// Parts of the provider that its callers are in: see [`Call::parts`].
    pub parts: Arc<[Arc<str>]>,
    pub common: Common,
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
    tickets: u32,
    /// In the order of their slots.
    held: VecDeque<Permit>,
    /// Permits that nobody wants any more.
    returns: Vec<(Generation, Booked)>,
    /// Permits that flew, with what they cost more or less than was booked.
    settles: Vec<(Generation, Booked)>,
    /// The call under way, or, after a failure, the one to be sent again before anything new: it may have
    /// been carried out, and by its number the store then tells what was booked.
    sent: Option<Sent>,
    number: i64,
    /// When the store heard of this gate last, at the earliest.
    heard: Micros,
    flights: Flights,
    generation: Option<Generation>,
    nothing: Option<Nothing>,
    hello: bool,
    closing: bool,
    closed: bool,
    /// Nothing is handed out here before this.
    stopped_until: Micros,
    /// How often the store was doubted.
    doubts: u32,
    /// How often other limits came into force.
    changes: u32,
}

#[derive(Debug)]
struct Sent {
    call: Call,
    at: Moment,
    /// When it was sent for the first time: its answer may be of then.
    first: Moment,
    under_way: bool,
    /// When a call that failed is sent again, if nobody asks before.
    retry: Micros,
    /// The answer may have been decided before the store changed its mind.
    doubted: bool,
    /// The answer may have been decided before the place was there that this gate was called up for, or
    /// before somebody came who needs none.
    called_up: bool,
    /// It tells of calls that have ended.
    landed: bool,
    /// How often other limits had come into force by then.
    changes: u32,
    asked: Vec<Ticket>,
}

/// The store's last "nothing before", on our clock.
#[derive(Clone, Debug)]
struct Nothing {
    before: Micros,
    /// It holds for callers that want no less.
    costs: Costs,
    /// And are no better.
    class: Class,
    limit: Option<usize>,
    paced: bool,
    /// The answer granted nothing at all, or a place in a line: asking again sooner than this is of no use.
    again: Option<Micros>,
}

impl<W> Core<W> {
    pub fn new(settings: Settings) -> Self {
        Self {
            link: Link::new(settings.guard, settings.common.way.clone()),
            queue: Queue::new(settings.rules.len(), settings.common.clone()),
            flights: Flights::new(&settings.rules),
            settings,
            tickets: 0,
            held: VecDeque::new(),
            returns: Vec::new(),
            settles: Vec::new(),
            sent: None,
            number: 0,
            heard: 0,
            generation: None,
            nothing: None,
            hello: true,
            closing: false,
            closed: false,
            stopped_until: Micros::MIN,
            doubts: 0,
            changes: 0,
        }
    }

    /// Permits that came to hand too late and were exchanged.
    pub fn late(&self) -> u64 {
        self.settings.common.late()
    }

    /// Nothing is handed out before this.
    pub(super) fn stopped_until(&self) -> Micros {
        self.stopped_until.max(self.settings.common.stopped_until())
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nobody waits, nothing is held or under way: who comes now may ask the store past the queue.
    pub fn is_quiet(&self, now: Micros) -> bool {
        self.is_idle() && now >= self.stopped_until() && !self.hello && !self.closing
    }

    /// What the store gave past the queue. It gets a place: it may have to be exchanged later.
    pub fn at_once(&mut self, now: Moment, costs: Costs, priority: Priority, taken: &Taken) -> Permit {
        let permit = Permit::at_once(costs, taken, now, self.link.lateness());
        Permit { doubts: self.doubts, ticket: self.next_ticket(now.mono, priority), ..permit }
    }

    fn next_ticket(&mut self, now: Micros, priority: Priority) -> Ticket {
        self.tickets = self.tickets.wrapping_add(1);
        Ticket::new(priority, now, self.settings.ageing, self.tickets)
    }

    /// A caller comes. What is certain already is said at once.
    pub fn arrive(&mut self, now: Micros, ask: Ask, handle: W) -> Result<Ticket, Verdict> {
        let Ask { ref costs, priority, patience, place } = ask;
        if self.closing {
            return Err(Verdict::Closed);
        }
        let mut priced = self.settings.rules.iter().zip(costs.iter());
        if let Some(limit) = priced.position(|(rule, cost)| cost > rule.max()) {
            return Err(Verdict::Never { limit });
        }
        if self.queue.len_in_all() >= self.settings.queue {
            return Err(Verdict::QueueFull);
        }
        let ticket = place.unwrap_or_else(|| self.next_ticket(now, priority));
        let ahead = |limit| {
            let booked: i64 = self.held.iter().map(|permit| permit.booked.costs.of(limit)).sum();
            if place.is_some() { 0 } else { self.queue.cost_before(ticket, limit) - booked }
        };
        if let Some(refusal) = self.certain_to_miss(now, costs, ticket, patience, ahead)
            && (now < self.stopped_until() || !self.is_held_for(ticket, costs, patience.bound(now)))
        {
            return Err(refusal);
        }
        if self.flights.needs_no_place(costs) {
            self.look_past_the_line();
        }
        self.queue.push(ticket, ask.waiter(now, handle));
        Ok(ticket)
    }

    /// Whether one of the permits at hand goes to a caller with this place, and in time.
    fn is_held_for(&self, ticket: Ticket, costs: &Costs, bound: Micros) -> bool {
        let fits = |permit: &&Permit| permit.booked.costs == *costs && permit.due <= bound;
        let held = self.held.iter().filter(fits).count();
        held > self.queue.before(ticket, costs).take(held).count()
    }

    /// A caller gives up. Whether it was still waiting.
    pub fn leave(&mut self, ticket: Ticket) -> bool {
        self.queue.remove(ticket).is_some()
    }

    /// A permit comes back unused. While it is fresh the next caller may have it.
    pub fn give_back(&mut self, permit: Permit) {
        self.flights.turned_back(&permit.booked.costs);
        if permit.stage == Stage::Ready && permit.doubts == self.doubts {
            self.keep(permit);
        } else {
            self.give_up(permit);
        }
    }

    /// A permit flew, and cost so much more than was booked for it; less is negative.
    pub fn settle(&mut self, permit: &Permit, change: Costs) {
        if !change.is_nothing() {
            self.settles.push((permit.generation, Booked { costs: change, ..permit.booked.clone() }));
        }
    }

    /// A permit came to hand when it might no longer fly: its caller takes its place again, and the slot is
    /// exchanged if it has passed, confirmed if it is doubtful.
    pub fn came_late(&mut self, now: Moment, ticket: Ticket, waiter: Waiter<W>, mut permit: Permit) {
        self.flights.turned_back(&permit.booked.costs);
        let late = !permit.is_fresh(now);
        if late {
            self.settings.common.was_late();
        }
        if late || permit.doubts != self.doubts {
            permit.stage = Stage::Late;
        }
        self.keep(permit);
        self.queue.push(ticket, waiter);
        // It was granted: who would not wait waits for the store to exchange it, which has its own lead.
        self.queue.promise(ticket, now.mono + 2 * self.link.trusted_for());
    }

    /// A permit was kept past its slot on purpose and is wanted now: it is exchanged, at its caller's old place.
    pub fn renew(&mut self, ticket: Ticket, waiter: Waiter<W>, mut permit: Permit) {
        self.flights.turned_back(&permit.booked.costs);
        permit.stage = Stage::Late;
        self.keep(permit);
        self.queue.push(ticket, waiter);
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
            self.give_up_all();
        }
        self.refuse_the_impossible(mail);
        self.hand_out(now, mail);
        self.refuse_the_held_up(now.mono, mail);
        while let Some(waiter) = self.queue.pop_overdue(now.mono) {
            let nothing = self.nothing.as_ref();
            let before = nothing.map_or(now.mono, |nothing| nothing.before);
            // Who cannot wait for the end of a pause was told so.
            let limit = nothing.and_then(|nothing| nothing.limit).or(Some(0));
            mail.push((waiter.handle, Verdict::Later { retry_after: (before - now.mono).max(1), limit }));
        }
        let call = self.next_call(now);
        let idle = (self.is_idle() || self.is_stuck()) && (!self.closing || self.closed);
        Next { call, wake: self.wake(now), idle }
    }

    /// Nothing is held, queued, owed or under way.
    pub fn is_idle(&self) -> bool {
        self.sent.is_none()
            && self.queue.len() == 0
            && self.held.is_empty()
            && self.returns.is_empty()
            && self.settles.is_empty()
            && self.flights.is_none()
            && !self.flights.in_line
    }

    /// The last call has failed, and only the next caller has it sent again.
    fn is_stuck(&self) -> bool {
        let failed = self.sent.as_ref().is_some_and(|sent| !sent.under_way);
        failed && self.queue.len() == 0 && self.retry_at().is_none()
    }

    /// A call that failed long ago is not sent again: the store might carry it out twice. What it booked, if it was
    /// carried out, stays booked.
    pub fn forget_the_lost(&mut self, now: Moment) {
        if self.sent.as_ref().is_some_and(|sent| !sent.under_way && now.since(sent.first) >= REPEATABLE) {
            self.sent = None;
            self.held.retain(|permit| permit.stage != Stage::Asked);
        }
    }

    /// Permits whose slot has come go to the first callers that want the same; what nobody wants goes back.
    fn hand_out(&mut self, now: Moment, mail: &mut Mail<W>) {
        if now.mono < self.stopped_until() {
            return;
        }
        let mut at = 0;
        while at < self.held.len() && self.held[at].due <= now.mono {
            if self.held[at].stage != Stage::Ready {
                at += 1;
            } else if !self.held[at].is_fresh(now) && self.queue.count_of(&self.held[at].booked.costs) > 0 {
                self.held[at].stage = Stage::Late;
                self.settings.common.was_late();
            } else if let Some(mut permit) = self.held.remove(at) {
                match self.queue.pop_same(&permit.booked.costs) {
                    Some(waiter) => {
                        permit.waited = now.mono - waiter.arrived;
                        permit.doubts = self.doubts;
                        self.flights.set_out(&permit.booked.costs);
                        mail.push((waiter.handle, Verdict::Granted(permit)));
                    }
                    None => self.give_up(permit),
                }
            }
        }
    }

    fn give_up(&mut self, permit: Permit) {
        self.returns.push((permit.generation, permit.booked));
    }

    /// All that the store is not being asked about.
    fn give_up_all(&mut self) {
        let (asked, free): (Vec<_>, Vec<_>) =
            self.held.drain(..).partition(|permit| permit.stage == Stage::Asked);
        self.held.extend(asked);
        free.into_iter().for_each(|permit| self.give_up(permit));
    }

    fn keep(&mut self, permit: Permit) {
        let at = self.held.partition_point(|other| other.due <= permit.due);
        self.held.insert(at, permit);
    }

    fn wake(&self, now: Moment) -> Option<Micros> {
        let free = self.sent.is_none();
        let lead = self.link.confirm_lead();
        let held = self.held.iter().filter(|permit| permit.stage == Stage::Ready).map(|permit| {
            if permit.must_be_confirmed() { permit.due - lead } else { permit.due.max(self.stopped_until()) }
        });
        let ask = if free && self.lacks_permits() { self.ask_at() } else { None };
        let renew = if free { self.renew_at() } else { self.retry_at() };
        let times = held.chain(ask).chain(renew).chain(self.queue.next_deadline());
        times.filter(|&time| time > now.mono).min()
    }
}
