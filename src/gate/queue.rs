//! Callers in the order of their priority, then of their arrival.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::ledger::Micros;

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

const PRIORITIES: usize = 3;

/// A place in the queue; who is served first has the smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    class: usize,
    number: u64,
}

impl Ticket {
    pub fn new(priority: Priority, number: u64) -> Self {
        let class = match priority {
            Priority::High => 0,
            Priority::Normal => 1,
            Priority::Low => 2,
        };
        Self { class, number }
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
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub cost: i64,
    pub priority: Priority,
    pub patience: Patience,
    /// It was served before, and goes before all who came after that.
    pub place: Option<Ticket>,
}

impl Ask {
    pub fn new(cost: i64, patience: Patience) -> Self {
        Self { cost, priority: Priority::Normal, patience, place: None }
    }

    pub fn waiter<W>(&self, arrived: Micros, handle: W) -> Waiter<W> {
        Waiter { cost: self.cost, arrived, patience: self.patience, handle }
    }
}

/// `W` is how the caller is told.
#[derive(Debug)]
pub struct Waiter<W> {
    pub cost: i64,
    pub arrived: Micros,
    pub patience: Patience,
    pub handle: W,
}

#[derive(Debug)]
pub struct Queue<W> {
    waiters: BTreeMap<Ticket, Waiter<W>>,
    by_cost: HashMap<i64, BTreeSet<Ticket>>,
    deadlines: BTreeSet<(Micros, Ticket)>,
    /// The cost of all who wait, by class.
    costs: [i64; PRIORITIES],
    rejecting: usize,
}

impl<W> Queue<W> {
    pub fn new() -> Self {
        Self {
            waiters: BTreeMap::new(),
            by_cost: HashMap::new(),
            deadlines: BTreeSet::new(),
            costs: [0; PRIORITIES],
            rejecting: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// The cost of all who are served before one who comes now.
    pub fn cost_before(&self, ticket: Ticket) -> i64 {
        self.costs[..=ticket.class].iter().sum()
    }

    pub fn rejecting(&self) -> usize {
        self.rejecting
    }

    pub fn push(&mut self, ticket: Ticket, waiter: Waiter<W>) {
        self.costs[ticket.class] += waiter.cost;
        self.by_cost.entry(waiter.cost).or_default().insert(ticket);
        match waiter.patience {
            Patience::Until(deadline) => _ = self.deadlines.insert((deadline, ticket)),
            Patience::Reject => self.rejecting += 1,
        }
        self.waiters.insert(ticket, waiter);
    }

    pub fn remove(&mut self, ticket: Ticket) -> Option<Waiter<W>> {
        let waiter = self.waiters.remove(&ticket)?;
        self.costs[ticket.class] -= waiter.cost;
        if let Some(same) = self.by_cost.get_mut(&waiter.cost) {
            same.remove(&ticket);
            if same.is_empty() {
                self.by_cost.remove(&waiter.cost);
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

    pub fn pop_first(&mut self) -> Option<Waiter<W>> {
        let ticket = *self.waiters.first_key_value()?.0;
        self.remove(ticket)
    }

    /// The first who wants exactly this: a permit of another cost has another slot by right.
    pub fn pop_cost(&mut self, cost: i64) -> Option<Waiter<W>> {
        let ticket = *self.by_cost.get(&cost)?.first()?;
        self.remove(ticket)
    }

    /// Those who want exactly this and are served before one who has this place.
    pub fn before(&self, ticket: Ticket, cost: i64) -> impl Iterator<Item = Ticket> {
        self.by_cost.get(&cost).into_iter().flat_map(move |same| same.range(..ticket).copied())
    }

    pub fn count_of(&self, cost: i64) -> usize {
        self.by_cost.get(&cost).map_or(0, BTreeSet::len)
    }

    /// Each cost that is waited for, and by how many.
    pub fn costs(&self) -> impl Iterator<Item = (i64, usize)> {
        self.by_cost.iter().map(|(cost, tickets)| (*cost, tickets.len()))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &Waiter<W>)> {
        self.waiters.iter().map(|(ticket, waiter)| (*ticket, waiter))
    }

    pub fn next_deadline(&self) -> Option<Micros> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// One whose time is up.
    pub fn pop_overdue(&mut self, now: Micros) -> Option<Waiter<W>> {
        let (deadline, ticket) = *self.deadlines.first()?;
        if deadline > now { None } else { self.remove(ticket) }
    }
}
