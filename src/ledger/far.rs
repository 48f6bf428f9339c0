//! Slots far ahead. They must be confirmed shortly before they are due, and until then a caller of a higher class may
//! have one: without that it would stand behind all that lower classes have booked, one slot for each gate.

use std::collections::BTreeMap;

use super::{
    Micros,
    call::{Booked, Class, Costs, Want},
    desk::Desk,
    limits::{Rule, Taking},
};

/// Who has not asked for its slot so long after it is gone.
const GONE: Micros = 60_000_000;
/// Slots that are looked at: most often the first will do.
const TRIES: usize = 8;

/// Far slots of one limit: what a member has charged there in a class. Only of classes that are not the highest ones
/// in use: nobody else can have the others.
#[derive(Clone, Debug, Default)]
pub struct Far {
    slots: BTreeMap<Key, i64>,
    /// Until when the highest class counts as being in use. The next one always does.
    highest_until: Micros,
}

type Key = (Micros, u64, Class);

/// A far slot of somebody else.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub slot: Micros,
    member: u64,
    class: Class,
}

impl Found {
    fn key(&self) -> Key {
        (self.slot, self.member, self.class)
    }
}

impl Far {
    /// One of the highest class wants something.
    fn meet_highest(&mut self, now: Micros) {
        // Not at each call: it is written down.
        if self.highest_until < now + GONE / 2 {
            self.highest_until = now + GONE;
        }
    }

    fn note(&mut self, now: Micros, key: Key, cost: i64) {
        self.slots.retain(|(slot, ..), _| *slot > now - GONE);
        if self.highest_until <= now - GONE {
            // Gone like the others, also for a clock that steps back.
            self.highest_until = 0;
        }
        *self.slots.entry(key).or_default() += cost;
    }

    fn charged(&self, key: &Key) -> i64 {
        self.slots.get(key).copied().unwrap_or(0)
    }

    /// Takes so much out of it, or what there is.
    fn take(&mut self, key: &Key, cost: i64) -> i64 {
        let charged = self.charged(key);
        let taken = charged.min(cost);
        if taken == charged {
            self.slots.remove(key);
        } else {
            self.slots.insert(*key, charged - taken);
        }
        taken
    }

    pub fn is_idle(&self, now: Micros) -> bool {
        self.slots.is_empty() && self.highest_until <= now
    }

    /// Others' of a lower class from `from` on and before `until`, the earliest first.
    fn below(&self, class: Class, member: u64, from: Micros, until: Micros) -> impl Iterator<Item = Found> {
        let all = self.slots.keys().map(|&(slot, member, class)| Found { slot, member, class });
        all.skip_while(move |it| it.slot < from)
            .take_while(move |it| it.slot < until)
            .filter(move |it| it.class > class && it.member != member)
    }
}

impl Desk<'_> {
    /// Whether there is anybody of the highest class is told by what is wanted.
    pub fn meet(&mut self, wants: &[Want]) {
        for want in wants.iter().filter(|want| want.class == 0) {
            for (seat, _) in self.limits.iter_mut().zip(want.costs.iter()).filter(|(_, cost)| *cost > 0) {
                seat.far.meet_highest(self.now);
            }
        }
        let met = self.limits.iter().any(|seat| seat.far.highest_until > self.now);
        self.highest = Class::from(!met);
    }

    /// A slot that was booked may be so far ahead that others may have it.
    pub fn note_far(&mut self, slot: Micros, costs: &Costs, class: Class) {
        if slot <= self.now + self.reach || class <= self.highest {
            return;
        }
        for (seat, cost) in self.limits.iter_mut().zip(costs.iter()) {
            // A place in flight is no slot.
            if cost == 0 || matches!(seat.rule, Rule::Flight(_)) {
                continue;
            }
            seat.far.note(self.now, (slot, self.member, class), cost);
        }
    }

    /// Whether a permit still has its slot under all limits, and what of it is its own: what somebody else has taken
    /// it cannot give back. It is no far one any more afterwards.
    pub fn redeem(&mut self, booked: &Booked) -> (bool, Booked) {
        if !booked.far {
            return (true, booked.clone());
        }
        let key = (booked.slot, self.member, booked.class);
        let own = self.limits.iter_mut().zip(booked.costs.iter()).map(|(seat, cost)| match seat.rule {
            Rule::Flight(_) => cost,
            _ if cost == 0 => 0,
            _ => seat.far.take(&key, cost),
        });
        let own: Costs = own.collect();
        (own.covers(&booked.costs), Booked { costs: own, ..booked.clone() })
    }

    /// The first far slot of a lower class before `slot`, whether it can be had or not.
    pub fn first_below(&self, costs: &Costs, class: Class, slot: Micros) -> Option<Micros> {
        let seats = self.limits.iter().zip(costs.iter()).filter(|(_, cost)| *cost > 0);
        let first = seats.map(|(seat, _)| seat.far.below(class, self.member, self.base, slot));
        first.filter_map(|mut below| Some(below.next()?.slot)).min()
    }

    /// Takes it over: the charge stands, and under the other limits it is charged like any other.
    pub fn claim(&mut self, costs: &Costs, class: Class, found: Found) {
        for at in 0..self.limits.len() {
            let cost = costs.of(at);
            if cost == 0 {
                continue;
            }
            let far = &mut self.limits[at].far;
            if far.charged(&found.key()) >= cost {
                far.take(&found.key(), cost);
                continue;
            }
            let waited = self.decides(&self.limits[at], found.slot, class, cost);
            let how = Taking { now: self.now, class, waited, paces: waited };
            self.take(at, found.slot, costs, how);
        }
        self.touched = true;
        self.note_far(found.slot, costs, class);
    }

    /// The far slot of a lower class that may be had instead of `slot`.
    pub fn find(&self, costs: &Costs, class: Class, slot: Micros) -> Option<Found> {
        let seats = self.limits.iter().enumerate().filter(|(at, _)| costs.of(*at) > 0);
        let (_, decisive) =
            seats.clone().find(|(at, seat)| self.decides(seat, slot, class, costs.of(*at)))?;
        let mut candidates = decisive.far.below(class, self.member, self.base, slot).take(TRIES);
        candidates.find(|found| {
            seats.clone().all(|(at, seat)| {
                let cost = costs.of(at);
                seat.far.charged(&found.key()) >= cost
                    || (!seat.rule.beyond(found.slot)
                        && seat.state.earliest(seat.rule, found.slot, class, cost, seat.resume) == found.slot)
            })
        })
    }
}
