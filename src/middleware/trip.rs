//! What one call may spend, and what it has spent.

use std::{sync::Arc, time::Duration};

use reqwest::{Method, Request, Response, StatusCode, Url};
use reqwest_middleware::Result;
use tokio::time::Instant;

use super::{
    Call, Toll,
    hops::{Hop, Run, Spot, Step, step},
};
use crate::{
    clock::micros,
    error::Error,
    flight::Flight,
    gate::{Ask, Patience},
    lane::{Fare, Lane, Mode},
    permit::Permit,
    price::{CALLS, Price, REQUESTS},
    scope::Target,
    terms::Wait,
    tollgate::Tollgate,
};

/// When the call began: attempts of a layer outside share one bound.
#[derive(Clone, Copy)]
pub struct Begun(pub Instant);

/// What was booked for a hop and has gone stale meanwhile: so long its call waits for the store to exchange it.
const EXCHANGE: Duration = Duration::from_secs(1);

/// A call on its way: its choices, the moment from which its time counts, and what it has in hand.
pub struct Trip {
    pub call: Call,
    /// What it costs, as far as that is known before.
    price: Price,
    /// Where the request goes, or its last hop.
    method: Method,
    path: String,
    /// Of the keys that its provider's scopes have, unless they are given by hand.
    values: Vec<(Arc<str>, Vec<u8>)>,
    begun: Begun,
    timeout: Duration,
    /// To be sent if the first is refused.
    pub copy: Option<Request>,
    waited: Duration,
    attempts: u32,
    hops: u32,
    /// In this attempt a redirect said that the request was done.
    done: bool,
    /// What the request itself has cost in this attempt, if hops came after it.
    paid: Option<Permit>,
    /// Places in flight of hops on the way, which the call keeps to its end, or until it is led to another provider.
    flights: Vec<Flight>,
    /// The last one.
    used: Option<Permit>,
    /// It is for what is on its way, and not for what came before a hop to a host of nobody.
    current: bool,
    /// Booked for hops. What is left goes back, however the call ends.
    ahead: Option<Box<Permit>>,
}

/// What so many redirect hops cost. They are requests, but no other call in flight.
fn hops(count: u64) -> Price {
    let mut price = Price::default();
    price.set(REQUESTS, count);
    price.set(CALLS, 0);
    price
}

impl Trip {
    pub fn new(begun: Begun, call: Call, request: &Request) -> Self {
        Self {
            price: call.terms.price.clone(),
            method: request.method().clone(),
            path: String::new(),
            values: Vec::new(),
            call,
            begun,
            timeout: request.timeout().copied().unwrap_or(Duration::MAX),
            copy: None,
            waited: Duration::ZERO,
            attempts: 0,
            hops: 0,
            done: false,
            paid: None,
            flights: Vec::new(),
            used: None,
            current: false,
            ahead: None,
        }
    }

    /// What the provider wants to know of a request before it is sent.
    pub fn declare(&mut self, lane: &Lane, request: &Request) -> Result<()> {
        lane.check(&self.call.terms).map_err(failed)?;
        let meter = &lane.upstream.meter;
        if meter.guesses() {
            meter.estimate(&mut self.price, request);
        }
        let scopes = lane.gates.scopes();
        if scopes.is_plain() {
            return Ok(());
        }
        self.head_for(request.method().clone(), request.url());
        for key in scopes.keys().filter(|key| self.call.terms.key(key).is_none()) {
            if let Some(value) = meter.value(key, request) {
                self.values.push((key.into(), value));
            }
        }
        Ok(())
    }

    pub fn head_for(&mut self, method: Method, url: &Url) {
        self.method = method;
        self.path.clear();
        self.path.push_str(url.path());
    }

    /// What such a price takes where the request goes now.
    fn fare_of(&self, lane: &Lane, price: &Price) -> Fare {
        let target = Target::Http { method: self.method.as_str(), path: &self.path };
        let told =
            |key: &str| self.values.iter().find(|(named, _)| **named == *key).map(|(_, value)| &**value);
        let value = |key: &str| self.call.terms.key(key).or_else(|| told(key));
        lane.fare(price, target, value)
    }

    /// Whether the request may be sent once more than it was so far.
    pub fn may_go_again(&self, lane: &Lane) -> bool {
        let rejects = self.call.terms.wait == Wait::Reject;
        let once = self.call.never_again || rejects || lane.mode != Mode::Enforce;
        !once && self.attempts < lane.upstream.attempts
    }

    /// Whether this refusal allows it: 429 means that the request was not processed, unless a redirect on the way
    /// said that it was.
    pub fn may_resend(&self, response: &Response, request: &Request) -> bool {
        let unprocessed = response.status() == StatusCode::TOO_MANY_REQUESTS && !self.done;
        unprocessed || request.method().is_idempotent()
    }

    /// A call that was served by this gate before goes before all who came after that.
    fn ask(&self, lane: &Lane, fare: &Fare) -> Ask {
        let (terms, longest) = (&self.call.terms, lane.longest_wait.min(self.timeout));
        let patience = terms.patience(lane.clock(), self.begun.0, longest);
        let place = self.used.as_ref().filter(|used| used.is_of(&fare.gate)).and_then(Permit::place);
        Ask { costs: fare.costs.clone(), priority: terms.priority, patience, place }
    }

    /// What the request costs, with the hops that its provider books ahead.
    fn fare(&self, lane: &Lane) -> Fare {
        let fare = self.fare_of(lane, &self.price);
        match lane.hops_ahead() {
            0 => fare,
            ahead => Fare { costs: fare.costs.plus(&hops(ahead).costs(fare.gate.quota.limits())), ..fare },
        }
    }

    /// A permit that needs no waiting at all, if there is one.
    pub fn pay_now(&mut self, lane: &Arc<Lane>) -> bool {
        let permit = lane.permit_now(&self.fare(lane), self.call.terms.priority);
        permit.map(|permit| self.set_out(lane, permit)).is_some()
    }

    pub async fn pay(&mut self, lane: &Arc<Lane>) -> Result<()> {
        self.return_ahead();
        let fare = self.fare(lane);
        let ask = self.ask(lane, &fare);
        let permit = lane.permit(fare, ask).await.map_err(failed)?;
        self.set_out(lane, permit);
        Ok(())
    }

    fn set_out(&mut self, lane: &Lane, mut permit: Permit) {
        if lane.hops_ahead() > 0 {
            let ahead = hops(lane.hops_ahead()).costs(permit.gate().quota.limits());
            self.ahead = Some(Box::new(permit.split(ahead)));
        }
        self.attempts += 1;
        self.use_up(permit);
    }

    /// An attempt has been refused: what it cost stays as it was booked, but it is not in flight any more.
    pub fn land(&mut self) {
        self.free_places();
        self.paid = None;
    }

    fn free_places(&mut self) {
        self.flights.clear();
        for permit in self.paid.iter_mut().chain(&mut self.used) {
            drop(permit.take_flight());
        }
    }

    /// From what was booked ahead, else like any other request.
    async fn pay_hop(&mut self, lane: &Arc<Lane>) -> Result<()> {
        // The place that the call has among the calls in flight is its place also on the way.
        let stays = self.current && self.used.as_ref().is_some_and(|used| Arc::ptr_eq(used.lane(), lane));
        let price = if stays { hops(1) } else { Price::default() };
        if !stays {
            // Whoever had one and waited for another could wait for somebody who does the same the other way round.
            self.free_places();
        }
        let fare = self.fare_of(lane, &price);
        let ask = self.ask(lane, &fare);
        let booked = self.ahead.as_mut().filter(|ahead| ahead.is_of(&fare.gate) && ahead.holds(&fare.costs));
        let permit = match booked.map(|ahead| ahead.split(fare.costs.clone())) {
            // It is paid: also who would not wait, or has no time left, waits for the store to exchange it.
            Some(booked) => {
                let soon = lane.clock().mono().saturating_add(micros(EXCHANGE));
                let patience = Patience::Until(ask.patience.bound(soon).max(soon));
                booked.renew(Ask { patience, ..ask }).await
            }
            None => lane.permit(fare, ask).await,
        };
        let permit = permit.map_err(failed)?;
        match self.used.take() {
            Some(used) if self.paid.is_none() => self.paid = Some(used),
            Some(mut used) => self.flights.push(used.take_flight()),
            None => {}
        }
        self.use_up(permit);
        self.hops += 1;
        lane.count_hop();
        Ok(())
    }

    fn use_up(&mut self, permit: Permit) {
        self.waited += permit.waited();
        self.used = Some(permit);
        self.current = true;
    }

    /// Sees a request that is paid for through to its answer. Whether that refuses it.
    pub async fn send(
        &mut self,
        tollgate: &Tollgate,
        at: Spot,
        mut lane: Option<Arc<Lane>>,
        mut run: Run<'_>,
    ) -> Result<(Response, bool)> {
        let mut sent = tollgate.clock().mono();
        self.done = false;
        loop {
            match step(at, &mut run).await {
                Step::Done { result: Ok(response), .. } => {
                    let refused = match &lane {
                        Some(lane) => {
                            let gate = self.used.as_ref().map(Permit::gate);
                            lane.hear(sent, &response, gate).await
                        }
                        None => false,
                    };
                    return Ok((response, refused));
                }
                Step::Done { result: Err(error), unsent } => {
                    if self.current && (unsent || error.is_connect()) {
                        self.used.take().into_iter().for_each(Permit::give_back);
                    }
                    return Err(error);
                }
                Step::Hop(hop) => {
                    self.done |= hop.is_done();
                    self.head_for(hop.method(&self.method), &hop.to);
                    lane = self.lane_of(tollgate, &hop, lane);
                    match &lane {
                        Some(lane) => Box::pin(self.pay_hop(lane)).await?,
                        None => {
                            self.current = false;
                            self.free_places();
                        }
                    }
                    sent = tollgate.clock().mono();
                }
            }
        }
    }

    /// Where a hop goes: as its URL says, but within its host and port a call by name stays where it is, and so
    /// does one that no provider wants.
    fn lane_of(&self, tollgate: &Tollgate, hop: &Hop, last: Option<Arc<Lane>>) -> Option<Arc<Lane>> {
        let last = last.filter(|_| hop.stays);
        match (&self.call.provider, last) {
            (Some(name), Some(last)) if **name == **last.provider() => Some(last),
            (_, last) => tollgate.lane_at(&hop.to).or(last),
        }
    }

    fn return_ahead(&mut self) {
        self.ahead.take().into_iter().filter(|ahead| !ahead.is_empty()).for_each(|ahead| ahead.give_back());
    }

    /// Tells the caller what it took, and settles what it cost when that is known.
    pub fn settle(&mut self, mut response: Response) -> Response {
        let Some(mut last) = self.used.take() else { return response };
        let toll = Toll::new(self.waited, self.attempts, self.hops, &last);
        self.flights.push(last.take_flight());
        let mut permit = self.paid.take().unwrap_or(last);
        self.flights.push(permit.take_flight());
        self.flights.retain(Flight::is_some);
        let flights = std::mem::take(&mut self.flights);
        let lane = permit.lane().clone();
        let open = toll.hold(permit);
        response.extensions_mut().insert(toll);
        lane.upstream.meter.watch(response, flights, move || open.take())
    }
}

impl Drop for Trip {
    fn drop(&mut self) {
        self.return_ahead();
    }
}

pub fn failed(error: Error) -> reqwest_middleware::Error {
    reqwest_middleware::Error::middleware(error)
}
