//! What the replicas' requests are made to cost, by chance.

use crate::price::Price;

/// How much of a unit each request takes: any whole number from the one to the other.
#[derive(Clone, Debug)]
pub struct Cost {
    pub unit: String,
    pub least: u64,
    pub most: u64,
}

impl Cost {
    pub fn mean(&self) -> f64 {
        (self.least as f64 + self.most as f64) / 2.0
    }
}

/// What a request really takes, and what its replica believes beforehand.
#[derive(Clone, Default)]
pub struct Drawn {
    pub real: Price,
    pub booked: Price,
}

impl Drawn {
    /// The belief is off by a factor of up to `off`, either way alike.
    pub fn new(costs: &[Cost], off: f64) -> Self {
        let mut drawn = Self::default();
        for Cost { unit, least, most } in costs {
            let real = fastrand::u64(least..=most);
            let factor = off.powf(2.0 * fastrand::f64() - 1.0);
            let booked = (real as f64 * factor).round() as u64;
            drawn.real.0.push((unit.clone(), real));
            drawn.booked.0.push((unit.clone(), booked));
        }
        drawn
    }
}
