//! Bells: told that something has changed, not what. They carry nothing that must arrive.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// How often it has rung.
pub type Bell = watch::Receiver<u64>;

/// The bells that somebody listens to, under their names. There are as many as providers.
#[derive(Debug, Default)]
pub(super) struct Bells {
    hung: Mutex<HashMap<String, watch::Sender<u64>>>,
    /// In the order in which they were first asked for.
    names: watch::Sender<Vec<String>>,
}

impl Bells {
    pub(super) fn listen(&self, name: &str) -> Bell {
        let mut hung = self.hung();
        if let Some(bell) = hung.get(name) {
            return bell.subscribe();
        }
        let (bell, listener) = watch::channel(0);
        hung.insert(name.to_owned(), bell);
        self.names.send_modify(|names| names.push(name.to_owned()));
        listener
    }

    /// One that nobody has asked for rings unheard.
    pub(super) fn ring(&self, name: &str) {
        if let Some(bell) = self.hung().get(name) {
            bell.send_modify(|rung| *rung = rung.wrapping_add(1));
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

    fn hung(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<u64>>> {
        self.hung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
