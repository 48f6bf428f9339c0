//! A run in one line.

use crate::{
    args::Args,
    chance::Cost,
    mix::{Mix, NAMES},
    trip::Trip,
};

impl Args {
    pub fn title(&self) -> String {
        let mut title = format!("{} replicas, ", self.replicas);
        if self.mixes.is_empty() {
            title += &format!("{} tasks each, ", self.tasks);
        }
        title += &format!("{} s, limit {}", self.seconds, self.limit_texts());
        for Mix { replica, tasks } in &self.mixes {
            title += &replica.map_or(", tasks of each".into(), |replica| format!(", tasks of {replica}"));
            let named = NAMES.iter().zip(tasks).filter(|(_, count)| **count > 0);
            named.for_each(|(name, count)| title += &format!(" {count} {name}"));
        }
        if !self.think.is_zero() {
            title += &format!(", high ones think {:?}", self.think);
        }
        for Cost { unit, least, most } in &self.costs {
            title += &format!(", {unit} {least}..{most}");
        }
        if self.settles() {
            title += &format!(", estimates off by up to {}", self.estimate_off);
        }
        if let Some(places) = self.in_flight {
            title += &format!(", {places} in flight");
        }
        if !self.call_time.is_zero() {
            title += &format!(", a call takes {:?}", self.call_time);
        }
        if let Some(Trip { lasts, after }) = self.trip {
            title += &format!(", trip {lasts:?}@{after:?}");
        }
        if let Some(every) = self.redirect_every {
            title += &format!(", one in {every} redirected, {} followed", self.redirects);
        }
        if self.no_bell {
            title += ", no bell";
        }
        title
    }
}
