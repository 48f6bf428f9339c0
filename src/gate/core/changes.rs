//! Limits that change while calls wait.

use super::{Core, Mail, Verdict};
use crate::ledger::{Micros, Rule};

impl<W> Core<W> {
    /// Other limits are in force, under the same names and in the same order. What was granted under those before goes
    /// back, and its callers ask anew: a slot far ahead may be one too many. What was handed out already flies.
    pub fn relimit(&mut self, rules: Vec<Rule>, guard: Micros) {
        self.flights.relimit(&rules);
        self.link.set_guard(guard);
        self.settings.guard = guard;
        self.settings.rules = rules;
        self.changes = self.changes.wrapping_add(1);
        self.nothing = None;
        self.give_up_all();
    }

    /// The store has done nothing of what was asked, because other limits are in force: it is asked anew.
    pub fn undecided(&mut self) {
        let Some(sent) = self.sent.take() else { return };
        for permit in &mut self.held {
            permit.stage = super::Stage::Late;
        }
        self.give_up_all();
        if let Some(generation) = sent.call.generation {
            self.returns.extend(sent.call.returns.into_iter().map(|permit| (generation, permit)));
            self.settles.extend(sent.call.settles.into_iter().map(|change| (generation, change)));
        }
        // Also what it told of places, and that this gate is there.
        self.hello = true;
    }

    /// Who waits for more than there is at once any more.
    pub(super) fn refuse_the_impossible(&mut self, mail: &mut Mail<W>) {
        if self.changes == 0 {
            return;
        }
        let rules = &self.settings.rules;
        let excess = |costs: &crate::ledger::Costs| {
            rules.iter().zip(costs.iter()).position(|(rule, cost)| cost > rule.max())
        };
        let refused: Vec<_> =
            self.queue.iter().filter_map(|(ticket, waiter)| Some((ticket, excess(&waiter.costs)?))).collect();
        for (ticket, limit) in refused {
            if let Some(waiter) = self.queue.remove(ticket) {
                mail.push((waiter.handle, Verdict::Never { limit }));
            }
        }
    }
}
