//! The queue of one replica in front of one provider.

mod ceiling;
pub mod core;
mod link;
mod pause;
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
    queue::{Ask, Patience, Priority, Ticket, Waiter},
};
use crate::{
    clock::{Clock, duration, micros},
    ledger::{Micros, Named},
    store::{Bell, Quota, Store},
};

type Caller = oneshot::Sender<Verdict>;

/// A gate on tokio: the state machine of [`core`], a lock around it, and a task that drives it while there is
/// something to do.
pub struct Gate {
    pub quota: Quota,
    /// The limits as numbers, unless they depend on the date.
    fixed: Option<Vec<Named>>,
    store: Arc<dyn Store>,
    /// Rings when the store may have changed its mind.
    bell: Option<Bell>,
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
    /// How often the bell has rung, as far as the core knows.
    rung: u64,
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
        let fixed = plan.quota.limits.iter().all(|limit| limit.boundaries(now).is_empty());
        Arc::new(Self {
            fixed: fixed.then(|| plan.quota.rules(now)),
            bell: store.listen(&plan.quota),
            quota: plan.quota,
            store,
            clock,
            state: Mutex::new(State { core: Core::new(settings), pumping: false, rung: 0 }),
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

    /// Waits for a permit.
    pub async fn acquire(self: &Arc<Self>, ask: Ask) -> Result<Permit, Verdict> {
        // What is seldom needed is boxed: it must not make every call's future larger.
        let arrived = self.clock.mono();
        if let Some(ceiling) = &self.ceiling {
            Box::pin(ceiling.pass(ask.cost, ask.patience)).await?;
        }
        if let Some(mut permit) = self.take_now(ask.cost, ask.priority) {
            permit.waited = permit.due - arrived;
            return Ok(permit);
        }
        Box::pin(self.serve(Place::take(self, ask)?, ask, arrived)).await
    }

    /// A permit that needs no waiting at all, if there is one.
    pub fn acquire_now(&self, cost: i64, priority: Priority) -> Option<Permit> {
        if self.ceiling.is_some() { None } else { self.take_now(cost, priority) }
    }

    /// The usual call with a store in this process: nobody waits, and there is a permit.
    fn take_now(&self, cost: i64, priority: Priority) -> Option<Permit> {
        let store = self.store.local()?;
        let now = self.clock.now();
        let mut state = self.lock();
        if !state.core.is_quiet(now.mono) {
            return None;
        }
        let taken = store.take_now(&self.quota, self.fixed.as_deref(), cost)?;
        self.warn_of_long_waits(0);
        Some(state.core.at_once(now, cost, priority, &taken))
    }

    /// A permit that was kept past its slot is exchanged for one that may fly, if need be; it goes before all
    /// that came after its first request.
    pub async fn renew(self: &Arc<Self>, permit: Permit, ask: Ask) -> Result<Permit, Verdict> {
        let now = self.clock.now();
        if self.lock().core.may_fly(&permit, now) {
            return Ok(permit);
        }
        self.serve(Place::retake(self, ask, permit), ask, now.mono).await
    }

    async fn serve(&self, mut place: Place, ask: Ask, arrived: Micros) -> Result<Permit, Verdict> {
        loop {
            let mut permit = place.verdict().await?;
            let now = self.clock.now();
            if self.lock().core.may_fly(&permit, now) {
                permit.waited = now.mono - arrived;
                self.warn_of_long_waits(permit.waited);
                return Ok(permit);
            }
            place.came_late(now, ask, arrived, permit);
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

    /// Whatever is decided next must not rest on what the store said before the bell rang.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let rung = self.bell.as_ref().map_or(0, |bell| *bell.borrow());
        if rung != state.rung {
            state.rung = rung;
            state.core.doubt();
        }
        state
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
            let watch = pump::Watch::new(self.clone());
            if !self.store.local().is_some_and(|store| pump::settle(&watch, store)) {
                runtime.spawn(pump::run(watch));
            }
        }
        changed
    }

    /// Once per provider and time of trouble, not once per call.
    fn warn_of_long_waits(&self, waited: Micros) {
        let waited = duration(waited);
        if waited < self.warn_after / 2 {
            if self.warned.load(Ordering::Relaxed) {
                self.warned.store(false, Ordering::Relaxed);
            }
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
