//! A gate without tokio and its store, on one clock that the test sets.
#![allow(dead_code)]

use tollgate::{
    clock::Moment,
    gate::{Ask, Common, Core, Mail, Next, Patience, Permit, Settings, Ticket, Verdict},
    ledger::{Answer, Call, Costs, Ledger, Micros, Named, Reply, Rule, SECOND},
};

pub const MILLI: Micros = 1_000;
pub const EPOCH: Micros = 1_700_000_000 * SECOND;

pub struct Lab {
    /// Callers are known by a name.
    pub core: Core<&'static str>,
    pub ledger: Ledger,
    limits: Vec<Named>,
    mail: Mail<&'static str>,
}

/// A moment of both clocks.
pub fn at(mono: Micros) -> Moment {
    Moment { mono, wall: EPOCH + mono }
}

impl Lab {
    /// One that has said hello already.
    pub fn new(rule: Rule, guard: Micros) -> Self {
        let settings = Settings {
            member: 1,
            rules: vec![rule.clone()],
            guard,
            queue: 100,
            ageing: 60_000_000,
            parts: std::sync::Arc::default(),
            common: Common::default(),
        };
        let limits = vec![Named::new("limit", rule)];
        let ledger = Ledger::new(EPOCH);
        let mut lab = Self { core: Core::new(settings), ledger, limits, mail: Mail::new() };
        lab.turn(0);
        lab
    }

    pub fn arrive(&mut self, now: Micros, name: &'static str, patience: Patience) -> Result<Ticket, Verdict> {
        self.core.arrive(now, Ask::new(Costs::same(1, 1), patience), name)
    }

    pub fn wait(&mut self, now: Micros, name: &'static str) -> Ticket {
        self.arrive(now, name, Patience::Until(now + 60 * SECOND)).expect("a place")
    }

    pub fn poll(&mut self, now: Micros) -> Next {
        self.core.poll(at(now), &mut self.mail)
    }

    pub fn decide(&mut self, now: Micros, call: &Call) -> Answer {
        match self.ledger.book(EPOCH + now, &self.limits, call) {
            Reply::Booked(answer) => answer,
            Reply::Undecided(_) => panic!("no calendars here"),
        }
    }

    /// Another limit is in force.
    pub fn change(&mut self, rule: Rule, guard: Micros) {
        self.limits = vec![Named::new("limit", rule.clone())];
        self.core.relimit(vec![rule], guard);
    }

    pub fn pause(&mut self, until: Micros) {
        self.ledger.pause(EPOCH + until);
    }

    pub fn answered(&mut self, now: Micros, answer: Answer) {
        self.core.answered(at(now), Ok(answer), &mut self.mail);
    }

    /// Polls and answers at once until there is nothing to ask; how many calls that took.
    pub fn turn(&mut self, now: Micros) -> usize {
        for calls in 0..20 {
            let Some(call) = self.poll(now).call else { return calls };
            let answer = self.decide(now, &call);
            self.answered(now, answer);
        }
        panic!("a storm of calls")
    }

    /// Everything that was said since this was last asked.
    pub fn told(&mut self) -> Mail<&'static str> {
        std::mem::take(&mut self.mail)
    }

    /// Who was told what since this was last asked.
    pub fn granted(&mut self) -> Vec<(&'static str, Permit)> {
        let told = std::mem::take(&mut self.mail);
        let granted = told.into_iter().map(|(name, verdict)| match verdict {
            Verdict::Granted(permit) => (name, permit),
            other => panic!("{name} was told {other:?}"),
        });
        granted.collect()
    }

    /// Names, and the waits after which they may try again; a pause must be the reason.
    pub fn paused(&mut self) -> Vec<(&'static str, Micros)> {
        let told = std::mem::take(&mut self.mail);
        let refused = told.into_iter().map(|(name, verdict)| match verdict {
            Verdict::Later { retry_after, limit: None } => (name, retry_after),
            other => panic!("{name} was told {other:?}"),
        });
        refused.collect()
    }
}
