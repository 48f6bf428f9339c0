//! What follows from all that an answer says: whether it refuses, and for how long.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::{
    LONGEST, Refusal, Signal, Window,
    base::{Base, text},
    body::{Body, Refill},
    dialect::{Answer, HeaderSays, Rules, Verdict},
    read::emptied,
};

/// An answer, read but not judged.
pub struct Facts<'a> {
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    pub body: Body<'a>,
    /// The wait that its headers name, and the one in its body, which means something only in a refusal.
    pub hint: Option<Duration>,
    pub told: Option<Duration>,
    pub refill: Refill,
    /// How long one call takes at the rate that is granted.
    pub pace: Option<Duration>,
    pub windows: Vec<Window>,
}

impl Facts<'_> {
    pub fn decide(mut self, rules: &Rules, base: &Base<'_>) -> Signal {
        let mut answers = rules.answers.iter().filter(|_| rules.judges(self.status, !self.body.is_empty()));
        let answer = answers.find(|answer| self.fits(answer));
        let refusal = match answer.map(|answer| answer.means).unwrap_or_default() {
            Verdict::Other => None,
            Verdict::Rate if self.refill == Refill::Never => Some(Refusal::Quota),
            Verdict::Rate => Some(Refusal::Rate),
            Verdict::Quota => Some(Refusal::Quota),
        };
        if answer.is_some_and(|answer| answer.ban) {
            self.windows.clear();
        }
        let closed = answer.and_then(|answer| emptied(answer.window.as_deref()?, rules, base));
        let reset = closed.as_ref().and_then(|window| window.reset);
        self.windows.extend(closed);
        let told = self.told.filter(|_| refusal.is_some());
        // Whose day is over need not try in half a minute, whatever else is said.
        let wait = self.hint.or(told).max(reset).or_else(|| self.wait(refusal.is_some(), rules));
        Signal { refusal, wait, windows: self.windows }
    }

    fn fits(&self, answer: &Answer) -> bool {
        answer.status.contains(&self.status.as_u16())
            && (!answer.hinted || self.hint.or(self.told).is_some_and(|hint| hint <= LONGEST))
            && (!answer.empty || self.empty().next().is_some())
            && answer.header.as_ref().is_none_or(|says| self.header(says))
            && answer.body.as_ref().is_none_or(|says| self.body.says(says))
    }

    fn header(&self, says: &HeaderSays) -> bool {
        let any = says.is.is_empty() && says.contains.is_empty();
        self.headers.get_all(&*says.name).iter().filter_map(text).any(|text| {
            any || says.is.iter().any(|is| text.eq_ignore_ascii_case(is))
                || says.contains.iter().any(|part| text.contains(&**part))
        })
    }

    fn empty(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(|window| window.remaining == Some(0.0))
    }

    /// The wait of an answer that names none.
    fn wait(&self, refused: bool, rules: &Rules) -> Option<Duration> {
        // The latest of those that are empty; the others have room.
        let empty = self.empty().filter_map(|window| window.wait).max();
        if !refused {
            return empty;
        }
        if let Refill::After(wait) = self.refill {
            return Some(wait);
        }
        let untold = || {
            let untold = self.windows.iter().filter(|window| window.remaining.is_none());
            untold.filter_map(|window| window.reset).max()
        };
        empty.or_else(untold).or(self.pace).or(rules.floor)
    }
}
