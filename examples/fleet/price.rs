//! What requests cost: in which units, how much, and how that is told.

use serde::{Deserialize, Serialize};

/// The unit of a limit that names none.
pub const REQUESTS: &str = "requests";
/// A request and its answer tell of each unit what the request takes, in a header of this name and the unit's.
const HEADER: &str = "x-cost-";

/// What one request takes. Of requests one unless it says otherwise, of other units nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price(pub Vec<(String, u64)>);

impl Price {
    pub fn of(&self, unit: &str) -> u64 {
        let named = self.0.iter().find(|(named, _)| named == unit);
        named.map_or(u64::from(unit == REQUESTS), |(_, amount)| *amount)
    }
}

pub fn header(unit: &str) -> String {
    format!("{HEADER}{unit}")
}
