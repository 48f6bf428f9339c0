//! At most `max` between two resets of a calendar. Zones are the caller's business: it hands in the resets.

use std::collections::BTreeMap;

use super::Micros;

/// A calendar limit as numbers: consecutive resets, the first not after now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub max: i64,
    pub guard: Micros,
    pub resets: Vec<Micros>,
}

/// The resets that count for one slot: the end of its own period, and of a neighbour within the guard.
struct Periods {
    own: Micros,
    before: Option<Micros>,
    after: Option<Micros>,
}

impl Rule {
    /// Whether the resets reach around `now` far enough to decide.
    pub fn covers(&self, now: Micros) -> bool {
        self.resets.len() > 2 && self.resets[0] <= now && now < self.resets[2]
    }

    /// Slots from here on lie beyond the resets handed in.
    pub fn end(&self) -> Micros {
        self.resets.last().map_or(0, |last| last - self.guard)
    }

    fn periods(&self, t: Micros) -> Option<Periods> {
        let next = self.resets.iter().position(|&reset| reset > t).filter(|_| t < self.end())?;
        let own = self.resets[next];
        // Of the period that ends with the first reset only what lies near that may still count.
        if next == 0 && t < own - self.guard {
            return None;
        }
        Some(Periods {
            own,
            // The provider's clock is not ours: near a reset a slot may land on either side of it.
            before: self.resets[..next].last().copied().filter(|start| t < start + self.guard),
            after: (t >= own - self.guard).then(|| self.resets.get(next + 1).copied()).flatten(),
        })
    }
}

/// Use by period, named by the reset that ends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub used: BTreeMap<Micros, i64>,
}

impl State {
    pub fn prune(&mut self, rule: &Rule, now: Micros) {
        self.used.retain(|&end, _| end + rule.guard > now);
    }

    /// The earliest slot with room, or `Rule::end` where that is not known.
    pub fn room(&self, rule: &Rule, mut t: Micros, cost: i64) -> Micros {
        let full = |end: Micros| self.used.get(&end).copied().unwrap_or(0) + cost > rule.max;
        while let Some(periods) = rule.periods(t) {
            let Some(end) = [periods.after, Some(periods.own), periods.before]
                .into_iter()
                .flatten()
                .find(|&end| full(end))
            else {
                return t;
            };
            t = end + rule.guard;
        }
        t.max(rule.end())
    }

    pub fn take(&mut self, rule: &Rule, slot: Micros, cost: i64) {
        self.change(rule, slot, cost);
    }

    /// What a permit costs on top, in the periods of its slot.
    pub fn charge(&mut self, rule: &Rule, slot: Micros, extra: i64) -> bool {
        let extra = extra.min(2 * rule.max - self.most(rule, slot));
        extra > 0 && self.change(rule, slot, extra)
    }

    pub fn give(&mut self, rule: &Rule, slot: Micros, cost: i64) -> bool {
        self.change(rule, slot, -cost)
    }

    /// Tells whether a period counts otherwise than before.
    fn change(&mut self, rule: &Rule, slot: Micros, by: i64) -> bool {
        let before = self.used.clone();
        let Some(periods) = rule.periods(slot) else { return false };
        for end in [Some(periods.own), periods.before, periods.after].into_iter().flatten() {
            let used = self.used.get(&end).copied().unwrap_or(0) + by;
            if used > 0 {
                self.used.insert(end, used);
            } else {
                self.used.remove(&end);
            }
        }
        self.used != before
    }

    pub fn left(&self, rule: &Rule, now: Micros) -> i64 {
        (rule.max - self.most(rule, now)).max(0)
    }

    /// The use of the fullest period that counts at `t`; where none is known there is no room.
    fn most(&self, rule: &Rule, t: Micros) -> i64 {
        let used = |end: Micros| self.used.get(&end).copied().unwrap_or(0);
        rule.periods(t).map_or(rule.max, |periods| {
            let ends = [Some(periods.own), periods.before, periods.after];
            ends.into_iter().flatten().map(used).max().unwrap_or(0)
        })
    }

    pub fn idle_at(&self, rule: &Rule) -> Micros {
        self.used.keys().next_back().map_or(0, |end| end + rule.guard)
    }
}
