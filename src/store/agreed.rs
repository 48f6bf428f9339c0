//! A limit as this process has it configured, and as it is in force.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering::SeqCst},
};

use crate::{
    ledger::{Accord, Change, Claim},
    limit::{Limit, LimitError},
    scope::Scope,
};

/// All gates of a provider share it, whatever values the keys of their scopes have.
#[derive(Debug)]
pub struct Agreed {
    provider: Arc<str>,
    /// What all replicas call the limit.
    name: String,
    scope: Scope,
    configured: Limit,
    /// The same as text, which each call carries.
    text: String,
    heard: Mutex<Heard>,
    /// So often something new was learned.
    version: AtomicU64,
}

#[derive(Clone, Debug)]
struct Heard {
    accord: Accord,
    in_force: Limit,
    /// The last change that was heard of: a store that has lost it is told again.
    change: Option<Change>,
}

impl Agreed {
    pub fn new(provider: Arc<str>, name: String, scope: Scope, configured: Limit) -> Self {
        let text = configured.to_string();
        let accord = Accord::read(&Claim::new("", &*text).agreed);
        let heard = Mutex::new(Heard { accord, in_force: configured.clone(), change: None });
        Self { provider, name, scope, configured, text, heard, version: AtomicU64::new(0) }
    }

    pub fn provider(&self) -> &Arc<str> {
        &self.provider
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub fn configured(&self) -> &Limit {
        &self.configured
    }

    pub fn in_force(&self) -> Limit {
        self.heard().in_force.clone()
    }

    pub fn version(&self) -> u64 {
        self.version.load(SeqCst)
    }

    /// What this replica says of it, and the limit that follows from the accord it goes by.
    pub fn claim(&self) -> (Claim, Limit) {
        let heard = self.heard();
        let agreed = heard.accord.text().to_owned();
        let claim = Claim { name: self.name.clone(), text: self.text.clone(), agreed };
        (claim, heard.in_force.clone())
    }

    /// Whether the other one counts the same in the same window, however much it admits.
    pub fn is_like(&self, limit: &Limit) -> bool {
        self.configured.name() == limit.name()
    }

    /// A limit that can be counted where this one is.
    ///
    /// # Errors
    /// It cannot.
    pub fn fit(&self, limit: Limit) -> Result<Limit, LimitError> {
        limit.counted_as(&self.configured)
    }

    /// The accord as the store has it. Tells of a change that it has lost, and that this replica goes by.
    #[must_use]
    pub fn learn(&self, text: &str) -> Option<Change> {
        let accord = Accord::read(text);
        let mut heard = self.heard();
        let stands = |change: &Change| change.of.contains(&self.text);
        let last = accord.change().map_or(0, |change| change.number);
        let lost = heard.change.take().filter(|known| {
            let told = last == known.number && accord.change().is_some_and(stands);
            stands(known) && known.number >= last && !told
        });
        let change = lost.as_ref().or(accord.change()).cloned();
        let in_force = self.strictest(&accord, change.as_ref());
        if in_force != heard.in_force || !accord.claims().eq(heard.accord.claims()) {
            self.tell(&in_force, &accord, change.as_ref());
        }
        // What another gate has learned already changes nothing once more: each change has all gates give back what they
        // hold, and there may be as many as credentials.
        if in_force != heard.in_force || accord != heard.accord {
            self.version.fetch_add(1, SeqCst);
        }
        *heard = Heard { accord, in_force, change };
        lost
    }

    /// What none of those who are heard exceeds. A text that nobody understands is of a version to come.
    fn strictest(&self, accord: &Accord, change: Option<&Change>) -> Limit {
        let read = |text: &str| {
            let limit = text.parse::<Limit>().and_then(|limit| self.fit(limit));
            if limit.is_err() {
                tracing::warn!(
                    provider = &*self.provider,
                    limit = text,
                    "another replica has a limit that this one cannot read: it is left out"
                );
            }
            limit.ok()
        };
        let set = change.and_then(|change| Some((read(&change.text)?, &change.of)));
        let claims = accord.claims().chain([&*self.text]);
        let said = claims.filter_map(|claim| match &set {
            Some((limit, of)) if of.iter().any(|of| of == claim) => Some(limit.clone()),
            _ if claim == self.text => Some(self.configured.clone()),
            _ => read(claim),
        });
        said.reduce(|strict, limit| strict.stricter(&limit)).unwrap_or_else(|| self.configured.clone())
    }

    fn tell(&self, in_force: &Limit, accord: &Accord, change: Option<&Change>) {
        let provider = &*self.provider;
        let configured = self.scope.shown_with(&self.configured);
        let in_force = in_force.to_string();
        match change {
            Some(change) if change.of.contains(&self.text) => {
                tracing::warn!(provider, configured, in_force, "a limit was set at run time");
            }
            _ if accord.claims().any(|claim| claim != self.text) => {
                let others: Vec<_> = accord.claims().filter(|claim| *claim != self.text).collect();
                let others = others.join(", ");
                tracing::warn!(
                    provider,
                    configured,
                    others,
                    in_force,
                    "replicas have different limits: the smaller ones are in force until they agree"
                );
            }
            _ => tracing::info!(provider, in_force, "all replicas have the same limit again"),
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
