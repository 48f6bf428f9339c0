//! What a gate asks of the ledger and what it is told: one booking.

use std::sync::Arc;

use super::Micros;

/// Ordinal of a provider's state and the store's time at which it began. Another one means that what was
/// booked before is not in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation {
    pub ordinal: i64,
    pub since: Micros,
}

/// What a request takes of each limit of a call, in their order. 0: it does not touch that one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Costs(Arc<[i64]>);

impl Costs {
    /// The same of each of so many limits.
    pub fn same(cost: i64, limits: usize) -> Self {
        std::iter::repeat_n(cost, limits).collect()
    }

    /// What it takes of one limit.
    pub fn of(&self, limit: usize) -> i64 {
        self.0.get(limit).copied().unwrap_or(0)
    }

    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        self.0.iter().copied()
    }

    pub fn is_nothing(&self) -> bool {
        self.iter().all(|cost| cost == 0)
    }

    /// Whether it takes at least as much of every limit: what is refused to the other is refused to this.
    pub fn covers(&self, other: &Self) -> bool {
        self.iter().zip(other.iter()).all(|(ours, theirs)| ours >= theirs)
    }

    pub fn plus(&self, other: &Self) -> Self {
        self.iter().zip(other.iter()).map(|(ours, theirs)| ours.saturating_add(theirs)).collect()
    }

    pub fn minus(&self, other: &Self) -> Self {
        self.iter().zip(other.iter()).map(|(ours, theirs)| ours.saturating_sub(theirs)).collect()
    }
}

impl FromIterator<i64> for Costs {
    fn from_iter<I: IntoIterator<Item = i64>>(costs: I) -> Self {
        Self(costs.into_iter().collect())
    }
}

/// How many classes of callers there are.
pub const CLASSES: usize = 3;

/// Who goes first: 0 before 1 before 2.
pub type Class = u8;

/// A permit as the ledger knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booked {
    pub slot: Micros,
    pub costs: Costs,
    pub class: Class,
    /// It was booked far ahead and was not confirmed since: one of a higher class may have it.
    pub far: bool,
}

impl Booked {
    /// One that is nobody else's.
    pub fn new(slot: Micros, costs: Costs) -> Self {
        Self { slot, costs, class: 1, far: false }
    }
}

/// `count` callers in a row that want the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    pub costs: Costs,
    pub class: Class,
    /// The longest wait from now that is of use; `None`: any.
    pub budget: Option<Micros>,
    pub count: u32,
}

/// One numbered booking of one member: a gate, as the store knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    pub member: u64,
    /// The member's own: a repeated number gets the same answer and books nothing.
    pub number: i64,
    /// The generation in which `returns`, `settles` and `confirms` were booked.
    pub generation: Option<Generation>,
    /// No slot before now plus this: about the time the reply takes.
    pub lead: Micros,
    /// A permit to be confirmed may have passed by so much at the moment that `lead` tells: it flies a little
    /// late instead of being exchanged.
    pub late: Micros,
    /// How far ahead slots may be booked; beyond it one, to be confirmed.
    pub horizon: Micros,
    /// Places in flight that the member has under each limit, before this call and without what it returns: for calls
    /// that fly, and for permits that have one.
    pub places: Costs,
    /// Parts of the provider that the call is in, by name: a pause of one stops it, too.
    pub parts: Arc<[Arc<str>]>,
    /// More callers queue than are asked for here.
    pub more: bool,
    /// The member leaves.
    pub goodbye: bool,
    /// Permits that nobody wants any more.
    pub returns: Vec<Booked>,
    /// Permits whose real cost is known now, with what that is more than was booked; less is negative.
    pub settles: Vec<Booked>,
    /// Permits that are far or late: kept or moved up if their slot is still ahead, else exchanged. Their costs are 0
    /// under limits of calls in flight if they have their places.
    pub confirms: Vec<Booked>,
    pub wants: Vec<Want>,
}

impl Call {
    /// How far ahead slots are near.
    pub fn reach(&self) -> Micros {
        self.horizon / 10 * 8
    }
}

/// What became of one [`Want`]: some are granted, then the rest refused or left for the next call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub slots: Vec<Micros>,
    pub refused: Option<Refused>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// When it could have been.
    pub at: Micros,
    /// Which limit made it so; `None`: the provider is paused.
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The store's time.
    pub now: Micros,
    /// When it was decided: before that if the call was repeated.
    pub decided: Micros,
    /// The highest class that is in use under these limits.
    pub highest: Class,
    pub generation: Generation,
    /// Until when the provider is paused, or a part of it that the call is in.
    pub pause: Micros,
    /// Slots of the confirmed permits, in their order; `None`: nothing can be had for it yet, or no place, ask anew.
    pub confirmed: Vec<Option<Micros>>,
    pub outcomes: Vec<Outcome>,
    /// No booking of what was asked for last flies before this, and the limit that makes it so.
    pub next: Option<Refused>,
    /// Whether that limit is paced or a bucket: each caller ahead then takes its spacing. Of calls in flight: whether
    /// the member stands in the line.
    pub paced: bool,
    /// What is left of each limit.
    pub left: Vec<i64>,
}

/// What the store says to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Booked(Answer),
    Undecided(Undecided),
}

/// What the caller goes by is not so, with the store's time. Nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The resets handed in do not lie around it.
    Stale(Micros),
    /// The accords on the limits are these, as texts.
    Changed(Micros, Vec<String>),
}
