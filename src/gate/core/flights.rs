//! Places in flight: what this gate holds, and how it keeps and gets them.

use super::{Core, Permit};
use crate::ledger::{Booked, Costs, Micros, Rule};

/// Who waits for a place is called up by the bell; if that is lost, it asks again after so long. So does who must tell
/// of its places a store that does not answer.
pub const PATROL: Micros = 500_000;

/// Places of calls that have set out and not ended, under each limit.
#[derive(Debug)]
pub struct Flights {
    flying: Vec<i64>,
    /// Which of them count calls in flight.
    counts: Vec<bool>,
    /// The shortest lease, if any does.
    lease: Option<Micros>,
    /// Some have ended, or are not what the store was told, and it does not know yet.
    pub(super) landed: bool,
    /// The store lets this gate stand in a line for a place.
    pub(super) in_line: bool,
}

impl Flights {
    pub fn new(rules: &[Rule]) -> Self {
        let counts = rules.iter().map(|rule| matches!(rule, Rule::Flight(_))).collect();
        let mut flights =
            Self { flying: vec![0; rules.len()], counts, lease: None, landed: false, in_line: false };
        flights.relimit(rules);
        flights
    }

    pub(super) fn relimit(&mut self, rules: &[Rule]) {
        let leases = rules.iter().filter_map(|rule| match rule {
            Rule::Flight(rule) => Some(rule.lease),
            _ => None,
        });
        self.lease = leases.min();
    }

    /// Nobody flies, and the store knows.
    pub fn is_none(&self) -> bool {
        !self.landed && !self.flies()
    }

    pub fn flies(&self) -> bool {
        self.flying.iter().any(|flying| *flying > 0)
    }

    pub fn set_out(&mut self, costs: &Costs) {
        self.count(costs, 1);
    }

    /// A permit with its places, or without. If it needs none it has them.
    pub(super) fn seat(&self, permit: Permit, seated: bool) -> Permit {
        let needs = |(counts, cost): (&bool, i64)| *counts && cost > 0;
        let needs = self.counts.iter().zip(permit.booked.costs.iter()).any(needs);
        Permit { seated: seated || !needs, ..permit }
    }

    /// Others may stand in a line in which it does not.
    pub(super) fn needs_no_place(&self, costs: &Costs) -> bool {
        self.counts.iter().zip(costs.iter()).any(|(counts, cost)| *counts && cost == 0)
    }

    /// What is to be confirmed of a permit: not the places that it has.
    pub(super) fn missing(&self, permit: &Permit) -> Booked {
        if self.lease.is_none() || !permit.seated {
            return permit.booked.clone();
        }
        let costs = self.counts.iter().zip(permit.booked.costs.iter());
        let costs = costs.map(|(counts, cost)| if *counts { 0 } else { cost }).collect();
        Booked { costs, ..permit.booked.clone() }
    }

    /// It did not set out after all: the gate has the permit again.
    pub fn turned_back(&mut self, costs: &Costs) {
        self.count(costs, -1);
    }

    fn count(&mut self, costs: &Costs, times: i64) {
        let places = self.counts.iter().zip(costs.iter()).map(|(counts, cost)| i64::from(*counts) * cost);
        for (flying, places) in self.flying.iter_mut().zip(places) {
            *flying = (*flying + times * places).max(0);
        }
    }
}

impl<W> Core<W> {
    /// A call has ended.
    pub fn landed(&mut self, places: &Costs) {
        self.flights.count(places, -1);
        self.flights.landed = true;
    }

    /// There is a place for who waits here.
    pub fn called_up(&mut self) {
        self.nothing = None;
        if let Some(sent) = &mut self.sent {
            sent.called_up = true;
        }
    }

    /// Somebody comes who need not wait for those who stand in the line, nor for the next look at it.
    pub(super) fn look_past_the_line(&mut self) {
        if self.flights.in_line {
            self.nothing = None;
        }
        if let Some(sent) = &mut self.sent {
            sent.called_up = true;
        }
    }

    /// Whether somebody waits who needs no place, and no permit is held for it.
    pub(super) fn lacks_permits_without_places(&self) -> bool {
        let mut needs_none = self.queue.costs().filter(|(costs, _)| self.flights.needs_no_place(costs));
        needs_none.any(|(costs, count)| count > self.held_of(costs))
    }

    /// All places that this gate has, also of permits that it holds, but not of those that it gives back now: the store
    /// believes that, and nothing else.
    pub(super) fn places(&mut self) -> Costs {
        self.flights.landed = false;
        if self.flights.lease.is_none() {
            return Costs::default();
        }
        let seated = || self.held.iter().filter(|permit| permit.seated);
        let at_hand = |limit| seated().map(|permit| permit.booked.costs.of(limit)).sum::<i64>();
        let places = self.settings.rules.iter().enumerate().map(|(at, rule)| match rule {
            Rule::Flight(_) => self.flights.flying[at] + at_hand(at),
            _ => 0,
        });
        places.collect()
    }

    /// When the store must hear of this gate, so that it keeps its places: long before the lease is over.
    pub(super) fn renew_at(&self) -> Option<Micros> {
        let has = !self.flights.is_none() || self.held.iter().any(|permit| permit.seated);
        self.flights.lease.filter(|_| has).map(|lease| self.heard + lease / 3)
    }

    /// When a call that failed is sent again although nobody waits here: so that places are kept, or free before
    /// their lease is over.
    pub(super) fn retry_at(&self) -> Option<Micros> {
        let sent = self.sent.as_ref().filter(|sent| !sent.under_way && !self.flights.is_none())?;
        (self.flights.flies() || sent.retry < self.heard + self.flights.lease?).then_some(sent.retry)
    }

    /// What the store believes of this gate's places may not be so: it has lost its state, or permits were lost here.
    pub(super) fn doubt_the_places(&mut self, told: &Costs) {
        self.flights.landed |= !told.is_nothing();
    }
}
