//! Callers in the order of their priority, then of their arrival.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Common;
use crate::ledger::{CLASSES, Class, Costs, Micros};

/// Who is served first within a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// Before all others, such as a person who looks at the screen.
    High,
    /// The default.
    #[default]
    Normal,
    /// When nobody else waits, such as a nightly batch.
    Low,
}

impl Priority {
    /// Its place in the order.
    pub fn class(self) -> Class {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }
}

/// A place in the queue; who is served first has the smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    /// When its caller came, and so much later for each class that goes before it: so a higher one goes first, but
    /// who has waited that long is overtaken no more.
    rank: Micros,
    number: u32,
    class: Class,
}

impl Ticket {
    pub fn new(priority: Priority, now: Micros, ageing: Micros, number: u32) -> Self {
        let class = priority.class();
        Self { rank: now.saturating_add(ageing.saturating_mul(i64::from(class))), number, class }
    }
}

/// How long a caller will wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all, but for the store's word.
    Reject,
    /// Until this moment of the monotonic clock.
    Until(Micros),
}

impl Patience {
    /// The last moment at which a permit is of use to one who comes now.
    pub fn bound(self, now: Micros) -> Micros {
        match self {
            Self::Reject => now,
            Self::Until(deadline) => deadline,
        }
    }
}

/// What a caller asks for.
#[derive(Clone, Debug)]
pub struct Ask {
    pub costs: Costs,
    pub priority: Priority,
    pub patience: Patience,
    /// It was served before, and goes before all who came after that.
    pub place: Option<Ticket>,
}

impl Ask {
    pub fn new(costs: Costs, patience: Patience) -> Self {
        Self { costs, priority: Priority::Normal, patience, place: None }
    }

    pub fn waiter<W>(&self, arrived: Micros, handle: W) -> Waiter<W> {
        Waiter { costs: self.costs.clone(), arrived, patience: self.patience, handle }
    }
}

/// `W` is how the caller is told.
#[derive(Debug)]
pub struct Waiter<W> {
    pub costs: Costs,
    pub arrived: Micros,
    pub patience: Patience,
    pub handle: W,
}

#[derive(Debug)]
pub struct Queue<W> {
    waiters: BTreeMap<Ticket, Waiter<W>>,
    by_costs: HashMap<Costs, BTreeSet<Ticket>>,
    deadlines: BTreeSet<(Micros, Ticket)>,
    /// What all who wait take of each limit, by class.
    sums: Vec<[i64; CLASSES]>,
    rejecting: usize,
    /// Counts all who wait, at this gate and others.
    common: Common,
}

impl<W> Queue<W> {
    pub fn new(limits: usize, common: Common) -> Self {
        Self {
            common,
            waiters: BTreeMap::new(),
            by_costs: HashMap::new(),
            deadlines: BTreeSet::new(),
            sums: vec![[0; CLASSES]; limits],
            rejecting: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// What all who are served before one who comes now take of a limit.
    pub fn cost_before(&self, ticket: Ticket, limit: usize) -> i64 {
        self.sums.get(limit).map_or(0, |sums| sums[..=usize::from(ticket.class)].iter().sum())
    }

    fn count(&mut self, ticket: Ticket, costs: &Costs, times: i64) {
        for (sums, cost) in self.sums.iter_mut().zip(costs.iter()) {
            sums[usize::from(ticket.class)] += times * cost;
        }
    }

    pub fn rejecting(&self) -> usize {
        self.rejecting
    }

    pub fn push(&mut self, ticket: Ticket, waiter: Waiter<W>) {
        self.count(ticket, &waiter.costs, 1);
        self.by_costs.entry(waiter.costs.clone()).or_default().insert(ticket);
        match waiter.patience {
            Patience::Until(deadline) => _ = self.deadlines.insert((deadline, ticket)),
            Patience::Reject => self.rejecting += 1,
        }
        if self.waiters.insert(ticket, waiter).is_none() {
            self.common.came();
        }
    }

    pub fn remove(&mut self, ticket: Ticket) -> Option<Waiter<W>> {
        let waiter = self.waiters.remove(&ticket)?;
        self.common.went(1);
        self.count(ticket, &waiter.costs, -1);
        if let Some(same) = self.by_costs.get_mut(&waiter.costs) {
            same.remove(&ticket);
            if same.is_empty() {
                self.by_costs.remove(&waiter.costs);
            }
        }
        match waiter.patience {
            Patience::Until(deadline) => _ = self.deadlines.remove(&(deadline, ticket)),
            Patience::Reject => self.rejecting -= 1,
        }
        Some(waiter)
    }

    /// One that would not wait has been granted a permit that is due at once: it stays for that.
    pub fn promise(&mut self, ticket: Ticket, until: Micros) {
        if self.waiters.get(&ticket).is_some_and(|waiter| waiter.patience == Patience::Reject)
            && let Some(waiter) = self.remove(ticket)
        {
            self.push(ticket, Waiter { patience: Patience::Until(until), ..waiter });
        }
    }

    /// The class that a caller is served in.
    pub fn class(&self, ticket: Ticket) -> Class {
        ticket.class
    }

    /// At this gate and others.
    pub fn len_in_all(&self) -> usize {
        self.common.queued()
    }

    pub fn pop_first(&mut self) -> Option<Waiter<W>> {
        let ticket = *self.waiters.first_key_value()?.0;
        self.remove(ticket)
    }

    /// The first who wants exactly this: a permit of another cost has another slot by right.
    pub fn pop_same(&mut self, costs: &Costs) -> Option<Waiter<W>> {
        let ticket = *self.by_costs.get(costs)?.first()?;
        self.remove(ticket)
    }

    /// Those who want exactly this and are served before one who has this place.
    pub fn before(&self, ticket: Ticket, costs: &Costs) -> impl Iterator<Item = Ticket> {
        self.by_costs.get(costs).into_iter().flat_map(move |same| same.range(..ticket).copied())
    }

    pub fn count_of(&self, costs: &Costs) -> usize {
        self.by_costs.get(costs).map_or(0, BTreeSet::len)
    }

    /// Each cost that is waited for, and by how many.
    pub fn costs(&self) -> impl Iterator<Item = (&Costs, usize)> {
        self.by_costs.iter().map(|(costs, tickets)| (costs, tickets.len()))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &Waiter<W>)> {
        self.waiters.iter().map(|(ticket, waiter)| (*ticket, waiter))
    }

    pub fn next_deadline(&self) -> Option<Micros> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// One whose time will be up before that.
    pub fn remove_if_before(&mut self, ticket: Ticket, time: Micros) -> Option<Waiter<W>> {
        let deadline = self.waiters.get(&ticket)?.patience;
        if matches!(deadline, Patience::Until(deadline) if deadline < time) {
            self.remove(ticket)
        } else {
            None
        }
    }

    /// One whose time is up.
    pub fn pop_overdue(&mut self, now: Micros) -> Option<Waiter<W>> {
        let (deadline, ticket) = *self.deadlines.first()?;
        if deadline > now { None } else { self.remove(ticket) }
    }
}

impl<W> Drop for Queue<W> {
    fn drop(&mut self) {
        self.common.went(self.waiters.len());
    }
}
