//! Places in flight at the desk: they are no slots, and are decided beside them.

use super::{
    Micros,
    call::{Costs, Refused},
    desk::{Desk, Seat},
    flight,
    limits::{Rule, State},
};

/// The limits of calls in flight, with their places among all.
fn flights<'s>(
    limits: &'s mut [Seat<'_>],
) -> impl Iterator<Item = (usize, &'s flight::Rule, &'s mut flight::State)> {
    limits.iter_mut().enumerate().filter_map(|(at, seat)| match (seat.rule, &mut seat.state) {
        (Rule::Flight(rule), State::Flight(state)) => Some((at, rule, state)),
        _ => None,
    })
}

impl Desk<'_> {
    /// The member tells how many places it holds.
    pub fn seat(&mut self, places: &Costs) {
        for (at, rule, state) in flights(&mut self.limits) {
            let known = state.holders.get(&self.member).map_or(0, |holder| holder.places);
            state.hold(rule, self.now, self.member, places.of(at));
            self.touched |= known > 0 || places.of(at) > 0;
        }
    }

    pub fn take_places(&mut self, costs: &Costs) {
        for (at, rule, state) in flights(&mut self.limits).filter(|(at, ..)| costs.of(*at) > 0) {
            state.take(rule, self.now, self.member, costs.of(at));
            self.touched = true;
        }
    }

    /// With a slot that is not far.
    pub fn take_places_at(&mut self, slot: Micros, costs: &Costs) {
        if slot <= self.now + self.reach {
            self.take_places(costs);
        }
    }

    /// The first limit that has no place for such a slot now.
    pub fn lacks_places(&self, slot: Micros, costs: &Costs) -> Option<usize> {
        if slot <= self.now + self.reach { self.full(costs) } else { None }
    }

    /// The first limit that has no place for it.
    pub fn full(&self, costs: &Costs) -> Option<usize> {
        let mut touched = self.limits.iter().zip(costs.iter());
        touched.position(|(seat, cost)| match (seat.rule, &seat.state) {
            (Rule::Flight(rule), State::Flight(state)) => {
                cost > 0 && !state.has_room(rule, self.member, cost)
            }
            _ => false,
        })
    }

    /// There is no place under this limit, and nobody knows when.
    pub fn no_place(&self, limit: usize) -> Refused {
        Refused { at: self.now, limit: Some(limit) }
    }

    /// Who found so many places missing stands in the line for them; who wants none any more leaves it.
    pub fn queue(&mut self, full: Option<(usize, i64)>) {
        for (at, _, state) in flights(&mut self.limits) {
            let places = full.filter(|(limit, _)| *limit == at).map_or(0, |(_, places)| places);
            if places > 0 || state.line.contains_key(&self.member) {
                state.queue(self.now, self.member, places);
                self.touched = true;
            }
        }
    }

    /// Other members whose turn it is.
    pub fn entitled(&mut self) -> Vec<u64> {
        let entitled = flights(&mut self.limits).flat_map(|(_, rule, state)| state.entitled(rule));
        entitled.filter(|other| *other != self.member).collect()
    }
}
