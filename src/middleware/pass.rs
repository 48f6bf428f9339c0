//! One call: a permit, the request, its hops, the answer, and perhaps once more.

use std::sync::Arc;

use http::Extensions;
use reqwest::{Request, Response, Url};
use reqwest_middleware::{Next, Result};

use super::{
    Call,
    hops::Spot,
    trip::{Begun, Trip, failed},
};
use crate::{error::Error, lane::Lane, tollgate::Tollgate};

impl Tollgate {
    pub(super) async fn pass(
        &self,
        request: Box<Request>,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let at = Spot::new(self, extensions);
        // Not before it is polled: a layer outside makes the future of this one outside of its own.
        if at.is_inside() {
            return next.run(*request, extensions).await;
        }
        // Before anything can fail or be dropped.
        let begun = *extensions.get_or_insert_with(|| Begun(self.clock().instant_now()));
        let mut trip = Box::new(Trip::new(begun, extensions.get().cloned().unwrap_or_default(), &request));
        let lane = self.lane_of(&trip.call, request.url())?;
        if let Some(lane) = &lane {
            trip.declare(lane, &request)?;
            if !trip.pay_now(lane) {
                // Boxed, as all that is seldom needed: it must not make every call's future larger.
                Box::pin(trip.pay(lane)).await?;
            }
            if trip.may_go_again(lane) {
                trip.copy = request.try_clone();
            }
        }
        let run = next.clone().run(*request, extensions);
        let (mut response, refused) = trip.send(self, at, lane, run).await?;
        if let Some(copy) = trip.copy.take()
            && refused
            && trip.may_resend(&response, &copy)
        {
            response = Box::pin(self.resend(&mut trip, copy, response, extensions, next)).await?;
        }
        if response.status().is_success() {
            // Whoever uses these extensions again means something else.
            extensions.remove::<Begun>();
        }
        Ok(trip.settle(response))
    }

    /// Sends a refused request again, after the pause that its refusal has begun, until it is accepted, has
    /// been sent often enough, or no permit can be had in time: then the last refusal is the answer.
    async fn resend(
        &self,
        trip: &mut Trip,
        request: Request,
        mut response: Response,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let at = Spot::new(self, extensions);
        let Some(lane) = self.lane_of(&trip.call, request.url())? else { return Ok(response) };
        while trip.may_go_again(&lane) {
            trip.land();
            // Hops have led elsewhere.
            trip.head_for(request.method().clone(), request.url());
            if trip.pay(&lane).await.is_err() {
                break;
            }
            let Some(copy) = request.try_clone() else { break };
            let run = next.clone().run(copy, extensions);
            let (answer, refused) = trip.send(self, at, Some(lane.clone()), run).await?;
            response = answer;
            if !refused || !trip.may_resend(&response, &request) {
                break;
            }
        }
        Ok(response)
    }

    /// Where a request goes: as the call says, else as its URL says.
    fn lane_of(&self, call: &Call, url: &Url) -> Result<Option<Arc<Lane>>> {
        match &call.provider {
            Some(name) => self.lane(name).map(Some).ok_or_else(|| failed(Error::unknown(name))),
            None => Ok(self.lane_at(url)),
        }
    }
}
