//! Replicas, their links to one store, and the order in which things happen.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use fastrand::Rng;
use tollgate::{
    Priority,
    clock::Moment,
    gate::{Ask, Common, Core, Mail, Patience, Permit, Settings, Ticket, Verdict, Waiter},
    ledger::{Answer, Call, Costs, Ledger, Micros, Named, Reply, Rule, SECOND},
};

use crate::pauses::{Paused, Pauses, Trust};

pub const EPOCH: Micros = 1_700_000_000 * SECOND;
pub const MILLI: Micros = 1_000;

/// How a replica and its way to the store behave.
#[derive(Clone, Debug)]
pub struct Nature {
    /// The round trip, and by how much of it (in 1/1000) each way varies.
    pub trip: Micros,
    pub spread: i64,
    /// One in so many messages is held up for 20 to 300 ms; 0: none.
    pub stall: u32,
    /// One in so many steps the process stands still for 30 to 400 ms; 0: never.
    pub freeze: u32,
}

/// How a caller asks, again and again.
#[derive(Clone, Debug)]
pub struct Habit {
    pub cost: std::ops::RangeInclusive<i64>,
    /// `None`: it rejects.
    pub wait: Option<Micros>,
    /// One in so many calls is dropped while it waits; 0: none.
    pub drop: u32,
    pub priority: Priority,
    /// Between the end of a call and the next.
    pub think: std::ops::RangeInclusive<Micros>,
    /// What it really costs, in 1/1000 of what was booked, is known so long after it was sent; `None`: as booked.
    pub settles: Option<(std::ops::RangeInclusive<i64>, std::ops::RangeInclusive<Micros>)>,
}

pub struct Plan {
    pub limits: Vec<Rule>,
    /// Known for calendars: their window, from which the resets follow.
    pub aligned: Vec<Option<Micros>>,
    pub guard: Micros,
    pub replicas: Vec<(Nature, Vec<Habit>)>,
    pub pauses: Pauses,
    pub until: Micros,
}

enum Event {
    Arrive(usize),
    Leave(usize, u64),
    Hear(usize, u64, Permit),
    /// A call has ended, and cost so much more or less than was booked.
    End(usize, Permit, i64),
    /// The timer of a replica, unless it was set anew since.
    Poll(usize, u64),
    AtStore(usize, Call),
    Reply(usize, Box<Answer>),
    /// A replica hears a 429 that asks for so long a pause.
    Throttled(usize, Micros),
    PauseAtStore(usize),
    /// A replica learns of a pause: the bell, or the reply to the one it told.
    Told(usize, usize),
}

struct Replica {
    core: Core<(usize, u64)>,
    nature: Nature,
    /// Its monotonic clock began some time or other.
    began: Micros,
    frozen_until: Micros,
    timer: u64,
    asked_at: Micros,
    trust: Trust,
    calls: u64,
}

struct Caller {
    replica: usize,
    habit: Habit,
    /// Which of its calls this is: events of earlier ones no longer concern it.
    call: u64,
    asking: Option<Asking>,
}

struct Asking {
    ticket: Ticket,
    cost: i64,
    arrived: Micros,
    patience: Patience,
    dropped: bool,
}

/// A request on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Micros,
    pub slot: Micros,
    pub cost: i64,
    /// What it really cost, and when its caller learnt that.
    pub real: i64,
    pub ended: Micros,
    pub replica: usize,
    pub waited: Micros,
}

pub struct World {
    rng: Rng,
    now: Micros,
    events: BinaryHeap<Reverse<(Micros, u64)>>,
    bodies: HashMap<u64, Event>,
    counter: u64,
    replicas: Vec<Replica>,
    callers: Vec<Caller>,
    ledger: Ledger,
    plan: Plan,
    pub paused: Vec<Paused>,
    pub sent: Vec<Sent>,
    pub refused: u64,
    pub dropped: u64,
    /// Callers that waited longer than they would, and by how much.
    pub overdue: Vec<Micros>,
}

impl World {
    pub fn new(plan: Plan, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut world = Self {
            now: 0,
            events: BinaryHeap::new(),
            bodies: HashMap::new(),
            counter: 0,
            replicas: Vec::new(),
            callers: Vec::new(),
            ledger: Ledger::new(EPOCH),
            paused: Vec::new(),
            sent: Vec::new(),
            refused: 0,
            dropped: 0,
            overdue: Vec::new(),
            rng: rng.fork(),
            plan: Plan { limits: plan.limits, aligned: plan.aligned, replicas: Vec::new(), ..plan },
        };
        for (member, (nature, habits)) in plan.replicas.into_iter().enumerate() {
            let settings = Settings {
                common: Common::default(),
                ageing: 60_000_000,
                parts: std::sync::Arc::default(),
                member: member as u64 + 1,
                rules: world.plan.limits.clone(),
                guard: world.plan.guard,
                queue: 10_000,
            };
            let began = -rng.i64(0..1_000 * SECOND);
            world.replicas.push(Replica {
                core: Core::new(settings),
                nature,
                began,
                frozen_until: 0,
                timer: 0,
                asked_at: 0,
                trust: Trust::default(),
                calls: 0,
            });
            world.at(rng.i64(0..MILLI), Event::Poll(member, 0));
            for habit in habits {
                let caller = world.callers.len();
                world.callers.push(Caller { replica: member, habit, call: 0, asking: None });
                // Replicas register when they are built, calls come after that.
                world.at(300 * MILLI + rng.i64(0..5 * MILLI), Event::Arrive(caller));
            }
        }
        for (at, replica, time) in world.plan.pauses.heard.clone() {
            world.at(at, Event::Throttled(replica, time));
        }
        world
    }

    /// Plays until every call that began before the end is over and nothing is held any more.
    pub fn run(&mut self) {
        while let Some(Reverse((at, id))) = self.events.pop() {
            self.now = at;
            if let Some(event) = self.bodies.remove(&id) {
                self.happen(event);
            }
        }
    }

    /// Calls that never ended.
    pub fn stuck(&self) -> usize {
        self.callers.iter().filter(|caller| caller.asking.is_some()).count()
    }

    pub fn calls(&self) -> u64 {
        self.replicas.iter().map(|replica| replica.calls).sum()
    }

    pub fn late(&self) -> u64 {
        self.replicas.iter().map(|replica| replica.core.late()).sum()
    }

    /// What the ledger still counts, against what was sent: more than that is lost.
    pub fn lost(&self) -> i64 {
        let now = EPOCH + self.now;
        let Ok(look) = self.ledger.peek(now, &self.named(now)) else { return 0 };
        let mut lost = 0;
        for (rule, (left, _)) in self.plan.limits.iter().zip(look.limits) {
            if let Rule::Rolling(rolling) = rule {
                // A cell goes when its last slot goes.
                let since = now - rolling.span - rolling.cell;
                let sent: i64 = self.sent.iter().filter(|sent| sent.slot > since).map(|sent| sent.real).sum();
                lost = lost.max(rolling.max - left - sent);
            }
        }
        lost
    }

    fn named(&self, now: Micros) -> Vec<Named> {
        let limits = self.plan.limits.iter().zip(&self.plan.aligned).enumerate();
        let named = limits.map(|(at, (rule, aligned))| {
            let rule = match (rule, aligned) {
                (Rule::Calendar(calendar), Some(window)) => {
                    let first = now - now.rem_euclid(*window);
                    Rule::calendar(calendar.max, calendar.guard, (0..5).map(|n| first + n * window).collect())
                }
                _ => rule.clone(),
            };
            Named::new(format!("limit {at}"), rule)
        });
        named.collect()
    }

    fn costs(&self, cost: i64) -> Costs {
        Costs::same(cost, self.plan.limits.len())
    }

    fn at(&mut self, time: Micros, event: Event) {
        self.counter += 1;
        self.events.push(Reverse((time.max(self.now), self.counter)));
        self.bodies.insert(self.counter, event);
    }

    fn moment(&self, replica: usize) -> Moment {
        Moment { mono: self.now - self.replicas[replica].began, wall: EPOCH + self.now }
    }

    /// One way through the network.
    fn trip(&mut self, replica: usize) -> Micros {
        let nature = self.replicas[replica].nature.clone();
        let base = nature.trip / 2;
        let stall = nature.stall > 0 && self.rng.u32(0..nature.stall) == 0;
        base + self.rng.i64(0..=base * nature.spread / 1_000)
            + if stall { self.rng.i64(20 * MILLI..300 * MILLI) } else { 0 }
    }

    fn happen(&mut self, event: Event) {
        let replica = match &event {
            Event::Arrive(caller)
            | Event::Leave(caller, _)
            | Event::Hear(caller, ..)
            | Event::End(caller, ..) => Some(self.callers[*caller].replica),
            Event::Poll(replica, _)
            | Event::Reply(replica, _)
            | Event::Throttled(replica, _)
            | Event::Told(replica, _) => Some(*replica),
            Event::AtStore(..) | Event::PauseAtStore(_) => None,
        };
        if let Some(replica) = replica {
            let until = self.replicas[replica].frozen_until;
            if until > self.now {
                return self.at(until, event);
            }
            let freeze = self.replicas[replica].nature.freeze;
            if freeze > 0 && self.rng.u32(0..freeze) == 0 {
                let until = self.now + self.rng.i64(30 * MILLI..400 * MILLI);
                self.replicas[replica].frozen_until = until;
                return self.at(until, event);
            }
        }
        match event {
            Event::Arrive(caller) => self.arrive(caller),
            Event::Leave(caller, call) => self.leave(caller, call),
            Event::Hear(caller, call, permit) => self.hear(caller, call, permit),
            Event::End(caller, permit, change) => self.end(caller, &permit, change),
            Event::Poll(replica, timer) if timer == self.replicas[replica].timer => self.drive(replica),
            Event::Poll(..) => {}
            Event::AtStore(replica, call) => {
                let now = EPOCH + self.now;
                let named = self.named(now);
                let Reply::Booked(answer) = self.ledger.book(now, &named, &call) else {
                    panic!("the resets were worked out for this very moment")
                };
                let back = self.trip(replica);
                self.at(self.now + back, Event::Reply(replica, Box::new(answer)));
            }
            Event::Reply(replica, answer) => {
                let mut mail = Mail::new();
                let now = self.moment(replica);
                let trip = self.now - self.replicas[replica].asked_at;
                self.replicas[replica].trust.heard(trip);
                self.replicas[replica].core.answered(now, Ok(*answer), &mut mail);
                self.deliver(mail);
                self.drive(replica);
            }
            Event::Throttled(replica, time) => self.throttled(replica, time),
            Event::PauseAtStore(pause) => self.pause_at_store(pause),
            Event::Told(replica, pause) => {
                self.paused[pause].told.push((replica, self.sent.len()));
                self.replicas[replica].core.doubt();
                self.drive(replica);
            }
        }
    }

    /// What `Gate::pause` does.
    fn throttled(&mut self, replica: usize, time: Micros) {
        let until = self.moment(replica).mono + time;
        self.paused.push(Paused::heard(replica, self.now + time, time, self.sent.len()));
        self.replicas[replica].core.hold(until);
        self.drive(replica);
        let there = self.trip(replica);
        self.at(self.now + there, Event::PauseAtStore(self.paused.len() - 1));
    }

    fn pause_at_store(&mut self, pause: usize) {
        let Paused { replica: first, time, .. } = self.paused[pause];
        let before = self.ledger.pause(0);
        let end = self.ledger.pause(EPOCH + self.now + time);
        self.paused[pause].stored = Some((self.now, end - EPOCH));
        let back = self.trip(first);
        self.at(self.now + back, Event::Told(first, pause));
        for other in (0..self.replicas.len()).filter(|other| *other != first && end > before) {
            let trip = self.trip(other);
            if self.rng.u32(0..100) >= self.plan.pauses.unheard {
                self.at(self.now + trip, Event::Told(other, pause));
            }
        }
    }

    /// The longest that a permit of this replica may have been trusted.
    pub fn trust(&self, replica: usize) -> Micros {
        self.replicas[replica].trust.lasts()
    }

    /// By how much its moments may be too early.
    pub fn early(&self, replica: usize) -> Micros {
        let Replica { trust, nature, .. } = &self.replicas[replica];
        trust.early(nature.trip)
    }

    /// What the task around the gate does.
    fn drive(&mut self, replica: usize) {
        let mut mail = Mail::new();
        let now = self.moment(replica);
        let next = self.replicas[replica].core.poll(now, &mut mail);
        self.deliver(mail);
        if let Some(call) = next.call {
            self.replicas[replica].calls += 1;
            self.replicas[replica].asked_at = self.now;
            let there = self.trip(replica);
            self.at(self.now + there, Event::AtStore(replica, call));
        }
        self.replicas[replica].timer += 1;
        if let Some(wake) = next.wake {
            let timer = self.replicas[replica].timer;
            // Timers fire up to a millisecond late.
            let at = wake + self.replicas[replica].began + self.rng.i64(0..MILLI);
            self.at(at, Event::Poll(replica, timer));
        }
    }

    fn deliver(&mut self, mail: Mail<(usize, u64)>) {
        for ((caller, call), verdict) in mail {
            match verdict {
                Verdict::Granted(permit) => {
                    let soon = self.rng.i64(0..200);
                    self.at(self.now + soon, Event::Hear(caller, call, permit));
                }
                Verdict::Later { retry_after, .. } => self.refuse(caller, retry_after),
                other => panic!("caller {caller} was told {other:?}"),
            }
        }
    }

    fn arrive(&mut self, caller: usize) {
        if self.now >= self.plan.until {
            return;
        }
        let habit = self.callers[caller].habit.clone();
        let replica = self.callers[caller].replica;
        let now = self.moment(replica).mono;
        let cost = self.rng.i64(habit.cost);
        let patience = habit.wait.map_or(Patience::Reject, |wait| Patience::Until(now + wait));
        self.callers[caller].call += 1;
        let call = self.callers[caller].call;
        let ask = Ask { priority: habit.priority, ..Ask::new(self.costs(cost), patience) };
        match self.replicas[replica].core.arrive(now, ask, (caller, call)) {
            Ok(ticket) => {
                let arrived = self.now;
                self.callers[caller].asking =
                    Some(Asking { ticket, cost, arrived, patience, dropped: false });
                if habit.drop > 0 && self.rng.u32(0..habit.drop) == 0 {
                    let patience = habit.wait.unwrap_or(MILLI).min(SECOND);
                    let later = self.rng.i64(0..patience);
                    self.at(self.now + later, Event::Leave(caller, call));
                }
            }
            Err(Verdict::Later { retry_after, .. }) => self.refuse(caller, retry_after),
            Err(other) => panic!("caller {caller} was told {other:?}"),
        }
        self.drive(replica);
    }

    fn leave(&mut self, caller: usize, call: u64) {
        if self.callers[caller].call != call {
            return;
        }
        let Some(asking) = &mut self.callers[caller].asking else { return };
        if asking.dropped {
            return;
        }
        asking.dropped = true;
        let ticket = asking.ticket;
        let replica = self.callers[caller].replica;
        self.dropped += 1;
        if self.replicas[replica].core.leave(ticket) {
            self.finish(caller);
        }
        self.drive(replica);
    }

    fn hear(&mut self, caller: usize, call: u64, permit: Permit) {
        let replica = self.callers[caller].replica;
        let now = self.moment(replica);
        let Some(asking) = self.callers[caller].asking.take() else {
            panic!("nobody asked for {permit:?}, {call}")
        };
        assert_eq!(asking.cost, permit.booked.costs.of(0), "a permit serves only its own cost");
        if asking.dropped {
            self.replicas[replica].core.give_back(permit);
            self.finish(caller);
        } else if self.replicas[replica].core.may_fly(&permit, now) {
            let waited = self.now - asking.arrived;
            self.note_overdue(replica, &asking);
            let (slot, cost) = (permit.booked.slot, permit.booked.costs.of(0));
            let (real, ended) = match self.callers[caller].habit.settles.clone() {
                Some((parts, time)) => (cost * self.rng.i64(parts) / 1_000, self.now + self.rng.i64(time)),
                None => (cost, self.now),
            };
            self.sent.push(Sent { at: self.now, slot, cost, real, ended, replica, waited });
            if ended > self.now {
                self.at(ended, Event::End(caller, permit, real - cost));
            } else {
                self.finish(caller);
            }
        } else {
            let ticket = asking.ticket;
            let waiter = Waiter {
                costs: self.costs(asking.cost),
                arrived: asking.arrived - self.replicas[replica].began,
                patience: asking.patience,
                handle: (caller, call),
            };
            self.callers[caller].asking = Some(asking);
            self.replicas[replica].core.came_late(now, ticket, waiter, permit);
        }
        self.drive(replica);
    }

    fn end(&mut self, caller: usize, permit: &Permit, change: i64) {
        let replica = self.callers[caller].replica;
        let change = self.costs(change);
        self.replicas[replica].core.settle(permit, change);
        self.finish(caller);
        self.drive(replica);
    }

    fn refuse(&mut self, caller: usize, retry_after: Micros) {
        assert!(retry_after > 0, "later is at least one tick");
        self.refused += 1;
        if let Some(asking) = self.callers[caller].asking.take() {
            self.note_overdue(self.callers[caller].replica, &asking);
        }
        let nap = retry_after.min(10 * MILLI) + self.rng.i64(0..MILLI);
        self.at(self.now + nap, Event::Arrive(caller));
    }

    fn note_overdue(&mut self, replica: usize, asking: &Asking) {
        if let Patience::Until(deadline) = asking.patience {
            let late = self.moment(replica).mono - deadline;
            if late > 2 * MILLI && self.replicas[replica].nature.freeze == 0 {
                self.overdue.push(late);
            }
        }
    }

    fn finish(&mut self, caller: usize) {
        self.callers[caller].asking = None;
        let think = self.rng.i64(self.callers[caller].habit.think.clone());
        self.at(self.now + think, Event::Arrive(caller));
    }
}
