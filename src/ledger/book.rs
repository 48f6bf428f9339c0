//! Booking: what a provider has booked, by whom, and one call to it.

use std::collections::BTreeMap;

use super::{
    Micros,
    call::{Answer, Call, Generation, Reply},
    desk::{Desk, Round},
    limits::{Rule, State, Taking},
};

/// A member heard of within this time shares what is free.
const LIVE: Micros = 1_500_000;
/// A member unseen for this long has left.
const GONE: Micros = 60_000_000;

/// A limit under the name of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub rule: Rule,
}

/// All state of one provider.
#[derive(Clone, Debug)]
pub struct Ledger {
    generation: Generation,
    pause: Micros,
    members: BTreeMap<u64, Member>,
    limits: BTreeMap<String, State>,
}

#[derive(Clone, Debug)]
struct Member {
    seen: Micros,
    /// It has callers queued until about then.
    waits: Micros,
    /// The last slot it was given.
    last: Micros,
    number: i64,
    answer: Answer,
}

/// A look at a provider that changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    pub now: Micros,
    pub pause: Micros,
    /// For each limit what is left, and the first slot of a permit of cost 1.
    pub limits: Vec<(i64, Micros)>,
}

impl Ledger {
    pub fn new(now: Micros) -> Self {
        Self {
            generation: Generation { ordinal: 1, since: now },
            pause: 0,
            members: BTreeMap::new(),
            limits: BTreeMap::new(),
        }
    }

    /// Nobody sends before `until`. Only ever later.
    pub fn pause(&mut self, until: Micros) -> Micros {
        self.pause = self.pause.max(until);
        self.pause
    }

    pub fn peek(&self, now: Micros, limits: &[Named]) -> Option<Peek> {
        let mut desk = self.open(now, limits)?;
        desk.prune();
        let start = now.max(self.pause);
        let limits = desk.limits.iter().map(|(rule, state)| {
            (state.left(rule, now, self.pause), state.earliest(rule, start, 1, self.pause))
        });
        Some(Peek { now, pause: self.pause, limits: limits.collect() })
    }

    /// What [`book`](Self::book) says to a lone caller that wants one permit now, if it can have it: charged in
    /// place, without the copy that a refusal needs. Tells the limit with the least left, and how much. Only
    /// for a clock that never steps back: what has passed is dropped even if there is no permit.
    pub fn take_now(&mut self, now: Micros, limits: &[Named], cost: i64) -> Option<(usize, i64)> {
        let resume = self.pause;
        for Named { name, rule } in limits {
            if resume > now || cost > rule.max() || !rule.covers(now) || rule.beyond(now) {
                return None;
            }
            let state = match self.limits.get_mut(name) {
                Some(state) => state,
                None => self.limits.entry(name.clone()).or_insert(rule.fresh()),
            };
            state.prune(rule, now, resume);
            if state.earliest(rule, now, cost, resume) > now {
                return None;
            }
        }
        let how = Taking { now, waited: false, paces: true };
        let left = limits.iter().enumerate().filter_map(|(at, Named { name, rule })| {
            let state = self.limits.get_mut(name)?;
            state.take(rule, now, cost, how, resume);
            Some((at, state.left(rule, now, resume)))
        });
        left.min_by_key(|(_, left)| *left)
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }

    pub fn book(&mut self, now: Micros, limits: &[Named], call: &Call) -> Reply {
        if let Some(member) = self.members.get(&call.member).filter(|member| member.number == call.number) {
            return Reply::Booked(Answer { now, ..member.answer.clone() });
        }
        let Some(mut desk) = self.open(now, limits) else { return Reply::Stale(now) };
        self.members.retain(|_, member| member.seen > now - GONE);
        let others = || self.members.iter().filter(|(id, _)| **id != call.member).map(|(_, member)| member);
        desk.live = 1 + others().filter(|member| member.seen.max(member.waits) > now - LIVE).count() as i64;
        desk.contended = others().any(|member| member.waits > now);
        let before = self.members.get(&call.member).map_or(0, |member| member.last);
        desk.prune();

        let ours = call.generation == Some(self.generation);
        if ours {
            for booked in &call.returns {
                desk.give(*booked, true);
            }
        }
        let start = now + call.lead;
        desk.base = start.max(self.pause);
        let reach = call.horizon / 10 * 8;
        let confirmed = desk.confirm(&call.confirms, ours, (start - call.late).max(self.pause));
        let far_held = confirmed.iter().flatten().any(|&slot| slot > now + reach);
        let mut round = Round::begin(&desk, start, reach, before, far_held);
        let outcomes: Vec<_> = call.wants.iter().map(|want| desk.serve(want, &mut round)).collect();
        let next = call
            .wants
            .last()
            .map(|want| desk.refusal(round.stop.unwrap_or_else(|| desk.fit(want.cost)), want.cost, start));
        let asked: u32 = call.wants.iter().map(|want| want.count).sum();
        let unserved = asked - round.granted - round.refused;
        let waits = call.more || unserved > 0;

        let answer = Answer {
            now,
            generation: self.generation,
            pause: self.pause,
            confirmed,
            outcomes,
            paced: next.is_some_and(|next| desk.is_paced(&next)),
            next,
            left: desk.left(),
        };
        // A refusal leaves no trace, not even of what was pruned for it: the clock may step back.
        if desk.touched {
            for (limit, (_, state)) in limits.iter().zip(desk.limits) {
                self.limits.insert(limit.name.clone(), state);
            }
        }
        // Who says goodbye counts as live no more. What it was told is kept as for any other: a repeated
        // goodbye must not give its permits back twice.
        let seen = if call.goodbye { now - LIVE } else { now };
        let waits = if waits && !call.goodbye { round.last.max(now) + 2 * reach } else { 0 };
        let member =
            Member { seen, waits, last: round.last.max(before), number: call.number, answer: answer.clone() };
        self.members.insert(call.member, member);
        Reply::Booked(answer)
    }

    /// The states a call is about, out of the ledger.
    fn open<'a>(&self, now: Micros, limits: &'a [Named]) -> Option<Desk<'a>> {
        if !limits.iter().all(|limit| limit.rule.covers(now)) {
            return None;
        }
        let limits = limits.iter().map(|limit| {
            let state = self.limits.get(&limit.name).cloned();
            (&limit.rule, state.unwrap_or_else(|| limit.rule.fresh()))
        });
        Some(Desk {
            now,
            base: now,
            resume: self.pause,
            live: 1,
            contended: false,
            touched: false,
            limits: limits.collect(),
        })
    }
}
