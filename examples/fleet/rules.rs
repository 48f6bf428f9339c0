//! What the upstream answers, as a pure machine: a trip before the quota, the quota before a redirect.

use std::ops::Range;

use crate::{
    quota::{Nanos, Quota},
    trip::Trip,
};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Hit,
    /// Where redirects lead. It costs as much and never redirects.
    Landed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Accepted,
    /// Accepted, and charged, but what is asked for is elsewhere.
    Redirected,
    /// In whole seconds, rounded up, at least one.
    Refused {
        retry_after: u64,
    },
}

pub struct Rules {
    quota: Quota,
    trip: Option<Trip>,
    /// Of what is accepted one in so many is redirected.
    redirect_every: Option<u64>,
    accepted_hits: u64,
    first: Option<Nanos>,
}

impl Rules {
    pub fn new(quota: Quota, trip: Option<Trip>, redirect_every: Option<u64>) -> Self {
        Self { quota, trip, redirect_every, accepted_hits: 0, first: None }
    }

    pub fn answer(&mut self, now: Nanos, page: Page) -> Answer {
        self.first.get_or_insert(now);
        if let Some(trip) = self.trip().filter(|trip| trip.contains(&now)) {
            // Not charged: who refuses everybody does not count.
            return refused(trip.end - now);
        }
        if let Err(wait) = self.quota.arrive(now) {
            return refused(wait);
        }
        if page == Page::Landed {
            return Answer::Accepted;
        }
        self.accepted_hits += 1;
        match self.redirect_every {
            Some(every) if self.accepted_hits.is_multiple_of(every) => Answer::Redirected,
            _ => Answer::Accepted,
        }
    }

    /// When the trip is, or was; not known before the first arrival.
    pub fn trip(&self) -> Option<Range<Nanos>> {
        Some(self.trip?.span(self.first?))
    }
}

fn refused(wait: Nanos) -> Answer {
    Answer::Refused { retry_after: wait.div_ceil(1_000_000_000).max(1) }
}
