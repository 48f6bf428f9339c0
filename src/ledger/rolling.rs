//! At most `max` in every interval of length `span`: a token comes back one span after its slot.

use super::{
    Micros,
    call::{CLASSES, Class},
    cells::Cells,
    limits::Taking,
};

/// Cells per window: what rounding costs is one cell, 0.4 % of the window.
const CELLS: Micros = 256;

/// A rolling limit as numbers. Times in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub max: i64,
    /// Window and guard.
    pub span: Micros,
    pub cell: Micros,
    /// How far the pace may lag behind the slots: a permit that comes a little late does not slow the stream.
    pub slack: Micros,
    pub paced: bool,
}

impl Rule {
    pub fn new(max: i64, window: Micros, guard: Micros, paced: bool) -> Self {
        Self {
            max,
            span: window + guard,
            cell: (window / CELLS).max(1),
            slack: (guard / 2).min(window / 200),
            paced,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub log: Cells,
    /// In each class no slot before the last one that had to wait because of this limit: first come, first served.
    pub tails: [Micros; CLASSES],
    /// While paced: the next slot, and the part of a microsecond it is short of, in 1/max.
    pub pace: Micros,
    pub pace_rem: i64,
    /// Paced before this moment.
    pub paced_until: Micros,
}

impl State {
    pub fn prune(&mut self, rule: &Rule, now: Micros) {
        self.log.drop_until(now - rule.span);
    }

    /// The earliest slot from `t` on: in order, paced where the state says so, with room.
    /// `resume` is the end of the last pause (0: none), from which the stream starts paced; `t` is not before it.
    pub fn earliest(&self, rule: &Rule, t: Micros, class: Class, cost: i64, resume: Micros) -> Micros {
        let mut t = t.max(self.tails[usize::from(class)]);
        if self.is_paced(rule, t, resume) {
            t = t.max(self.pace);
        }
        self.room(rule, t, cost)
    }

    pub fn is_paced(&self, rule: &Rule, t: Micros, resume: Micros) -> bool {
        rule.paced && t < self.paced_until.max(resume + 2 * rule.span)
    }

    /// The earliest moment from `t` on at which every interval that contains it, what is booked in the
    /// future included, has room for `cost`.
    pub fn room(&self, rule: &Rule, mut t: Micros, cost: i64) -> Micros {
        // The usual case, without a walk.
        if self.log.used + cost <= rule.max {
            return t;
        }
        loop {
            match self.log.last() {
                None => return t,
                Some(last) if last.latest <= t => return self.room_at_the_end(rule, t, cost),
                Some(_) => match self.overfull(rule, t, cost) {
                    None => return t,
                    Some(oldest) => t = oldest + rule.span,
                },
            }
        }
    }

    /// Nothing is booked after `t`: only the interval that ends at `t` counts.
    fn room_at_the_end(&self, rule: &Rule, mut t: Micros, cost: i64) -> Micros {
        let mut used = self.log.used;
        let mut at = 0;
        while let Some(cell) = self.log.get(at) {
            if cell.latest > t - rule.span {
                if used + cost <= rule.max {
                    break;
                }
                t = cell.latest + rule.span;
            }
            used -= cell.count;
            at += 1;
        }
        t
    }

    /// The first cell of the last interval containing `t` that has no room for `cost`.
    fn overfull(&self, rule: &Rule, t: Micros, cost: i64) -> Option<Micros> {
        let len = self.log.len();
        let mut first = 0;
        while first < len && self.log.get(first).is_some_and(|cell| cell.latest <= t - rule.span) {
            first += 1;
        }
        let (mut end, mut used, mut found) = (first, 0, None);
        while let Some(cell) = self.log.get(first) {
            let begin = cell.latest.min(t);
            while let Some(next) = self.log.get(end) {
                if next.earliest >= begin + rule.span {
                    break;
                }
                used += next.count;
                end += 1;
            }
            if used + cost > rule.max {
                found = Some(cell.latest);
            }
            if cell.latest > t {
                break;
            }
            used -= cell.count;
            first += 1;
        }
        found
    }

    /// A slot that waits for ANOTHER limit moves neither order nor pace, else a saturated
    /// route would hold up the rest.
    pub fn take(&mut self, rule: &Rule, slot: Micros, cost: i64, how: Taking, resume: Micros) {
        self.log.add(rule.cell, slot, cost);
        if how.waited {
            let tail = &mut self.tails[usize::from(how.class)];
            *tail = slot.max(*tail);
        }
        if !rule.paced {
            return;
        }
        // Paced from the booking that fills the window, until two windows pass without one that finds it
        // half full. A stream at the very limit never refills a hole: it would look idle and burst again.
        let full = self.log.used + cost > rule.max;
        let busy = self.is_paced(rule, slot, resume) && 2 * self.log.used >= rule.max;
        if full || busy {
            self.paced_until = self.paced_until.max(slot + 2 * rule.span);
        }
        if how.paces {
            // What is free now has its place now, also if the reply takes a while: else a far replica would
            // leave a hole before each of its slots.
            let place = if how.waited { slot } else { how.now };
            self.pace_on(rule, place, cost, resume);
        }
    }

    /// The next slot is as much later as `cost` takes of a saturated stream.
    fn pace_on(&mut self, rule: &Rule, place: Micros, cost: i64, resume: Micros) {
        let base = self.pace.max(resume).max(place - rule.slack);
        let rem = if base == self.pace { self.pace_rem } else { 0 };
        let (step, rem) = spacing(cost, rule.span, rule.max, rem);
        self.pace = base + step;
        self.pace_rem = rem;
    }

    /// What a permit costs on top of what was booked, at its slot; the stream slows down by as much, but never for
    /// longer than until one further window has passed.
    pub fn charge(&mut self, rule: &Rule, now: Micros, slot: Micros, extra: i64, resume: Micros) -> bool {
        let extra = extra.min(2 * rule.max - self.log.used);
        if extra <= 0 || slot <= now - rule.span {
            return false;
        }
        self.log.add(rule.cell, slot, extra);
        if rule.paced {
            if self.log.used >= rule.max {
                self.paced_until = self.paced_until.max(slot.max(now) + 2 * rule.span);
            }
            let before = (self.pace, self.pace_rem);
            self.pace_on(rule, now, extra, resume);
            let latest = slot + 2 * rule.span;
            if self.pace > latest {
                (self.pace, self.pace_rem) = before.max((latest, 0));
            }
        }
        true
    }

    /// Not of a window that is over: others may lie in the same cell.
    pub fn give(&mut self, rule: &Rule, now: Micros, slot: Micros, cost: i64) -> bool {
        slot > now - rule.span && self.log.remove(rule.cell, slot, cost)
    }

    /// What came back unused leaves its place in the pace, too: else a fleet that books ahead and gives back
    /// would be slowed down by what it never sent. But what has passed is over, or much that comes back at once
    /// would be a burst.
    pub fn ease(&mut self, rule: &Rule, now: Micros, cost: i64) {
        if !rule.paced || self.pace <= now {
            return;
        }
        let (step, part) = spacing(cost, rule.span, rule.max, 0);
        let rem = self.pace_rem - part;
        let short = rem < 0;
        self.pace -= step + i64::from(short);
        self.pace_rem = if short { rem + rule.max } else { rem };
        if self.pace < now {
            (self.pace, self.pace_rem) = (now, 0);
        }
    }

    pub fn left(&self, rule: &Rule) -> i64 {
        (rule.max - self.log.used).max(0)
    }

    /// From when on this state equals a fresh one.
    pub fn idle_at(&self, rule: &Rule) -> Micros {
        let free = self.log.last().map_or(0, |cell| cell.latest + rule.span);
        self.tails.into_iter().fold(free.max(self.paced_until).max(self.pace), Micros::max)
    }
}

/// `(cost * span + rem) / max` and what remains, without a product above 2^53: Lua counts in doubles.
pub fn spacing(cost: i64, span: Micros, max: i64, rem: i64) -> (Micros, i64) {
    let part = cost * (span % max) + rem;
    (cost * (span / max) + part / max, part % max)
}
