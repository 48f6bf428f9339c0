//! A fleet in virtual time: the real decision and the real gates, a simulated network and processes, seeded
//! randomness, and a judge who sees everything. `SEEDS=1000 cargo test --release --test simulation` plays
//! that many; `SEED=42` plays one again and tells what it did.

mod guesses_too_high;
mod judge;
mod pauses;
mod priorities;
mod random_fleets;
mod saturated_fleets;
mod world;

use std::ops::Range;

/// The seeds to play: one by name, or as many as asked for.
fn seeds(usual: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(usual),
    }
}
