//! Bells: told that something has changed. They carry nothing that must arrive.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// What a gate has heard so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rung {
    /// So often a pause has moved.
    pub pauses: u64,
    /// So often it was called up: it has a place in flight coming.
    pub turns: u64,
}

pub type Bell = watch::Receiver<Rung>;

/// The bells that somebody listens to, under their names. There are as many as providers.
#[derive(Debug, Default)]
pub(super) struct Bells {
    hung: Mutex<HashMap<String, Listeners>>,
    /// In the order in which they were first asked for.
    names: watch::Sender<Vec<String>>,
}

/// Gates by their member ids.
#[derive(Debug, Default)]
struct Listeners {
    gates: HashMap<u64, watch::Sender<Rung>>,
    /// With as many those that have gone are dropped.
    crowded: usize,
}

impl Bells {
    pub(super) fn listen(&self, name: &str, member: u64) -> Bell {
        let mut hung = self.hung();
        let listeners = match hung.get_mut(name) {
            Some(listeners) => listeners,
            None => {
                self.names.send_modify(|names| names.push(name.to_owned()));
                hung.entry(name.to_owned()).or_default()
            }
        };
        if listeners.gates.len() >= listeners.crowded {
            listeners.gates.retain(|_, gate| !gate.is_closed());
            listeners.crowded = 64.max(2 * listeners.gates.len());
        }
        let (gate, bell) = watch::channel(Rung::default());
        listeners.gates.insert(member, gate);
        bell
    }

    /// For all. One that nobody has asked for rings unheard.
    pub(super) fn ring(&self, name: &str) {
        if let Some(listeners) = self.hung().get(name) {
            for gate in listeners.gates.values() {
                gate.send_modify(|rung| rung.pauses = rung.pauses.wrapping_add(1));
            }
        }
    }

    /// For one gate.
    pub(super) fn call_up(&self, name: &str, member: u64) {
        if let Some(gate) = self.hung().get(name).and_then(|listeners| listeners.gates.get(&member)) {
            gate.send_modify(|rung| rung.turns = rung.turns.wrapping_add(1));
        }
    }

    /// A message from elsewhere. What makes no sense rings for all: that costs a call at most.
    #[cfg(feature = "redis")]
    pub(super) fn heard(&self, name: &str, message: &[u8]) {
        let text = std::str::from_utf8(message).unwrap_or_default();
        match text.strip_prefix("next ") {
            Some(members) => {
                let members = members.split(' ').filter_map(|id| u64::from_str_radix(id, 16).ok());
                members.for_each(|member| self.call_up(name, member));
            }
            None => self.ring(name),
        }
    }

    /// The names, which only get more.
    #[cfg(feature = "redis")]
    pub(super) fn names(&self) -> watch::Receiver<Vec<String>> {
        self.names.subscribe()
    }

    /// Those but for the first `known`.
    #[cfg(feature = "redis")]
    pub(super) fn names_after(&self, known: usize) -> Vec<String> {
        self.names.borrow().iter().skip(known).cloned().collect()
    }

    fn hung(&self) -> MutexGuard<'_, HashMap<String, Listeners>> {
        self.hung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
