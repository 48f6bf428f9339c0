//! At most so many calls at once: a place is taken when a call may set out and is free again when it has ended.

use std::collections::BTreeMap;

use super::Micros;

/// Who waits for a place asks again within this time, twice as long as it means to, or has left the line.
const WAITS: Micros = 1_000_000;

/// A limit of calls in flight as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub max: i64,
    /// A member unheard of for so long has lost its places.
    pub lease: Micros,
}

/// Places by member, and the line of those who wait for one.
///
/// A member always tells how many places it holds; the state never counts up or down by itself. So whatever was lost
/// or told twice, late or out of order is right again with the next call, and what comes back late adds no room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub holders: BTreeMap<u64, Holder>,
    pub line: BTreeMap<u64, Waiting>,
    /// The number of who came last.
    pub last: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub places: i64,
    pub until: Micros,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub number: i64,
    /// So many it wants at once.
    pub places: i64,
    pub until: Micros,
}

impl State {
    pub fn prune(&mut self, now: Micros) {
        self.holders.retain(|_, holder| holder.until > now);
        self.line.retain(|_, waiting| waiting.until > now);
    }

    /// A member calls, and holds so many places.
    pub fn hold(&mut self, rule: &Rule, now: Micros, member: u64, places: i64) {
        if places > 0 {
            self.holders.insert(member, Holder { places, until: now + rule.lease });
        } else {
            self.holders.remove(&member);
        }
    }

    pub fn free(&self, rule: &Rule) -> i64 {
        rule.max - self.holders.values().map(|holder| holder.places).sum::<i64>()
    }

    /// Whether a member may take so many now: who stands before it in the line has its own coming.
    pub fn has_room(&self, rule: &Rule, member: u64, cost: i64) -> bool {
        let place = self.line.get(&member).map_or(i64::MAX, |waiting| waiting.number);
        let ahead = self.line.values().filter(|waiting| waiting.number < place);
        self.free(rule) - ahead.map(|waiting| waiting.places).sum::<i64>() >= cost
    }

    /// Takes so many more. Who wants others goes to the end of the line.
    pub fn take(&mut self, rule: &Rule, now: Micros, member: u64, cost: i64) {
        let places = self.holders.get(&member).map_or(0, |holder| holder.places);
        self.hold(rule, now, member, places + cost);
        self.line.remove(&member);
    }

    /// Stands in the line for so many, at its end unless it stands there already; for none, it leaves.
    pub fn queue(&mut self, now: Micros, member: u64, places: i64) {
        if places == 0 {
            self.line.remove(&member);
            return;
        }
        let number = self.line.get(&member).map(|waiting| waiting.number);
        self.last += i64::from(number.is_none());
        let number = number.unwrap_or(self.last);
        self.line.insert(member, Waiting { number, places, until: now + WAITS });
    }

    /// The first in the line, as far as there are free places.
    pub fn entitled(&self, rule: &Rule) -> Vec<u64> {
        let mut line: Vec<_> = self.line.iter().map(|(member, waiting)| (*waiting, *member)).collect();
        line.sort_unstable_by_key(|(waiting, _)| waiting.number);
        let mut free = self.free(rule);
        let fits = line.into_iter().take_while(|(waiting, _)| {
            free -= waiting.places;
            free >= 0
        });
        fits.map(|(_, member)| member).collect()
    }

    /// When there may be a place, if nobody ends before its lease does.
    pub fn earliest(&self, rule: &Rule, now: Micros) -> Micros {
        if self.free(rule) > 0 {
            return now;
        }
        self.holders.values().map(|holder| holder.until).min().unwrap_or(now).max(now)
    }

    pub fn idle_at(&self) -> Micros {
        let held = self.holders.values().map(|holder| holder.until);
        held.chain(self.line.values().map(|waiting| waiting.until)).max().unwrap_or(0)
    }
}
