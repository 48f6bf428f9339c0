//! Random histories of a small fleet, played to anything that decides.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{collections::HashMap, sync::Arc};

use proptest::{collection::vec, prelude::*, sample::select};
use tollgate::ledger::{
    Accord, Booked, Call, Claim, Class, Costs, Generation, Ledger, Micros, Named, Peek, Reply, Rule, SECOND,
    Undecided, Want,
};

pub const EPOCH: Micros = 1_700_000_000 * SECOND;
/// The name of a part of the provider.
const PART: &str = "part";
/// A member unheard of for longer is forgotten, its numbers too.
const FORGOTTEN: Micros = 60 * SECOND;

/// What a history is played to.
pub trait Machine {
    fn book(&mut self, now: Micros, limits: &[Named], call: &Call) -> Reply;
    fn pause(&mut self, now: Micros, part: Option<&Arc<str>>, time: Micros) -> Micros;
    fn peek(&mut self, now: Micros, limits: &[Named]) -> Result<Peek, Undecided>;
    /// Tells the accord.
    fn set(&mut self, now: Micros, claim: &Claim, text: &str, number: Option<i64>) -> String;
}

/// The decision itself.
pub struct Pure(pub Ledger);

impl Machine for Pure {
    fn book(&mut self, now: Micros, limits: &[Named], call: &Call) -> Reply {
        self.0.book(now, limits, call)
    }

    fn pause(&mut self, now: Micros, part: Option<&Arc<str>>, time: Micros) -> Micros {
        let until = match part {
            Some(part) => self.0.pause_part(now, part, now + time),
            None => self.0.pause(now + time),
        };
        until - now
    }

    fn peek(&mut self, now: Micros, limits: &[Named]) -> Result<Peek, Undecided> {
        self.0.peek(now, limits)
    }

    fn set(&mut self, now: Micros, claim: &Claim, text: &str, number: Option<i64>) -> String {
        self.0.set(now, claim, text, number).0
    }
}

/// Under which limits what happened.
#[derive(Clone, Debug)]
pub struct History {
    /// No booking reaches further ahead than these parts of the shortest window.
    pub near: Part,
    pub limits: Vec<Kind>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Rolling { max: i64, window: Micros, guard: Micros, paced: bool },
    Bucket { max: i64, window: Micros, burst: i64, guard: Micros },
    Calendar { max: i64, period: Micros, guard: Micros },
    Flight { max: i64, lease: Micros },
}

#[derive(Clone, Debug)]
pub enum Step {
    Book(Booking),
    /// Many bookings of one member, one after the other.
    Stream {
        member: u64,
        times: u32,
        apart: Apart,
        cost: Part,
    },
    /// The member's last call comes once more.
    Repeat(u64),
    /// Of all, or of the part in which every other member is, and the second limit.
    Pause(Part, bool),
    /// Parts of the shortest window go by.
    Pass(Part),
    /// Parts of the longest.
    PassLong(Part),
    PassMicros(Micros),
    /// Until so much after the slot of a permit that the member holds.
    Until {
        member: u64,
        pick: usize,
        after: Micros,
    },
    /// As long as a slot counts under the first limit, and so much.
    PassSpan(Micros),
    /// The clock steps back by parts of the shortest window.
    Back(Part),
    /// From now on a member is configured with this part of a limit.
    Deploy {
        member: u64,
        limit: usize,
        part: Part,
    },
    /// A member sets this part of a limit, for all; or tells the last change again.
    Set {
        member: u64,
        limit: usize,
        part: Part,
        again: bool,
    },
    Peek,
}

#[derive(Clone, Copy, Debug)]
pub enum Apart {
    /// Parts of the shortest window.
    Window(Part),
    /// Parts of what a permit takes of the shortest window.
    Permit(Part),
}

/// Parts of a thousand.
pub type Part = i64;

#[derive(Clone, Debug)]
pub struct Booking {
    pub member: u64,
    /// Bits: which limits.
    pub set: u8,
    pub lead: Part,
    pub late: Part,
    pub horizon: Micros,
    pub more: bool,
    pub goodbye: bool,
    /// Which of the permits held are given back or confirmed.
    pub returns: Vec<usize>,
    pub confirms: Vec<usize>,
    /// Which of the permits that flew have landed by now.
    pub lands: Vec<usize>,
    /// Which of the permits that flew are settled, at this part of what was booked.
    pub settles: Vec<(usize, Part)>,
    /// The costs and the class, budget as part of the shortest window, and how many.
    pub wants: Vec<((Price, Class), Option<Part>, u32)>,
    pub generation: Known,
    /// Periods by which the resets told are off.
    pub off: i64,
}

#[derive(Clone, Copy, Debug)]
pub enum Price {
    /// Of each limit the same, a part of what all admit.
    Same(Part),
    /// Of each limit a part of what it admits, or nothing.
    Each([Option<Part>; 3]),
}

#[derive(Clone, Copy, Debug)]
pub enum Known {
    Right,
    Wrong,
    Nothing,
}

/// A permit in the end: not given back, and not exchanged since.
#[derive(Clone, Debug)]
pub struct Flight {
    pub set: u8,
    pub slot: Micros,
    /// Of all limits of the history, those that it does not touch included. What it is known to have cost less than
    /// was booked is not in it.
    pub costs: Vec<i64>,
    class: Class,
    settled: bool,
    landed: bool,
    /// When it flies by a clock that never steps.
    pub flies: Micros,
    /// Too far ahead to fly unconfirmed.
    pub far: bool,
    /// Others may have had it since.
    claimable: bool,
    /// It has its places in flight.
    seated: bool,
    member: u64,
    generation: Generation,
    /// So many were booked before it.
    pub order: usize,
    /// What each limit admitted when it was booked.
    pub most: Vec<i64>,
}

impl Kind {
    pub fn max(self) -> i64 {
        match self {
            Self::Rolling { max, .. } | Self::Calendar { max, .. } | Self::Flight { max, .. } => max,
            Self::Bucket { .. } => match self.rule(EPOCH) {
                Rule::Bucket(rule) => rule.capacity,
                _ => unreachable!(),
            },
        }
    }

    /// The same with another count, if it can be counted.
    fn with_max(self, most: i64) -> Self {
        let kind = match self {
            Self::Rolling { window, guard, paced, .. } => Self::Rolling { max: most, window, guard, paced },
            Self::Bucket { window, burst, guard, .. } => Self::Bucket { max: most, window, burst, guard },
            Self::Calendar { period, guard, .. } => Self::Calendar { max: most, period, guard },
            Self::Flight { lease, .. } => Self::Flight { max: most, lease },
        };
        if exact(kind) { kind } else { self }
    }

    fn count(self) -> i64 {
        match self {
            Self::Rolling { max, .. }
            | Self::Calendar { max, .. }
            | Self::Flight { max, .. }
            | Self::Bucket { max, .. } => max,
        }
    }

    pub fn window(self) -> Micros {
        match self {
            Self::Rolling { window, .. } | Self::Bucket { window, .. } => window,
            Self::Calendar { period, .. } => period,
            Self::Flight { lease, .. } => lease,
        }
    }

    pub fn rule(self, around: Micros) -> Rule {
        match self {
            Self::Rolling { max, window, guard, paced } => Rule::rolling(max, window, guard, paced),
            Self::Bucket { max, window, burst, guard } => Rule::bucket(max, window, burst, guard),
            Self::Flight { max, lease } => Rule::in_flight(max, lease),
            Self::Calendar { max, period, guard } => {
                let mut first = around / period + 1;
                while reset(period, first) > around {
                    first -= 1;
                }
                Rule::calendar(max, guard, (first..first + 5).map(|k| reset(period, k)).collect())
            }
        }
    }
}

/// Some periods are longer than others, as days are.
pub fn reset(period: Micros, k: i64) -> Micros {
    k * period + if k % 3 == 0 { period / 7 } else { 0 }
}

impl History {
    /// Whether some callers go before others: then who holds a far slot may have lost it, and flies only once it is
    /// confirmed.
    pub fn has_classes(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Book(booking) => booking.wants.iter().any(|((_, class), ..)| *class != 1),
            _ => false,
        })
    }

    pub fn forget_the_classes(&mut self) {
        for step in &mut self.steps {
            if let Step::Book(booking) = step {
                booking.wants.iter_mut().for_each(|((_, class), ..)| *class = 1);
            }
        }
    }

    fn shortest(&self) -> Micros {
        self.limits.iter().map(|limit| limit.window()).min().unwrap_or(1)
    }

    /// The largest cost that all limits allow.
    fn most(&self) -> i64 {
        self.limits.iter().map(|limit| limit.max()).min().unwrap_or(1)
    }

    fn longest(&self) -> Micros {
        self.limits.iter().map(|limit| limit.window()).max().unwrap_or(1)
    }

    /// Of the limits there are: none if no bit is set, else at least one.
    fn set(&self, bits: u8) -> u8 {
        let all = (1 << self.limits.len()) - 1;
        if bits != 0 && bits & all == 0 { all } else { bits & all }
    }
}

/// The members and their permits.
#[derive(Default)]
struct Fleet {
    now: Micros,
    /// What members are configured with, where it is another count.
    configured: HashMap<(u64, usize), i64>,
    /// The accords that members go by, in each set of limits.
    agreed: HashMap<(u64, u8, usize), String>,
    booked: usize,
    /// How far the clock has stepped back so far.
    behind: Micros,
    generation: Option<Generation>,
    number: i64,
    flights: Vec<Flight>,
    /// When a member last told how many places it holds under a limit.
    told: HashMap<(u64, usize), Micros>,
    last: Vec<(u64, Micros, Vec<Named>, Call)>,
}

/// Plays it and tells which permits fly.
pub fn play(history: &History, machine: &mut impl Machine) -> Vec<Flight> {
    let mut fleet = Fleet { now: EPOCH, ..Fleet::default() };
    let window = history.shortest();
    let part = |part: Part| (i128::from(part) * i128::from(window) / 1_000) as Micros;
    for step in &history.steps {
        match step {
            Step::Book(booking) => fleet.book(history, machine, booking),
            Step::Stream { member, times, apart, cost } => {
                for _ in 0..*times {
                    let booking = Booking {
                        member: *member,
                        set: u8::MAX,
                        lead: 0,
                        late: 0,
                        horizon: 50_000,
                        more: false,
                        goodbye: false,
                        returns: vec![],
                        confirms: vec![],
                        lands: vec![],
                        settles: vec![],
                        wants: vec![((Price::Same(*cost), 1), None, 1)],
                        generation: Known::Right,
                        off: 0,
                    };
                    fleet.book(history, machine, &booking);
                    fleet.now += match *apart {
                        Apart::Window(of) => part(of),
                        Apart::Permit(of) => part(of) / history.most(),
                    };
                }
            }
            Step::Repeat(member) => fleet.repeat(machine, *member),
            Step::Pause(time, of_part) => {
                machine.pause(fleet.now, of_part.then_some(&Arc::from(PART)), part(*time));
            }
            Step::Pass(time) => fleet.now += part(*time),
            Step::PassLong(part) => fleet.now += history.longest() / 1_000 * part,
            Step::PassMicros(time) => fleet.now += time,
            Step::Until { member, pick, after } => {
                let of = |flight: &&Flight| flight.member == *member;
                let slots: Vec<_> = fleet.flights.iter().filter(of).map(|flight| flight.slot).collect();
                if !slots.is_empty() {
                    fleet.now = fleet.now.max(slots[slots.len() - 1 - pick % slots.len()] + after);
                }
            }
            Step::PassSpan(more) => {
                if let Rule::Rolling(rule) = history.limits[0].rule(fleet.now) {
                    fleet.now += rule.span + more;
                }
            }
            Step::Back(time) => {
                fleet.now -= part(*time);
                fleet.behind += part(*time);
            }
            Step::Peek => {
                let _ = machine.peek(fleet.now, &fleet.named(history, 0, u8::MAX, fleet.now));
            }
            Step::Deploy { member, limit, part } => {
                let at = limit % history.limits.len();
                let most = (history.limits[at].count() * part / 1_000).max(1);
                fleet.configured.insert((*member, at), most);
                fleet.agreed.retain(|(of, _, limit), _| (*of, *limit) != (*member, at));
            }
            Step::Set { member, limit, part, again } => {
                let at = limit % history.limits.len();
                let most = (history.limits[at].count() * part / 1_000).max(1).to_string();
                let claim = fleet.claim(history, *member, 0, at);
                let told = machine.set(fleet.now, &claim, &most, None);
                if *again && let Some(change) = Accord::read(&told).change() {
                    let later = change.number + part % 3 - 1;
                    machine.set(fleet.now, &claim, &change.text, Some(later));
                }
            }
        }
    }
    let _ = machine.peek(fleet.now, &fleet.named(history, 0, u8::MAX, fleet.now));
    fleet.flights
}

impl Fleet {
    fn claim(&self, history: &History, member: u64, set: u8, limit: usize) -> Claim {
        let configured = self.configured.get(&(member, limit)).copied();
        let text = configured.unwrap_or(history.limits[limit].count()).to_string();
        let claim = Claim::new(format!("all limit{limit}"), text);
        let agreed = self.agreed.get(&(member, set, limit)).cloned();
        Claim { agreed: agreed.unwrap_or_else(|| claim.agreed.clone()), ..claim }
    }

    /// The smallest of what is said of each limit, as a member believes.
    fn named(&self, history: &History, member: u64, set: u8, around: Micros) -> Vec<Named> {
        let chosen = history.limits.iter().enumerate().filter(|(at, _)| set & (1 << at) != 0);
        let named = chosen.map(|(at, limit)| {
            let claim = self.claim(history, member, set, at);
            let accord = Accord::read(&claim.agreed);
            let number = |text: &str| text.parse::<i64>().expect("a count");
            let counts = accord.claims().map(|claim| match accord.change() {
                Some(change) if change.of.iter().any(|of| of == claim) => number(&change.text),
                _ => number(claim),
            });
            let limit = limit.with_max(counts.min().unwrap_or(limit.count()));
            let reserve = limit.max() / 4;
            // The second one is that of the part.
            let name = if at == 1 { format!("limit{at}:{PART}") } else { format!("limit{at}") };
            Named { reserve, claim, ..Named::new(name, limit.rule(around)) }
        });
        named.collect()
    }

    fn book(&mut self, history: &History, machine: &mut impl Machine, booking: &Booking) {
        self.book_and_return(history, machine, booking, vec![]);
    }

    /// Gives back what it holds of other limits than are in force now.
    fn book_and_return(
        &mut self,
        history: &History,
        machine: &mut impl Machine,
        booking: &Booking,
        mut returned: Vec<Flight>,
    ) {
        let set = history.set(booking.set);
        let part = |part: Part| (i128::from(part) * i128::from(history.shortest()) / 1_000) as Micros;
        let off = history.longest() * booking.off;
        let limits = self.named(history, booking.member, set, self.now + off);
        let chosen: Vec<_> = (0..history.limits.len()).filter(|at| set & (1 << at) != 0).collect();
        let most = limits.iter().map(|limit| limit.rule.max()).min().unwrap_or(1);
        let cost = |part: Part, max: i64| (part * max / 1_000).max(1);
        let costs = |price: Price| -> Costs {
            let of = |(&at, limit): (&usize, &Named)| match price {
                Price::Same(part) => cost(part, most),
                Price::Each(parts) => parts[at].map_or(0, |part| cost(part, limit.rule.max())),
            };
            chosen.iter().zip(&limits).map(of).collect()
        };
        let narrow = |costs: &[i64]| -> Costs { chosen.iter().map(|&at| costs[at]).collect() };
        let wide = |costs: &Costs| {
            let mut all = vec![0; history.limits.len()];
            chosen.iter().zip(costs.iter()).for_each(|(&at, cost)| all[at] = cost);
            all
        };

        let generation = match booking.generation {
            Known::Right => self.generation,
            Known::Wrong => self.generation.map(|it| Generation { since: it.since - 1, ..it }),
            Known::Nothing => None,
        };
        let ours = generation.is_some() && generation == self.generation;
        let start = self.now + part(booking.lead);
        for pick in &booking.lands {
            let flies = |flight: &&mut Flight| {
                flight.member == booking.member && flight.slot <= self.now && !flight.landed
            };
            let mut flying: Vec<_> = self.flights.iter_mut().filter(flies).collect();
            let len = flying.len();
            if let Some(at) = len.checked_sub(1 + pick % len.max(1)) {
                flying[at].landed = true;
            }
        }
        let mut pick = |picks: &[usize], confirms: bool| {
            let mut picked = vec![];
            for pick in picks {
                // What is near flies by the clock of its member: nobody asks about it.
                let asked = |flight: &Flight| !confirms || flight.far || flight.slot < start;
                let own = |flight: &Flight| {
                    flight.member == booking.member && flight.set == set && !flight.landed && asked(flight)
                };
                let held: Vec<_> = (0..self.flights.len()).filter(|&at| own(&self.flights[at])).collect();
                if !held.is_empty() {
                    picked.push(self.flights.remove(held[held.len() - 1 - pick % held.len()]));
                }
            }
            picked
        };
        returned.extend(pick(&booking.returns, false));
        let offered = pick(&booking.confirms, true);
        let held = |at| {
            let seated = offered.iter().filter(|flight| flight.seated);
            self.places(booking.member, at) + seated.map(|flight| flight.costs[at]).sum::<i64>()
        };
        let places = chosen.iter().map(|&at| held(at)).collect();
        let booked = |flights: &[Flight], confirms: bool| -> Vec<_> {
            // Which has its places asks for none.
            let asked = |(at, &cost): (usize, &i64), flight: &Flight| {
                let has = confirms && flight.seated && matches!(history.limits[at], Kind::Flight { .. });
                if has { 0 } else { cost }
            };
            let booked = |flight: &Flight| {
                let costs: Vec<_> = flight.costs.iter().enumerate().map(|cost| asked(cost, flight)).collect();
                Booked {
                    slot: flight.slot,
                    costs: narrow(&costs),
                    class: flight.class,
                    far: flight.claimable,
                }
            };
            flights.iter().map(booked).collect()
        };
        let mut settles = vec![];
        for &(pick, part) in &booking.settles {
            let flew = |flight: &&mut Flight| {
                flight.member == booking.member
                    && flight.set == set
                    && flight.slot <= self.now
                    && !flight.settled
            };
            let mut flew: Vec<_> = self.flights.iter_mut().filter(flew).collect();
            let len = flew.len();
            let Some(flight) = len.checked_sub(1 + pick % len.max(1)).map(|at| &mut flew[at]) else {
                continue;
            };
            let change = |(&cost, kind): (&i64, &Kind)| match kind {
                // A place is held or not.
                Kind::Flight { .. } => 0,
                _ => cost * part / 1_000 - cost,
            };
            let change: Vec<_> = flight.costs.iter().zip(&history.limits).map(change).collect();
            settles.push(Booked::new(flight.slot, narrow(&change)));
            flight.settled = true;
            if ours {
                // What it cost more is a debt: nobody flies for it.
                flight.costs.iter_mut().zip(change).for_each(|(cost, change)| *cost += change.min(0));
            }
        }
        self.number += 1;
        let call = Call {
            member: booking.member,
            parts: if booking.member.is_multiple_of(2) { [PART.into()].into() } else { Arc::default() },
            number: self.number,
            generation,
            lead: part(booking.lead),
            late: part(booking.late),
            horizon: booking.horizon.min(part(history.near)),
            places,
            more: booking.more,
            goodbye: booking.goodbye,
            returns: booked(&returned, false),
            confirms: booked(&offered, true),
            settles,
            wants: booking
                .wants
                .iter()
                .map(|&((price, class), budget, count)| Want {
                    class,
                    costs: costs(price),
                    budget: budget.map(part),
                    count,
                })
                .collect(),
        };
        let answer = match machine.book(self.now, &limits, &call) {
            Reply::Booked(answer) => answer,
            // Nothing was settled either, but what cost less is believed: it must not be booked for others.
            Reply::Undecided(Undecided::Stale(_)) => {
                self.flights.extend(returned.into_iter().chain(offered));
                return;
            }
            Reply::Undecided(Undecided::Changed(_, accords)) => {
                for (at, accord) in chosen.into_iter().zip(accords) {
                    self.agreed.insert((booking.member, set, at), accord);
                }
                self.flights.extend(offered);
                let held = |flight: &mut Flight| {
                    flight.far && flight.member == booking.member && flight.set == set && !flight.landed
                };
                returned.extend(self.flights.extract_if(.., held));
                return self.book_and_return(history, machine, booking, returned);
            }
        };
        let mut most = vec![0; history.limits.len()];
        chosen.iter().zip(&limits).for_each(|(&at, limit)| most[at] = limit.rule.max());
        self.booked += 1;
        let order = self.booked;
        let near = |slot: Micros| slot <= self.now + call.reach();
        let flight = |slot: Micros, costs: Vec<i64>, class: Class, seated: bool| Flight {
            class,
            set,
            slot,
            costs,
            seated: seated || near(slot),
            settled: false,
            landed: false,
            flies: slot + self.behind,
            far: !near(slot),
            claimable: !near(slot) && class > answer.highest,
            member: call.member,
            generation: answer.generation,
            order,
            most: most.clone(),
        };
        assert!(ours || returned.is_empty() || self.generation == Some(answer.generation));
        let confirmed = answer.confirmed.iter().zip(&offered);
        let confirmed = confirmed.filter_map(|(&slot, old)| Some((slot?, old)));
        let confirmed = confirmed.map(|(slot, old)| {
            let kept = ours && slot == old.slot;
            let new = flight(slot, old.costs.clone(), old.class, old.seated);
            // If it was near it is late by what the clock has stepped, and that is the guard's.
            let flies = if old.far { new.flies } else { old.flies };
            let old_terms = Flight { order: old.order, most: old.most.clone(), flies, ..new.clone() };
            (old.seated, if kept { old_terms } else { new })
        });
        let mut booked: Vec<_> = confirmed.collect();
        for (outcome, want) in answer.outcomes.iter().zip(&call.wants) {
            booked.extend(
                outcome.slots.iter().map(|&slot| (false, flight(slot, wide(&want.costs), want.class, false))),
            );
        }
        let took =
            |at: usize| booked.iter().any(|(had, flight)| flight.seated && !had && flight.costs[at] > 0);
        let took: Vec<_> = (0..history.limits.len()).map(took).collect();
        self.flights.extend(booked.into_iter().map(|(_, flight)| flight));
        for at in chosen {
            self.told.insert((booking.member, at), self.now);
            if let Kind::Flight { lease, .. } = history.limits[at]
                && took[at]
                && self.behind == 0
            {
                self.judge_places(at, most[at], lease);
            }
        }
        self.generation = Some(answer.generation);
        self.last.retain(|(member, ..)| *member != call.member);
        self.last.push((call.member, self.now, limits, call));
    }

    /// Held by a member under a limit.
    fn places(&self, member: u64, limit: usize) -> i64 {
        let has = |flight: &&Flight| flight.member == member && flight.seated && !flight.landed;
        let held = self.flights.iter().filter(has);
        held.map(|flight| flight.costs[limit]).sum()
    }

    /// After a place was taken: no more are held than there are, by members that were heard of in time.
    fn judge_places(&self, limit: usize, max: i64, lease: Micros) {
        let heard = self.told.iter().filter(|((_, at), told)| *at == limit && **told + lease > self.now);
        let held: i64 = heard.map(|((member, _), _)| self.places(*member, limit)).sum();
        assert!(held <= max, "{held} of {max} calls in flight at {}", self.now);
    }

    fn repeat(&mut self, machine: &mut impl Machine, member: u64) {
        let last = self.last.iter().find(|last| last.0 == member);
        // A goodbye ages by the time within which a member is live.
        if let Some((_, then, limits, call)) = last
            && then + FORGOTTEN - 2 * SECOND > self.now
        {
            machine.book(self.now, limits, call);
        }
    }
}

/// How wild a history may be.
#[derive(Clone, Copy, Debug)]
pub struct Wild {
    pub steps: usize,
    /// The resets told may be wrong, and the clock may step back by any amount.
    pub wrong: bool,
    /// The clock may step back, by less than half the shortest window in all.
    pub back: bool,
    /// Replicas have different limits, and set others at run time.
    pub changes: bool,
}

pub fn histories(wild: Wild) -> impl Strategy<Value = History> {
    let steps = vec(step(wild), 1..wild.steps);
    (vec(kind(), 1..=3), steps).prop_map(move |(limits, mut steps)| {
        let mut left = 450;
        steps.retain(|step| match step {
            Step::Back(part) if !wild.wrong => {
                left -= part;
                wild.back && left >= 0
            }
            _ => true,
        });
        // What is booked ahead flies later by what the clock steps back: together less than a window.
        let near = if wild.back && !wild.wrong { 400 } else { 1_000_000_000 };
        History { near, limits, steps }
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    let windows =
        || select(vec![1_000, 10_000, SECOND, 30 * SECOND, 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND]);
    let max = || prop_oneof![1..8_i64, select(vec![10, 17, 100, 300, 1_000, 2_000_000])];
    let guard = || select(vec![0, 10, 50, 200_i64]);
    prop_oneof![
        6 => (max(), windows(), guard(), any::<bool>()).prop_map(|(max, window, guard, paced)| {
            Kind::Rolling { max, window, guard: window / 1_000 * guard, paced }
        }),
        2 => (max(), windows(), 1..60_i64, guard()).prop_map(|(max, window, burst, guard)| {
            // What parsing lets through: products stay below 2^53.
            let window = window.min(3_600 * SECOND);
            Kind::Bucket { max, window, burst, guard: window / 1_000 * guard }
        }).prop_filter("not exact in Lua", |kind| exact(*kind)),
        2 => (max(), windows(), select(vec![0, 10, 100_i64])).prop_map(|(max, period, guard)| {
            Kind::Calendar { max, period, guard: period / 1_000 * guard }
        }),
        2 => (1..8_i64, windows()).prop_map(|(max, lease)| Kind::Flight { max, lease }),
        1 => Just(Kind::Rolling { max: 1, window: 60 * SECOND, guard: 600_000, paced: true }),
        1 => Just(Kind::Rolling { max: 2_000_000, window: SECOND, guard: 50_000, paced: true }),
        1 => Just(Kind::Bucket { max: 10, window: SECOND, burst: 20, guard: 50_000 }),
    ]
}

fn exact(kind: Kind) -> bool {
    match kind.rule(EPOCH) {
        Rule::Bucket(rule) => rule.capacity.checked_mul(rule.period).is_some_and(|parts| parts < 1 << 53),
        _ => true,
    }
}

fn step(wild: Wild) -> impl Strategy<Value = Step> {
    let back: Part = if wild.wrong { 20_000 } else { 200 };
    let part = || prop_oneof![select(vec![500, 1_000, 1_500_i64]), 100..2_000_i64];
    let changes = prop_oneof![
        (0..4_u64, 0..3_usize, part()).prop_map(|(member, limit, part)| Step::Deploy { member, limit, part }),
        (0..4_u64, 0..3_usize, part(), prop::bool::weighted(0.3))
            .prop_map(|(member, limit, part, again)| Step::Set { member, limit, part, again }),
    ];
    let changes = if wild.changes { changes.boxed() } else { Just(Step::Peek).boxed() };
    prop_oneof![
        3 => changes,
        12 => booking(wild).prop_map(Step::Book),
        1 => stream(),
        1 => (0..4_u64).prop_map(Step::Repeat),
        1 => (prop_oneof![0..100_i64, 0..3_000_i64], any::<bool>())
            .prop_map(|(time, of_part)| Step::Pause(time, of_part)),
        4 => prop_oneof![0..30_i64, 0..1_200_i64, Just(1_000), 0..5_000_i64].prop_map(Step::Pass),
        1 => prop_oneof![0..30_i64, 0..1_200_i64].prop_map(Step::PassLong),
        2 => prop_oneof![0..100_i64, 0..50_000_i64, Just(1_500_001), Just(3_600 * SECOND)]
            .prop_map(Step::PassMicros),
        2 => (0..4_u64, 0..20_usize, select(vec![-2_000, -1, 0, 1, 1_000]))
            .prop_map(|(member, pick, after)| Step::Until { member, pick, after }),
        1 => (-1..=1_i64).prop_map(Step::PassSpan),
        2 => (0..back).prop_map(Step::Back),
    ]
}

fn stream() -> impl Strategy<Value = Step> {
    let apart = prop_oneof![
        select(vec![0, 1, 3, 5, 20_i64]).prop_map(Apart::Window),
        (500..2_100_i64).prop_map(Apart::Permit),
    ];
    let times = prop_oneof![4 => 1..60_u32, 1 => 300..400_u32];
    (0..4_u64, times, apart, select(vec![1, 5, 50_i64]))
        .prop_map(|(member, times, apart, cost)| Step::Stream { member, times, apart, cost })
}

fn booking(wild: Wild) -> impl Strategy<Value = Booking> {
    let picks = || prop_oneof![3 => Just(vec![]), 1 => vec(0..40_usize, 1..4)];
    let lead = prop_oneof![4 => Just(0), 2 => 0..30_i64, 1 => 0..700_i64, 1 => 0..3_000_i64];
    let late = prop_oneof![3 => Just(0), 1 => 0..30_i64, 1 => 0..700_i64];
    let horizon = prop_oneof![3 => Just(50_000), 1 => select(vec![0, 1_009, 200_000, 2 * SECOND])];
    let budget = prop_oneof![
        3 => Just(None),
        1 => Just(Some(0)),
        2 => prop_oneof![0..50_i64, 0..3_000_i64].prop_map(Some),
    ];
    let count = prop_oneof![4 => 1..4_u32, 2 => 1..40_u32, 1 => Just(300)];
    // What no limit admits the gate refuses by itself.
    let never: Part = if wild.wrong { 1_500 } else { 1_000 };
    let part = prop_oneof![9 => Just(0), 3 => 0..1_000_i64, 3 => Just(1_000), 1 => Just(never)];
    let each = prop::array::uniform3(prop::option::weighted(0.8, part.clone()));
    let price = prop_oneof![2 => part.prop_map(Price::Same), 1 => each.prop_map(Price::Each)];
    let class = prop_oneof![3 => Just(1), 1 => 0..3_u8];
    let wants = vec(((price, class), budget, count), 0..4);
    let real = prop_oneof![3 => 0..1_000_i64, 2 => 1_000..2_000_i64, 1 => Just(20_000)];
    let lands = prop_oneof![1 => Just(vec![]), 1 => vec(0..40_usize, 1..6)];
    let settles = prop_oneof![3 => Just(vec![]), 1 => vec((0..40_usize, real), 1..4)];
    let generation = prop_oneof![8 => Just(Known::Right), 1 => Just(Known::Wrong), 1 => Just(Known::Nothing)];
    let off =
        prop_oneof![30 => Just(0), 1 => -4..4_i64].prop_map(move |off| if wild.wrong { off } else { 0 });
    let flags = (0..4_u64, any::<u8>(), prop::bool::weighted(0.3), prop::bool::weighted(0.05));
    (flags, (lead, late), horizon, picks(), (picks(), lands, settles), wants, generation, off).prop_map(
        |(
            (member, set, more, goodbye),
            (lead, late),
            horizon,
            returns,
            (confirms, lands, settles),
            wants,
            generation,
            off,
        )| {
            Booking {
                member,
                set,
                lead,
                late,
                horizon,
                more,
                goodbye,
                returns,
                confirms,
                lands,
                settles,
                wants,
                generation,
                off,
            }
        },
    )
}

/// The same cases each time; `CASES` plays more of them.
pub fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(1),
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    }
}
