//! Usage in percent, as JSON in a header: `{"call_count":28,"total_time":25,"total_cputime":25}`, also inside of lists
//! by account.

use std::time::Duration;

use serde_json::Value;

use super::drafts::{Drafts, seconds};

/// What counts of it. The last is the use of an advertising account.
const SHARES: [&str; 4] = ["call_count", "total_time", "total_cputime", "acc_id_util_pct"];
/// Minutes until calls pass again; 0 while they do.
const REGAIN: &str = "estimated_time_to_regain_access";

/// A percentage is a window with a limit of 100. Who is shut out is told for how long.
pub fn usage<'a>(drafts: &mut Drafts<'a>, row: usize, group: &'a str, text: &str) -> Option<Duration> {
    let value = serde_json::from_str::<Value>(text).ok()?;
    let mut walk = Walk { drafts, row, group, account: 0, longest: None };
    walk.through(&value);
    walk.longest
}

struct Walk<'d, 'a> {
    drafts: &'d mut Drafts<'a>,
    row: usize,
    group: &'a str,
    account: usize,
    longest: Option<Duration>,
}

impl Walk<'_, '_> {
    /// JSON is not nested deeper than its parser allows.
    fn through(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.through(value)),
            Value::Object(members) => {
                let regain = members.get(REGAIN).and_then(Value::as_f64).filter(|minutes| *minutes > 0.0);
                let regain = regain.and_then(|minutes| seconds(minutes * 60.0));
                self.longest = self.longest.max(regain);
                for name in SHARES {
                    let Some(used) = members.get(name).and_then(Value::as_f64) else { continue };
                    let Some(draft) = self.drafts.at(self.group, name, self.account) else { return };
                    (draft.limit, draft.used) = (Some(100.0), Some(used.max(0.0)));
                    regain.into_iter().for_each(|reset| draft.reset(self.row, reset));
                }
                self.account += 1;
                members.values().for_each(|value| self.through(value));
            }
            _ => {}
        }
    }
}
