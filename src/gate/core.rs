//! The gate as a pure state machine: who waits, which permits are held, what to ask of the store next.
//! Time is an argument; what it wants done it returns. `Gate` drives it on tokio, the simulation in
//! virtual time.

mod answers;
mod calls;
mod pauses;

use std::collections::VecDeque;

use super::{
    link::Link,
    permit::{Permit, Stage},
    queue::{Ask, Patience, Priority, Queue, Ticket, Waiter},
};
use crate::{
    clock::Moment,
    ledger::{Call, Generation, Micros, Rule},
    store::{StoreError, Taken},
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
    tickets: u64,
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
    /// Nothing is handed out before this.
    stopped_until: Micros,
    /// How often the store was doubted.
    doubts: u64,
    /// Permits that came to hand too late and were exchanged.
    late: u64,
}

#[derive(Debug)]
struct Sent {
    call: Call,
    at: Moment,
    under_way: bool,
    /// The answer may have been decided before the store changed its mind.
    doubted: bool,
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
            stopped_until: Micros::MIN,
            doubts: 0,
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

    /// Nobody waits, nothing is held or under way: who comes now may ask the store past the queue.
    pub fn is_quiet(&self, now: Micros) -> bool {
        self.queue.len() == 0
            && self.held.is_empty()
            && self.returns.is_empty()
            && self.sent.is_none()
            && now >= self.stopped_until
            && !self.hello
            && !self.closing
    }

    /// What the store gave past the queue. It gets a place: it may have to be exchanged later.
    pub fn at_once(&mut self, now: Moment, cost: i64, priority: Priority, taken: &Taken) -> Permit {
        let permit = Permit::at_once(cost, taken, now, self.link.lateness());
        Permit { doubts: self.doubts, ticket: self.next_ticket(priority), ..permit }
    }

    fn next_ticket(&mut self, priority: Priority) -> Ticket {
        self.tickets += 1;
        Ticket::new(priority, self.tickets)
    }

    /// A caller comes. What is certain already is said at once.
    pub fn arrive(&mut self, now: Micros, ask: Ask, handle: W) -> Result<Ticket, Verdict> {
        let Ask { cost, priority, patience, place } = ask;
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
        let (ticket, ahead) = match place {
            Some(ticket) => (ticket, 0),
            None => {
                let ticket = self.next_ticket(priority);
                (ticket, self.queue.cost_before(ticket) - booked)
            }
        };
        if let Some(refusal) = self.certain_to_miss(now, cost, patience, ahead)
            && (now < self.stopped_until || !self.is_held_for(ticket, cost, patience.bound(now)))
        {
            return Err(refusal);
        }
        self.queue.push(ticket, ask.waiter(now, handle));
        Ok(ticket)
    }

    /// Whether one of the permits at hand goes to a caller with this place, and in time.
    fn is_held_for(&self, ticket: Ticket, cost: i64, bound: Micros) -> bool {
        let fits = |permit: &&Permit| permit.booked.cost == cost && permit.due <= bound;
        let held = self.held.iter().filter(fits).count();
        held > self.queue.before(ticket, cost).take(held).count()
    }

    /// A caller gives up. Whether it was still waiting.
    pub fn leave(&mut self, ticket: Ticket) -> bool {
        self.queue.remove(ticket).is_some()
    }

    /// A permit comes back unused. While it is fresh the next caller may have it.
    pub fn give_back(&mut self, permit: Permit) {
        if permit.stage == Stage::Ready && permit.doubts == self.doubts {
            self.keep(permit);
        } else {
            self.returns.push(permit);
        }
    }

    /// A permit came to hand when it might no longer fly: its caller takes its place again, and the slot is
    /// exchanged if it has passed, confirmed if it is doubtful.
    pub fn came_late(&mut self, now: Moment, ticket: Ticket, waiter: Waiter<W>, mut permit: Permit) {
        let late = !permit.is_fresh(now);
        self.late += u64::from(late);
        if late || permit.doubts != self.doubts {
            permit.stage = Stage::Late;
        }
        self.keep(permit);
        self.queue.push(ticket, waiter);
    }

    /// A permit was kept past its slot on purpose and is wanted now: it is exchanged, at its caller's old place.
    pub fn renew(&mut self, ticket: Ticket, waiter: Waiter<W>, mut permit: Permit) {
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
            let (asked, free): (Vec<_>, Vec<_>) =
                self.held.drain(..).partition(|permit| permit.stage == Stage::Asked);
            self.held.extend(asked);
            self.returns.extend(free);
        }
        self.hand_out(now, mail);
        self.refuse_the_held_up(now.mono, mail);
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
        if now.mono < self.stopped_until {
            return;
        }
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
                        permit.doubts = self.doubts;
                        mail.push((waiter.handle, Verdict::Granted(permit)));
                    }
                    None => self.returns.push(permit),
                }
            }
        }
    }

    fn keep(&mut self, permit: Permit) {
        let at = self.held.partition_point(|other| other.due <= permit.due);
        self.held.insert(at, permit);
    }

    fn wake(&self, now: Moment) -> Option<Micros> {
        let free = self.sent.is_none();
        let lead = self.link.confirm_lead();
        let held = self.held.iter().filter(|permit| permit.stage == Stage::Ready).map(|permit| {
            if permit.is_far() { permit.due - lead } else { permit.due.max(self.stopped_until) }
        });
        let ask = if free && self.lacks_permits() { self.ask_at() } else { None };
        let times = held.chain(ask).chain(self.queue.next_deadline());
        times.filter(|&time| time > now.mono).min()
    }
}
