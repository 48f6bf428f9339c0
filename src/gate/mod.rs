//! The queue of one replica in front of one provider.

mod ceiling;
pub mod core;
mod link;
mod permit;
mod place;
mod pump;
mod queue;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, oneshot};

use self::place::Place;
pub use self::{
    ceiling::Ceiling,
    core::{Core, Mail, Next, Settings, Verdict},
    permit::Permit,
    queue::{Patience, Ticket},
};
use crate::{
    clock::{Clock, duration, micros},
    ledger::Micros,
    store::{Quota, Store},
};

type Caller = oneshot::Sender<Verdict>;

/// A gate on tokio: the state machine of [`core`], a lock around it, and a task that drives it while there is
/// something to do.
pub struct Gate {
    pub quota: Quota,
    store: Arc<dyn Store>,
    pub clock: Clock,
    /// Never held across an await: hand-offs happen after it is released.
    state: Mutex<State>,
    ceiling: Option<Ceiling>,
    warn_after: Duration,
    warned: AtomicBool,
    /// Wakes the pump: somebody came, left or gave back.
    nudge: Notify,
    /// The pump is gone: its runtime ended, or it said goodbye.
    orphaned: Notify,
}

struct State {
    core: Core<Caller>,
    pumping: bool,
}

/// What a provider asks of its gate.
pub struct Plan {
    pub quota: Quota,
    pub queue: usize,
    pub ceiling: Option<Ceiling>,
    pub warn_after: Duration,
}

impl Gate {
    pub fn new(plan: Plan, store: Arc<dyn Store>, clock: Clock) -> Arc<Self> {
        let now = clock.steady();
        let settings = Settings {
            member: fastrand::u64(1..),
            rules: plan.quota.rules(now).into_iter().map(|named| named.rule).collect(),
            guard: plan.quota.limits.iter().map(|limit| micros(limit.guard())).min().unwrap_or(0),
            queue: plan.queue,
        };
        Arc::new(Self {
            quota: plan.quota,
            store,
            clock,
            state: Mutex::new(State { core: Core::new(settings), pumping: false }),
            ceiling: plan.ceiling,
            warn_after: plan.warn_after,
            warned: AtomicBool::new(false),
            nudge: Notify::new(),
            orphaned: Notify::new(),
        })
    }

    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Waits for a permit, at most until `deadline`; `None`: not at all.
    pub async fn acquire(self: &Arc<Self>, cost: i64, deadline: Option<Micros>) -> Result<Permit, Verdict> {
        let arrived = self.clock.now().mono;
        if let Some(ceiling) = &self.ceiling {
            ceiling.pass(cost, deadline).await?;
        }
        let patience = deadline.map_or(Patience::Reject, Patience::Until);
        let mut place = Place::take(self, cost, patience)?;
        loop {
            let mut permit = place.verdict().await?;
            let now = self.clock.now();
            if permit.is_fresh(now) {
                permit.waited = now.mono - arrived;
                self.warn_of_long_waits(permit.waited);
                return Ok(permit);
            }
            place.retake(cost, arrived, patience, permit);
        }
    }

    /// An unused permit goes to the next caller, or back to the store.
    pub fn give_back(self: &Arc<Self>, permit: Permit) {
        self.change(|core| core.give_back(permit));
    }

    /// Tells the store that this replica shares the quota, before its first request.
    pub fn hello(self: &Arc<Self>) {
        self.change(|_| ());
    }

    /// Gives booked permits back and says goodbye, without waiting for it.
    pub fn close(self: &Arc<Self>) {
        self.change(Core::close);
    }

    /// Waits until the goodbye is said or has failed.
    pub async fn closed(self: &Arc<Self>) {
        loop {
            let orphaned = self.orphaned.notified();
            tokio::pin!(orphaned);
            orphaned.as_mut().enable();
            if self.lock().core.is_closed() {
                return;
            }
            self.change(|_| ());
            orphaned.await;
        }
    }

    /// Permits that came to hand too late and were exchanged.
    pub fn late(&self) -> u64 {
        self.lock().core.late()
    }

    pub fn queued(&self) -> usize {
        self.lock().core.queued()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, then sees to it that somebody acts on it: the pump, or a new one on the runtime of
    /// whoever is here now.
    fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut Core<Caller>) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state.core);
        if state.pumping {
            drop(state);
            self.nudge.notify_one();
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            state.pumping = true;
            drop(state);
            runtime.spawn(pump::run(pump::Watch::new(self.clone())));
        }
        changed
    }

    /// Once per provider and time of trouble, not once per call.
    fn warn_of_long_waits(&self, waited: Micros) {
        let waited = duration(waited);
        if waited < self.warn_after / 2 {
            self.warned.store(false, Ordering::Relaxed);
        } else if waited >= self.warn_after && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                provider = &*self.quota.provider,
                waited_ms = waited.as_millis() as u64,
                queued = self.queued() as u64,
                "calls wait long for their permits: the quota is smaller than the demand"
            );
        }
    }
}
