//! What the upstream answers, as a pure machine: a trip first, then places for calls, then the quota, then a
//! redirect.

use std::ops::Range;

use crate::{
    flights::{Flights, InFlight},
    price::Price,
    quota::{Nanos, Quota, Which},
    trip::Trip,
};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Hit,
    /// Where redirects lead. It costs one request and never redirects.
    Landed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Accepted,
    /// Accepted, and charged, but what is asked for is elsewhere.
    Redirected,
    Refused {
        /// In whole seconds, rounded up, at least one.
        retry_after: u64,
        /// The limits that had no room; none of them if it was for something else.
        by: Which,
    },
}

pub struct Rules {
    quota: Quota,
    flights: Option<Flights>,
    trip: Option<Trip>,
    /// Of what is accepted one in so many is redirected.
    redirect_every: Option<u64>,
    accepted_hits: u64,
    first: Option<Nanos>,
}

impl Rules {
    /// `places`: so many calls may be in flight.
    pub fn new(quota: Quota, places: Option<usize>, trip: Option<Trip>, redirect_every: Option<u64>) -> Self {
        let flights = places.map(Flights::new);
        Self { quota, flights, trip, redirect_every, accepted_hits: 0, first: None }
    }

    /// A call that is not refused has a place until [`end`](Self::end).
    pub fn answer(&mut self, now: Nanos, page: Page, price: &Price) -> Answer {
        self.first.get_or_insert(now);
        if let Some(trip) = self.trip().filter(|trip| trip.contains(&now)) {
            // Not charged: who refuses everybody does not count.
            return refused(trip.end - now, Which::default());
        }
        if self.flights.as_mut().is_some_and(|flights| !flights.arrive(now)) {
            // Nobody knows when a place will be free.
            return refused(0, Which::default());
        }
        if let Err(refusal) = self.quota.arrive(now, price) {
            return refused(refusal.wait, refusal.by);
        }
        self.flights.iter_mut().for_each(Flights::begin);
        if page == Page::Landed {
            return Answer::Accepted;
        }
        self.accepted_hits += 1;
        match self.redirect_every {
            Some(every) if self.accepted_hits.is_multiple_of(every) => Answer::Redirected,
            _ => Answer::Accepted,
        }
    }

    /// The answer to a call that was not refused has ended.
    pub fn end(&mut self, now: Nanos) {
        self.flights.iter_mut().for_each(|flights| flights.end(now));
    }

    /// When the trip is, or was; not known before the first arrival.
    pub fn trip(&self) -> Option<Range<Nanos>> {
        Some(self.trip?.span(self.first?))
    }

    pub fn in_flight(&self) -> Option<InFlight> {
        self.flights.as_ref().map(Flights::outcome)
    }
}

fn refused(wait: Nanos, by: Which) -> Answer {
    Answer::Refused { retry_after: wait.div_ceil(1_000_000_000).max(1), by }
}
