//! What a gate asks of the ledger and what it is told: one booking.

use super::Micros;

/// Ordinal of a provider's state and the store's time at which it began. Another one means that what was
/// booked before is not in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation {
    pub ordinal: i64,
    pub since: Micros,
}

/// A permit as the ledger knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booked {
    pub slot: Micros,
    pub cost: i64,
}

/// `count` callers in a row that want the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    pub cost: i64,
    /// The longest wait from now that is of use; `None`: any.
    pub budget: Option<Micros>,
    pub count: u32,
}

/// One numbered booking of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    pub member: u64,
    /// The member's own: a repeated number gets the same answer and books nothing.
    pub number: i64,
    /// The generation in which `returns` and `confirms` were booked.
    pub generation: Option<Generation>,
    /// No slot before now plus this: about the time the reply takes.
    pub lead: Micros,
    /// A permit to be confirmed may have passed by so much at the moment that `lead` tells: it flies a little
    /// late instead of being exchanged.
    pub late: Micros,
    /// How far ahead slots may be booked; beyond it one, to be confirmed.
    pub horizon: Micros,
    /// More callers queue than are asked for here.
    pub more: bool,
    /// The member leaves.
    pub goodbye: bool,
    /// Permits that nobody wants any more.
    pub returns: Vec<Booked>,
    /// Permits that are far or late: kept if their slot is still ahead, else exchanged.
    pub confirms: Vec<Booked>,
    pub wants: Vec<Want>,
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
    pub generation: Generation,
    pub pause: Micros,
    /// Slots of the confirmed permits, in their order; `None`: nothing can be had for it yet, ask anew.
    pub confirmed: Vec<Option<Micros>>,
    pub outcomes: Vec<Outcome>,
    /// No booking of what was asked for last flies before this, and the limit that makes it so.
    pub next: Option<Refused>,
    /// Whether that limit is paced or a bucket: each caller ahead then takes its spacing.
    pub paced: bool,
    /// What is left of each limit.
    pub left: Vec<i64>,
}

/// What the store says to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Booked(Answer),
    /// The resets handed in do not lie around the store's time, which is this.
    Stale(Micros),
}
