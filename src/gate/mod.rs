//! The queue of one replica in front of one provider.

mod ceiling;
mod common;
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
    common::Common,
    core::{Core, Mail, Next, Settings, Verdict},
    permit::Permit,
    queue::{Ask, Patience, Priority, Ticket, Waiter},
};
use crate::{
    clock::{Clock, duration},
    ledger::{Costs, Micros, Named},
    store::{Bell, Quota, Rung, Store, is_in_flight},
};

type Caller = oneshot::Sender<Verdict>;

/// A gate on tokio: the state machine of [`core`], a lock around it, and a task that drives it while there is
/// something to do.
pub struct Gate {
    pub quota: Quota,
    /// Some of the limits count calls in flight: each call must be told to have landed.
    pub flies: bool,
    /// The limits do not depend on the date.
    dateless: bool,
    store: Arc<dyn Store>,
    /// Rings when the store may have changed its mind.
    bell: Option<Bell>,
    pub clock: Clock,
    /// Never held across an await: hand-offs happen after it is released.
    state: Mutex<State>,
    common: Common,
    warn_after: Duration,
    warned: AtomicBool,
    /// Wakes the pump: somebody came, left or gave back.
    nudge: Notify,
    /// The pump is gone: its runtime ended, or it said goodbye.
    orphaned: Notify,
}

struct State {
    core: Core<Caller>,
    /// The limits that it goes by.
    version: u64,
    /// They as numbers, unless they depend on the date.
    fixed: Option<Vec<Named>>,
    pumping: bool,
    /// What the bell has rung, as far as the core knows.
    rung: Rung,
}

/// What a provider asks of its gate.
pub struct Plan {
    pub quota: Quota,
    pub queue: usize,
    pub ageing: Micros,
    pub warn_after: Duration,
    pub common: Common,
}

impl Gate {
    pub fn new(plan: Plan, store: Arc<dyn Store>, clock: Clock) -> Arc<Self> {
        let now = clock.steady();
        // Before the limits are looked at: what changes meanwhile is noticed afterwards.
        let version = plan.quota.version();
        let limits = plan.quota.rules(now);
        let settings = Settings {
            member: fastrand::u64(1..),
            rules: limits.iter().map(|named| named.rule.clone()).collect(),
            guard: plan.quota.guard(),
            queue: plan.queue,
            ageing: plan.ageing,
            parts: plan.quota.parts.clone(),
            common: plan.common.clone(),
        };
        let flies = plan.quota.limits().any(is_in_flight);
        let dateless = plan.quota.limits().all(|limit| limit.boundaries(now).is_empty());
        let bell = store.listen(&plan.quota, settings.member);
        let state = State {
            core: Core::new(settings),
            version,
            fixed: dateless.then_some(limits),
            pumping: false,
            rung: Rung::default(),
        };
        Arc::new(Self {
            flies,
            dateless,
            bell,
            quota: plan.quota,
            store,
            clock,
            state: Mutex::new(state),
            common: plan.common,
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
        let arrived = self.clock.mono();
        if let Some(mut permit) = self.take_now(&ask.costs, ask.priority) {
            permit.waited = permit.due - arrived;
            return Ok(permit);
        }
        let place = Place::take(self, ask.clone())?;
        // What is seldom needed is boxed: it must not make every call's future larger.
        Box::pin(self.serve(place, ask, arrived)).await
    }

    /// A permit that needs no waiting at all, if there is one.
    ///
    /// The usual call with a store in this process: nobody waits, and there is one.
    pub fn take_now(&self, costs: &Costs, priority: Priority) -> Option<Permit> {
        let store = self.store.local()?;
        let now = self.clock.now();
        let mut state = self.lock();
        if !state.core.is_quiet(now.mono) {
            return None;
        }
        let taken = store.take_now(&self.quota, state.fixed.as_deref(), costs, priority.class())?;
        self.warn_of_long_waits(0);
        Some(state.core.at_once(now, costs.clone(), priority, &taken))
    }

    /// A permit that was kept past its slot is exchanged for one that may fly, if need be; it goes before all
    /// that came after its first request.
    pub async fn renew(self: &Arc<Self>, permit: Permit, ask: Ask) -> Result<Permit, Verdict> {
        let now = self.clock.now();
        if self.lock().core.may_fly(&permit, now) {
            return Ok(permit);
        }
        self.serve(Place::retake(self, &ask, permit), ask, now.mono).await
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
            place.came_late(now, &ask, arrived, permit);
        }
    }

    /// An unused permit goes to the next caller, or back to the store.
    pub fn give_back(self: &Arc<Self>, permit: Permit) {
        self.change(|core| core.give_back(permit));
    }

    /// A call has ended: its places in flight are free.
    pub fn landed(self: &Arc<Self>, places: &Costs) {
        self.change(|core| core.landed(places));
    }

    /// A permit flew, and cost so much more than was booked for it; less is negative.
    pub fn settle(self: &Arc<Self>, permit: &Permit, change: Costs) {
        self.change(|core| core.settle(permit, change));
    }

    /// Tells the store what there is to tell: at first that this replica shares the quota, before any request.
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

    /// Nobody waits here, nothing is held or under way: it may be forgotten, and made again.
    pub fn is_idle(&self) -> bool {
        let mut state = self.lock();
        state.core.forget_the_lost(self.clock.now());
        !state.pumping && state.core.is_idle()
    }

    /// Whatever is decided next must not rest on what the store said before the bell rang, nor on limits that are not
    /// in force any more.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.quota.version();
        if version != state.version {
            state.version = version;
            let limits = self.quota.rules(self.clock.steady());
            let rules = limits.iter().map(|named| named.rule.clone()).collect();
            state.core.relimit(rules, self.quota.guard());
            state.fixed = self.dateless.then_some(limits);
        }
        let rung = self.bell.as_ref().map_or(state.rung, |bell| *bell.borrow());
        if rung.pauses != state.rung.pauses {
            state.core.doubt();
        }
        if rung.turns != state.rung.turns {
            state.core.called_up();
        }
        state.rung = rung;
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
                queued = self.common.queued() as u64,
                "calls wait long for their permits: the quota is smaller than the demand"
            );
        }
    }
}
