//! The limits of one call, laid out: decided together, all or nothing.

use super::{
    Micros,
    call::{Booked, Outcome, Refused, Want},
    limits::{Rule, State, Taking},
};

/// What one call has got so far, and where it must stop.
#[derive(Default)]
pub struct Round {
    start: Micros,
    reach: Micros,
    /// The last slot it was given before.
    before: Micros,
    /// Slot time one call may take while others wait.
    quantum: Micros,
    /// Permits that are free now that one call may take.
    burst: i64,
    far_held: bool,
    pub granted: u32,
    pub refused: u32,
    used: Micros,
    burnt: i64,
    pub last: Micros,
    /// Not granted: the slot at which the round ended.
    pub stop: Option<Micros>,
    /// The last refusal, with its cost and budget: who asks for no less and waits no longer shares it.
    dead: Option<(i64, Micros, Refused)>,
}

impl Round {
    pub fn begin(desk: &Desk<'_>, start: Micros, reach: Micros, before: Micros, far_held: bool) -> Self {
        Self {
            start,
            reach,
            before,
            quantum: reach,
            burst: if desk.live > 1 { (desk.smallest() / desk.live).max(1) } else { i64::MAX },
            far_held,
            ..Self::default()
        }
    }
}

/// The limits of one call, laid out.
pub struct Desk<'a> {
    pub now: Micros,
    pub base: Micros,
    pub resume: Micros,
    pub live: i64,
    pub contended: bool,
    /// Something was booked, returned or exchanged.
    pub touched: bool,
    pub limits: Vec<(&'a Rule, State)>,
}

impl Desk<'_> {
    pub fn prune(&mut self) {
        for (rule, state) in &mut self.limits {
            state.prune(rule, self.now, self.resume);
        }
    }

    /// `unused`: nobody flies in its place.
    pub fn give(&mut self, booked: Booked, unused: bool) {
        for (rule, state) in &mut self.limits {
            let found = state.give(rule, self.now, booked.slot, booked.cost);
            self.touched |= found;
            if found && unused {
                state.ease(rule, self.now, booked.cost);
            }
        }
    }

    /// The earliest slot that all limits agree on.
    pub fn fit(&self, cost: i64) -> Micros {
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
    pub fn confirm(&mut self, confirms: &[Booked], ours: bool, from: Micros) -> Vec<Option<Micros>> {
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

    pub fn serve(&mut self, want: &Want, round: &mut Round) -> Outcome {
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
    pub fn refusal(&self, slot: Micros, cost: i64, start: Micros) -> Refused {
        if slot == self.base && self.base > start {
            return Refused { at: slot, limit: None };
        }
        let decides = |(rule, state): &(&Rule, State)| self.decides(rule, state, slot, cost);
        Refused { at: slot, limit: Some(self.limits.iter().position(decides).unwrap_or(0)) }
    }

    pub fn is_paced(&self, next: &Refused) -> bool {
        match next.limit.map(|at| &self.limits[at]) {
            Some((Rule::Rolling(rule), State::Rolling(state))) => state.is_paced(rule, next.at, self.resume),
            Some((Rule::Bucket(_), _)) => next.at > self.base,
            _ => false,
        }
    }

    fn smallest(&self) -> i64 {
        self.limits.iter().map(|(rule, _)| rule.max()).min().unwrap_or(i64::MAX)
    }

    pub fn left(&self) -> Vec<i64> {
        self.limits.iter().map(|(rule, state)| state.left(rule, self.now, self.resume)).collect()
    }
}
