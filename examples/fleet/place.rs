//! The place of a call in flight: free again when the last of its answer is on its way, or when its connection
//! is gone.

use std::{convert::Infallible, sync::Arc};

use axum::body::Body;
use futures_util::{StreamExt, future::ready, stream};

use crate::upstream::Desk;

pub struct Place(Arc<Desk>);

impl Place {
    pub fn new(desk: Arc<Desk>) -> Self {
        Self(desk)
    }

    /// A body that holds it.
    pub fn body(self, text: &'static str) -> Body {
        let text = stream::once(ready(Ok::<_, Infallible>(text)));
        Body::from_stream(text.map(move |text| {
            // The closure keeps it, and goes with the body.
            let _ = &self;
            text
        }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.leave();
    }
}
