//! The limits of one call, laid out: decided together, all or nothing.

use super::{
    Micros,
    call::{Booked, CLASSES, Class, Costs, Outcome, Refused, Want},
    far::{Far, Found},
    limits::{Rule, State, Taking},
};

/// What one call has got so far, and where it must stop.
#[derive(Default)]
pub struct Round {
    start: Micros,
    /// The last slot it was given before.
    before: Micros,
    /// Slot time one call may take while others wait.
    quantum: Micros,
    far_held: bool,
    pub granted: u32,
    pub refused: u32,
    used: Micros,
    pub last: Micros,
    /// Not granted: the slot at which the round ended.
    pub stop: Option<Micros>,
    /// Who came first wants so many places in flight of this limit, and waits for them.
    pub full: Option<(usize, i64)>,
    /// The last refusal, with its costs, class and budget: who asks for no less, is no better and waits no longer
    /// shares it.
    dead: Option<(Costs, Class, Micros, Refused)>,
}

impl Round {
    pub fn begin(start: Micros, reach: Micros, before: Micros, far_held: bool) -> Self {
        Self { start, before, quantum: reach, far_held, ..Self::default() }
    }
}

/// The limits of one call, laid out.
pub struct Desk<'a> {
    /// Who calls.
    pub member: u64,
    pub now: Micros,
    pub base: Micros,
    /// The end of the last pause that holds for the member.
    pub resume: Micros,
    /// A part of the provider is paused for longer than slots are near, and others are not: nothing is booked for its
    /// end yet, or what is held for that would be missing for them.
    pub shut: bool,
    /// Slots that lie further ahead are far. One that does not takes its places in flight with it; a far one gets them
    /// when it is near: who waits for a window must not keep those of others.
    pub reach: Micros,
    /// The highest class in use: nobody takes its slots.
    pub highest: Class,
    /// Something was booked, returned, settled or exchanged.
    pub touched: bool,
    pub limits: Vec<Seat<'a>>,
}

/// A limit as one call finds it.
pub struct Seat<'a> {
    pub rule: &'a Rule,
    pub state: State,
    /// The end of the last pause of all that use it.
    pub resume: Micros,
    /// What the lowest class leaves to others.
    pub reserve: i64,
    /// Slots that may still be had by others.
    pub far: Far,
    /// Members that use it, the caller included.
    pub live: i64,
    /// Others wait.
    pub contended: bool,
    /// What is free now of which this call has taken something.
    pub burnt: i64,
}

impl Seat<'_> {
    /// Of a cold burst one call takes its part at most; the next has the rest.
    fn is_burnt(&self, cost: i64) -> bool {
        self.live > 1 && cost > 0 && self.burnt + cost > (self.rule.max() / self.live).max(1)
    }
}

impl Desk<'_> {
    pub fn prune(&mut self) {
        for Seat { rule, state, resume, .. } in &mut self.limits {
            state.prune(rule, self.now, *resume);
        }
    }

    /// `unused`: nobody flies in its place.
    pub fn give(&mut self, booked: &Booked, unused: bool) {
        for (Seat { rule, state, .. }, cost) in self.limits.iter_mut().zip(booked.costs.iter()) {
            if cost > 0 && state.give(rule, self.now, booked.slot, cost) {
                self.touched = true;
                if unused {
                    state.ease(rule, self.now, cost);
                }
            }
        }
    }

    /// What a permit really cost is known: more than was booked for it, or less.
    pub fn settle(&mut self, change: &Booked) {
        let less = change.costs.iter().map(|cost| -cost).collect();
        self.give(&Booked { costs: less, ..change.clone() }, true);
        for (Seat { rule, state, resume, .. }, extra) in self.limits.iter_mut().zip(change.costs.iter()) {
            self.touched |= extra > 0 && state.charge(rule, self.now, change.slot, extra, *resume);
        }
    }

    /// The earliest slot that all limits agree on.
    pub fn fit(&self, costs: &Costs, class: Class) -> Micros {
        self.agree(costs, |seat, t, cost| {
            seat.state.earliest(seat.rule, t, class, self.need(seat, class, cost), seat.resume)
        })
    }

    /// For so much there must be room: the lowest class leaves some to others, while there is somebody of the highest.
    fn need(&self, seat: &Seat<'_>, class: Class, cost: i64) -> i64 {
        let leaves = usize::from(class) == CLASSES - 1 && self.highest == 0;
        if leaves { (cost + seat.reserve).min(seat.rule.max()) } else { cost }
    }

    fn earliest_room(&self, costs: &Costs) -> Micros {
        self.agree(costs, |seat, t, cost| seat.state.room(seat.rule, t, cost, seat.resume))
    }

    fn agree(&self, costs: &Costs, earliest: impl Fn(&Seat<'_>, Micros, i64) -> Micros) -> Micros {
        let mut t = self.base;
        // What no limit ever admits would be looked for without end.
        while !self.is_too_much(costs) {
            let before = t;
            for (seat, cost) in self.limits.iter().zip(costs.iter()) {
                t = if cost > 0 { earliest(seat, t, cost) } else { t };
            }
            // With one limit its own word is final.
            if t == before || self.limits.len() == 1 {
                break;
            }
        }
        t
    }

    /// Whether the limit itself allows nothing earlier than `slot`.
    pub fn decides(&self, seat: &Seat<'_>, slot: Micros, class: Class, cost: i64) -> bool {
        let need = || self.need(seat, class, cost);
        let earliest = || seat.state.earliest(seat.rule, slot - 1, class, need(), seat.resume);
        cost > 0 && slot > self.base && earliest() >= slot
    }

    fn put(&mut self, slot: Micros, costs: &Costs, class: Class) {
        for at in 0..self.limits.len() {
            let waited = self.decides(&self.limits[at], slot, class, costs.of(at));
            let how = Taking { now: self.now, class, waited, paces: waited || slot <= self.base };
            self.take(at, slot, costs, how);
        }
        self.note_far(slot, costs, class);
    }

    pub fn take(&mut self, at: usize, slot: Micros, costs: &Costs, how: Taking) {
        let Seat { rule, state, resume, .. } = &mut self.limits[at];
        if costs.of(at) > 0 {
            state.take(rule, slot, costs.of(at), how, *resume);
            self.touched = true;
        }
    }

    /// Slots at `from` and later are kept, or moved up if they are far, unless somebody else has them now or there is no
    /// place in flight for them; the others are exchanged. All of these are given back before any is booked: they make
    /// room for each other.
    pub fn confirm(&mut self, confirms: &[Booked], ours: bool, from: Micros) -> Vec<Option<Micros>> {
        let mut decided = Vec::with_capacity(confirms.len());
        for booked in confirms {
            let (whole, own) = if ours { self.redeem(booked) } else { (false, booked.clone()) };
            let keeps = whole && booked.slot >= from;
            let seated = keeps && self.lacks_places(booked.slot, &booked.costs).is_none();
            if seated {
                self.take_places_at(booked.slot, &booked.costs);
            } else if ours {
                self.give(&own, keeps);
            }
            decided.push((whole, keeps.then_some(seated)));
        }
        let confirms = confirms.iter().zip(decided);
        let decide = |(booked, (whole, kept)): (&Booked, (bool, Option<bool>))| match kept {
            Some(seated) => seated.then(|| self.move_up(booked)),
            None => self.exchange(booked, whole),
        };
        confirms.map(decide).collect()
    }

    /// One that has passed gets the earliest room, out of order and pace and moving neither: sent to the tail
    /// instead, a busy fleet loses half its quota. One that a pause, a lost state or a higher class has swallowed
    /// (it is not `whole`) is booked anew.
    fn exchange(&mut self, booked: &Booked, whole: bool) -> Option<Micros> {
        let Booked { costs, class, .. } = booked;
        if self.shut {
            return None;
        }
        let anew = !whole || self.base == self.resume;
        let slot = if anew { self.fit(costs, *class) } else { self.earliest_room(costs) };
        if self.is_beyond(slot, costs) || self.lacks_places(slot, costs).is_some() {
            return None;
        }
        self.take_places_at(slot, &booked.costs);
        if anew {
            self.put(slot, costs, *class);
        } else {
            self.put_out_of_order(slot, costs, *class);
        }
        Some(slot)
    }

    /// One that is still far gets the earliest room, too, if that is sooner: it was booked when less had come back. Not
    /// while there is a pause, or all would move to its end; nor under a bucket, which may not take back what it gave.
    fn move_up(&mut self, booked: &Booked) -> Micros {
        let Booked { mut slot, ref costs, class, .. } = *booked;
        let mut touched = self.limits.iter().zip(costs.iter());
        let bucket = touched.any(|(seat, cost)| cost > 0 && matches!(seat.rule, Rule::Bucket(_)));
        if slot <= self.now + self.reach || self.base == self.resume || bucket {
            self.note_far(slot, costs, class);
            return slot;
        }
        self.give(booked, false);
        // No sooner than slots are near: who gives back at once what it did not need would else move up at once, and so on.
        let base = self.base;
        self.base = base.max(self.now + self.reach);
        let sooner = self.agree(costs, |seat, t, cost| {
            seat.state.room(seat.rule, t, self.need(seat, class, cost), seat.resume)
        });
        self.base = base;
        if sooner < slot && !self.is_beyond(sooner, costs) && self.lacks_places(sooner, costs).is_none() {
            self.take_places_at(sooner, costs);
            slot = sooner;
        }
        self.put_out_of_order(slot, costs, class);
        slot
    }

    /// It moves neither order nor pace.
    fn put_out_of_order(&mut self, slot: Micros, costs: &Costs, class: Class) {
        let how = Taking { now: self.now, class, waited: false, paces: false };
        for at in 0..self.limits.len() {
            self.take(at, slot, costs, how);
        }
        self.note_far(slot, costs, class);
    }

    /// Whether a slot cannot be booked: it lies beyond the resets handed in, or there is no such slot at all.
    fn is_beyond(&self, slot: Micros, costs: &Costs) -> bool {
        let mut touched = self.limits.iter().zip(costs.iter());
        self.is_too_much(costs) || touched.any(|(seat, cost)| cost > 0 && seat.rule.beyond(slot))
    }

    fn is_too_much(&self, costs: &Costs) -> bool {
        self.limits.iter().zip(costs.iter()).any(|(seat, cost)| cost > seat.rule.max())
    }

    /// Whether the round ends before `slot`. While others wait a call takes its part of what was booked since
    /// its own last slot, or of what is free as far as it reaches, whichever is more: not only the long shares
    /// are fair.
    fn ends(&self, round: &mut Round, want: &Want, slot: Micros) -> bool {
        let free = slot <= self.base;
        if !free
            && round.used == 0
            && let Some(live) = self.crowd(&want.costs)
        {
            let time = (self.now + self.reach - slot).max(slot - round.before);
            round.quantum = time.clamp(0, self.reach) / live;
        }
        if self.is_beyond(slot, &want.costs) {
            return true;
        }
        if slot > self.now + self.reach && (round.granted > 0 || round.far_held) {
            return true;
        }
        if round.granted == 0 {
            return false;
        }
        if free {
            return self.limits.iter().zip(want.costs.iter()).any(|(seat, cost)| seat.is_burnt(cost));
        }
        round.used >= round.quantum
    }

    /// How many share the limits of which others wait for the same; `None`: nobody does.
    fn crowd(&self, costs: &Costs) -> Option<i64> {
        let touched = self.limits.iter().zip(costs.iter()).filter(|(_, cost)| *cost > 0);
        touched.filter(|(seat, _)| seat.contended).map(|(seat, _)| seat.live).max()
    }

    pub fn serve(&mut self, want: &Want, round: &mut Round) -> Outcome {
        let mut outcome = Outcome::default();
        let budget = want.budget.unwrap_or(Micros::MAX);
        if self.shut {
            if self.base - self.now > budget {
                outcome.refused = Some(Refused { at: self.base, limit: None });
                round.refused += want.count;
            }
            round.stop = Some(self.base);
            return outcome;
        }
        for done in 0..want.count {
            if let Some((costs, class, longest, refused)) = &round.dead
                && want.costs.covers(costs)
                && want.class >= *class
                && budget <= *longest
            {
                outcome.refused = Some(*refused);
                round.refused += want.count - done;
                break;
            }
            // Who waits for a place holds up those behind it who want one of the same, and nobody else: the
            // call that has the place may need a redirect hop, which takes none, before it can end.
            let behind = round.full.map(|(limit, _)| limit).filter(|&limit| want.costs.of(limit) > 0);
            let stopped = if behind.is_some() { budget > 0 } else { round.stop.is_some() };
            if stopped {
                break;
            }
            let (slot, found) = self.best(&want.costs, want.class);
            let full = behind.or_else(|| self.lacks_places(slot, &want.costs));
            let late = slot > round.start && slot - self.now > budget;
            if late || (budget == 0 && full.is_some()) {
                let refused = match full.filter(|_| !late) {
                    Some(limit) => self.no_place(limit),
                    None => self.refusal(slot, want, round.start),
                };
                round.dead = Some((want.costs.clone(), want.class, budget, refused));
                outcome.refused = Some(refused);
                round.refused += want.count - done;
                break;
            }
            if let Some(limit) = full {
                // A place comes back whenever a call ends: nobody knows when.
                round.full.get_or_insert((limit, want.costs.of(limit)));
                break;
            }
            if self.ends(round, want, slot) {
                round.stop = Some(slot);
                break;
            }
            match found {
                Some(found) => self.claim(&want.costs, want.class, found),
                None => self.put(slot, &want.costs, want.class),
            }
            self.take_places_at(slot, &want.costs);
            outcome.slots.push(slot);
            round.granted += 1;
            round.last = round.last.max(slot);
            if slot > self.base {
                round.used += self.spacing(&want.costs);
                continue;
            }
            for (seat, cost) in self.limits.iter_mut().zip(want.costs.iter()) {
                seat.burnt += cost;
            }
        }
        outcome
    }

    /// Before this nothing can be had by who wants the same, also not what others may have to give up. `stop`: where
    /// the round ended.
    pub fn outlook(&self, want: &Want, stop: Option<Micros>) -> Micros {
        let slot = stop.unwrap_or_else(|| self.fit(&want.costs, want.class));
        self.first_below(&want.costs, want.class, slot).unwrap_or(slot)
    }

    /// The earliest slot, and whose it is if a lower class has to give it up.
    fn best(&self, costs: &Costs, class: Class) -> (Micros, Option<Found>) {
        let slot = self.fit(costs, class);
        let found = if slot > self.base { self.find(costs, class, slot) } else { None };
        (found.map_or(slot, |found| found.slot), found)
    }

    /// What it takes of a saturated stream, in time.
    fn spacing(&self, costs: &Costs) -> Micros {
        self.limits.iter().zip(costs.iter()).map(|(seat, cost)| seat.rule.spacing(cost)).max().unwrap_or(0)
    }

    /// `slot` and the limit that allows none earlier, unless it is the pause or there is none.
    pub fn refusal(&self, slot: Micros, want: &Want, start: Micros) -> Refused {
        if slot == self.base && self.base > start {
            return Refused { at: slot, limit: None };
        }
        let mut touched = self.limits.iter().zip(want.costs.iter());
        let decides = |(seat, cost): (&Seat<'_>, i64)| self.decides(seat, slot, want.class, cost);
        let first = (!self.limits.is_empty()).then_some(0);
        Refused { at: slot, limit: touched.position(decides).or(first) }
    }

    pub fn is_paced(&self, next: &Refused) -> bool {
        let Some(seat) = next.limit.map(|at| &self.limits[at]) else { return false };
        match (seat.rule, &seat.state) {
            (Rule::Rolling(rule), State::Rolling(state)) => state.is_paced(rule, next.at, seat.resume),
            (Rule::Bucket(_), _) => next.at > self.base,
            (_, State::Flight(state)) => state.line.contains_key(&self.member),
            _ => false,
        }
    }

    pub fn left(&self) -> Vec<i64> {
        let left = |seat: &Seat<'_>| seat.state.left(seat.rule, self.now, seat.resume);
        self.limits.iter().map(left).collect()
    }
}
