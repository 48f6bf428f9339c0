//! What one call may spend, and what it has spent.

use std::{sync::Arc, time::Duration};

use reqwest::{Request, Response, StatusCode};
use reqwest_middleware::Result;
use tokio::time::Instant;

use super::{
    Call, Toll,
    hops::{Hop, Run, Spot, Step, step},
};
use crate::{
    clock::micros,
    error::Error,
    gate::{Ask, Patience},
    lane::{Lane, Mode},
    limiter::Permit,
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
    begun: Begun,
    timeout: Duration,
    /// To be sent if the first is refused.
    pub copy: Option<Request>,
    waited: Duration,
    attempts: u32,
    hops: u32,
    /// In this attempt a redirect said that the request was done.
    done: bool,
    /// The last one.
    used: Option<Permit>,
    /// It is for what is on its way, and not for what came before a hop to a host of nobody.
    current: bool,
    /// Booked for hops. What is left goes back, however the call ends.
    ahead: Option<Box<Permit>>,
}

impl Trip {
    pub fn new(begun: Begun, call: Call, request: &Request) -> Self {
        Self {
            call,
            begun,
            timeout: request.timeout().copied().unwrap_or(Duration::MAX),
            copy: None,
            waited: Duration::ZERO,
            attempts: 0,
            hops: 0,
            done: false,
            used: None,
            current: false,
            ahead: None,
        }
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
    fn ask(&self, lane: &Arc<Lane>, cost: i64) -> Ask {
        let (terms, longest) = (&self.call.terms, lane.longest_wait.min(self.timeout));
        let patience = terms.patience(&lane.gate.clock, self.begun.0, longest);
        let place = self.used.as_ref().filter(|used| used.is_of(lane)).and_then(Permit::place);
        Ask { cost, priority: terms.priority, patience, place }
    }

    /// What the request costs, with the hops that its provider books ahead.
    fn price(&self, lane: &Lane) -> Result<i64> {
        let cost = lane.cost(self.call.terms.cost).map_err(failed)?;
        Ok(cost.saturating_add(lane.hops_ahead()))
    }

    /// A permit that needs no waiting at all, if there is one.
    pub fn pay_now(&mut self, lane: &Arc<Lane>) -> Result<bool> {
        let permit = lane.permit_now(self.price(lane)?, self.call.terms.priority);
        Ok(permit.map(|permit| self.set_out(lane, permit)).is_some())
    }

    pub async fn pay(&mut self, lane: &Arc<Lane>) -> Result<()> {
        self.return_ahead();
        let ask = self.ask(lane, self.price(lane)?);
        let permit = lane.permit(ask).await.map_err(failed)?;
        self.set_out(lane, permit);
        Ok(())
    }

    fn set_out(&mut self, lane: &Lane, mut permit: Permit) {
        if lane.hops_ahead() > 0 {
            self.ahead = Some(Box::new(permit.split(lane.hops_ahead())));
        }
        self.attempts += 1;
        self.use_up(permit);
    }

    /// From what was booked ahead, else like any other request.
    async fn pay_hop(&mut self, lane: &Arc<Lane>) -> Result<()> {
        let ask = self.ask(lane, 1);
        let booked = self.ahead.as_mut().filter(|ahead| ahead.is_of(lane) && ahead.cost() > 0);
        let permit = match booked.map(|ahead| ahead.split(1)) {
            // It is paid: also who would not wait, or has no time left, waits for the store to exchange it.
            Some(booked) => {
                let soon = lane.gate.clock.mono().saturating_add(micros(EXCHANGE));
                let patience = Patience::Until(ask.patience.bound(soon).max(soon));
                booked.renew(Ask { patience, ..ask }).await
            }
            None => lane.permit(ask).await,
        };
        self.use_up(permit.map_err(failed)?);
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
                        Some(lane) => lane.hear(sent, &response).await,
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
                    self.done |= hop.done;
                    lane = self.lane_of(tollgate, &hop, lane);
                    match &lane {
                        Some(lane) => Box::pin(self.pay_hop(lane)).await?,
                        None => self.current = false,
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
            (Some(name), Some(last)) if **name == *last.quota().provider => Some(last),
            (_, last) => tollgate.lane_at(&hop.to).or(last),
        }
    }

    fn return_ahead(&mut self) {
        self.ahead.take().into_iter().filter(|ahead| ahead.cost() > 0).for_each(|ahead| ahead.give_back());
    }

    /// Tells the caller what it took.
    pub fn settle(&mut self, mut response: Response) -> Response {
        if let Some(permit) = self.used.take() {
            let toll = Toll::new(self.waited, self.attempts, self.hops, &permit);
            response.extensions_mut().insert(toll);
        }
        response
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
