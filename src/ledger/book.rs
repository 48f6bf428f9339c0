//! Booking: several limits decided together, all or nothing.

use std::collections::BTreeMap;

use super::{
    Micros,
    call::{Answer, Booked, Call, Generation, Outcome, Refused, Reply, Want},
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
        let mut round = Round {
            start,
            reach,
            before,
            quantum: reach,
            burst: if desk.live > 1 { (desk.smallest() / desk.live).max(1) } else { i64::MAX },
            far_held,
            ..Round::default()
        };
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

/// What one call has got so far, and where it must stop.
#[derive(Default)]
struct Round {
    start: Micros,
    reach: Micros,
    /// The last slot it was given before.
    before: Micros,
    /// Slot time one call may take while others wait.
    quantum: Micros,
    /// Permits that are free now that one call may take.
    burst: i64,
    far_held: bool,
    granted: u32,
    refused: u32,
    used: Micros,
    burnt: i64,
    last: Micros,
    /// Not granted: the slot at which the round ended.
    stop: Option<Micros>,
    /// The last refusal, with its cost and budget: who asks for no less and waits no longer shares it.
    dead: Option<(i64, Micros, Refused)>,
}

/// The limits of one call, laid out.
struct Desk<'a> {
    now: Micros,
    base: Micros,
    resume: Micros,
    live: i64,
    contended: bool,
    /// Something was booked, returned or exchanged.
    touched: bool,
    limits: Vec<(&'a Rule, State)>,
}

impl Desk<'_> {
    fn prune(&mut self) {
        for (rule, state) in &mut self.limits {
            state.prune(rule, self.now, self.resume);
        }
    }

    /// `unused`: nobody flies in its place.
    fn give(&mut self, booked: Booked, unused: bool) {
        for (rule, state) in &mut self.limits {
            let found = state.give(rule, self.now, booked.slot, booked.cost);
            self.touched |= found;
            if found && unused {
                state.ease(rule, self.now, booked.cost);
            }
        }
    }

    /// The earliest slot that all limits agree on.
    fn fit(&self, cost: i64) -> Micros {
        self.agree(cost, |rule, state, t| state.earliest(rule, t, cost, self.resume))
    }

    fn earliest_room(&self, cost: i64) -> Micros {
        self.agree(cost, |rule, state, t| state.room(rule, t, cost, self.resume))
    }

    fn agree(&self, cost: i64, earliest: impl Fn(&Rule, &State, Micros) -> Micros) -> Micros {
        let mut t = self.base;
        // What no limit ever admits would be looked for without end.
        while cost <= self.smallest() {
            let before = t;
            for (rule, state) in &self.limits {
                t = earliest(rule, state, t);
            }
            // With one limit its own word is final.
            if t == before || self.limits.len() == 1 {
                break;
            }
        }
        t
    }

    /// Whether the limit itself allows nothing earlier than `slot`.
    fn decides(&self, rule: &Rule, state: &State, slot: Micros, cost: i64) -> bool {
        slot > self.base && state.earliest(rule, slot - 1, cost, self.resume) >= slot
    }

    fn put(&mut self, slot: Micros, cost: i64) {
        for at in 0..self.limits.len() {
            let (rule, state) = &self.limits[at];
            let waited = self.decides(rule, state, slot, cost);
            let how = Taking { now: self.now, waited, paces: waited || slot <= self.base };
            let (rule, state) = &mut self.limits[at];
            state.take(rule, slot, cost, how, self.resume);
            self.touched = true;
        }
    }

    /// Slots at `from` and later are kept; the others are exchanged. All of these are given back before any is booked:
    /// they make room for each other.
    fn confirm(&mut self, confirms: &[Booked], ours: bool, from: Micros) -> Vec<Option<Micros>> {
        let kept = |booked: &Booked| ours && booked.slot >= from;
        let kept: Vec<_> = confirms.iter().map(kept).collect();
        for (booked, _) in confirms.iter().zip(&kept).filter(|(_, kept)| ours && !**kept) {
            self.give(*booked, false);
        }
        let confirms = confirms.iter().zip(kept);
        confirms
            .map(|(booked, kept)| if kept { Some(booked.slot) } else { self.exchange(booked, ours) })
            .collect()
    }

    /// One that has passed gets the earliest room, out of order and pace and moving neither: sent to the tail
    /// instead, a busy fleet loses half its quota. One that a pause or a lost state has swallowed is booked
    /// anew.
    fn exchange(&mut self, booked: &Booked, ours: bool) -> Option<Micros> {
        let anew = !ours || self.base == self.resume;
        let slot = if anew { self.fit(booked.cost) } else { self.earliest_room(booked.cost) };
        if self.is_beyond(slot, booked.cost) {
            return None;
        }
        if anew {
            self.put(slot, booked.cost);
            return Some(slot);
        }
        let how = Taking { now: self.now, waited: false, paces: false };
        for (rule, state) in &mut self.limits {
            state.take(rule, slot, booked.cost, how, self.resume);
            self.touched = true;
        }
        Some(slot)
    }

    /// Whether a slot cannot be booked: it lies beyond the resets handed in, or there is no such slot at all.
    fn is_beyond(&self, slot: Micros, cost: i64) -> bool {
        cost > self.smallest() || self.limits.iter().any(|(rule, _)| rule.beyond(slot))
    }

    /// Whether the round ends before `slot`. While others wait a call takes its part of what was booked since
    /// its own last slot, or of what is free as far as it reaches, whichever is more: not only the long shares
    /// are fair.
    fn ends(&self, round: &mut Round, want: &Want, slot: Micros) -> bool {
        let free = slot <= self.base;
        if self.contended && !free && round.used == 0 {
            let time = (self.now + round.reach - slot).max(slot - round.before);
            round.quantum = time.clamp(0, round.reach) / self.live;
        }
        if self.is_beyond(slot, want.cost) {
            return true;
        }
        if slot > self.now + round.reach && (round.granted > 0 || round.far_held) {
            return true;
        }
        if round.granted == 0 {
            return false;
        }
        if free { round.burnt + want.cost > round.burst } else { round.used >= round.quantum }
    }

    fn serve(&mut self, want: &Want, round: &mut Round) -> Outcome {
        let mut outcome = Outcome::default();
        let budget = want.budget.unwrap_or(Micros::MAX);
        for done in 0..want.count {
            if let Some((_, _, refused)) = round.dead.filter(|dead| want.cost >= dead.0 && budget <= dead.1) {
                outcome.refused = Some(refused);
                round.refused += want.count - done;
                break;
            }
            if round.stop.is_some() {
                break;
            }
            let slot = self.fit(want.cost);
            if slot > round.start && slot - self.now > budget {
                let refused = self.refusal(slot, want.cost, round.start);
                round.dead = Some((want.cost, budget, refused));
                outcome.refused = Some(refused);
                round.refused += want.count - done;
                break;
            }
            let step = self.limits.iter().map(|(rule, _)| rule.spacing(want.cost)).max().unwrap_or(0);
            if self.ends(round, want, slot) {
                round.stop = Some(slot);
                break;
            }
            self.put(slot, want.cost);
            outcome.slots.push(slot);
            round.granted += 1;
            round.last = round.last.max(slot);
            if slot <= self.base {
                round.burnt += want.cost;
            } else {
                round.used += step;
            }
        }
        outcome
    }

    /// `slot` and the limit that allows none earlier, unless it is the pause.
    fn refusal(&self, slot: Micros, cost: i64, start: Micros) -> Refused {
        if slot == self.base && self.base > start {
            return Refused { at: slot, limit: None };
        }
        let decides = |(rule, state): &(&Rule, State)| self.decides(rule, state, slot, cost);
        Refused { at: slot, limit: Some(self.limits.iter().position(decides).unwrap_or(0)) }
    }

    fn is_paced(&self, next: &Refused) -> bool {
        match next.limit.map(|at| &self.limits[at]) {
            Some((Rule::Rolling(rule), State::Rolling(state))) => state.is_paced(rule, next.at, self.resume),
            Some((Rule::Bucket(_), _)) => next.at > self.base,
            _ => false,
        }
    }

    fn smallest(&self) -> i64 {
        self.limits.iter().map(|(rule, _)| rule.max()).min().unwrap_or(i64::MAX)
    }

    fn left(&self) -> Vec<i64> {
        self.limits.iter().map(|(rule, state)| state.left(rule, self.now, self.resume)).collect()
    }
}
