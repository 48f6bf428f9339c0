//! A batch that saturates seven replicas, and a person at the eighth.

use tollgate::{
    Priority,
    ledger::{Micros, Rule, SECOND},
};

use crate::{
    pauses::Pauses,
    world::{Habit, MILLI, Nature, Plan, World},
};

/// The waits of high calls, sorted, and the part of the quota used.
fn play(max: i64, high: bool, seed: u64) -> (Vec<Micros>, f64) {
    let (window, seconds) = (SECOND, 20);
    let nature = Nature { trip: 400, spread: 100, stall: 0, freeze: 0 };
    let batch = Habit {
        cost: 1..=1,
        wait: Some(600 * SECOND),
        drop: 0,
        priority: Priority::Low,
        think: 200..=2 * MILLI,
        settles: None,
    };
    let person = Habit { priority: Priority::High, think: 50 * MILLI..=150 * MILLI, ..batch.clone() };
    let mut replicas = vec![(nature.clone(), vec![batch; 50]); 7];
    replicas.push((nature, if high { vec![person] } else { Vec::new() }));
    let plan = Plan {
        limits: vec![Rule::rolling(max, window, 50 * MILLI, true)],
        aligned: vec![None],
        guard: 50 * MILLI,
        replicas,
        pauses: Pauses::default(),
        until: seconds * SECOND,
    };
    let mut world = World::new(plan, seed);
    world.run();
    let from = 3 * SECOND;
    let mut waits: Vec<_> = world
        .sent
        .iter()
        .filter(|sent| sent.replica == 7 && sent.at > from)
        .map(|sent| sent.waited)
        .collect();
    waits.sort_unstable();
    let used = world.sent.iter().filter(|sent| (from..seconds * SECOND).contains(&sent.at)).count() as f64;
    let promised =
        max as f64 * (seconds * SECOND - from) as f64 / (window + 50 * MILLI + window / 256) as f64;
    (waits, used / promised)
}

#[test]
fn a_person_waits_for_a_batch_elsewhere() {
    for (max, slots, least) in [(100, 3, 0.99), (1_000, 51, 0.99)] {
        for seed in 0..3 {
            let (waits, used) = play(max, true, seed);
            let slot = (SECOND + 50 * MILLI) / max;
            let p99 = waits[waits.len() * 99 / 100];
            println!("{max}: {} waits, p99 {} us, slots of {slot} us, used {used:.3}", waits.len(), p99);
            assert!(waits.len() > 100, "{max}, seed {seed}: {} calls", waits.len());
            assert!(p99 <= slots * slot, "{max}, seed {seed}: p99 {p99} us");
            assert!(used >= least, "{max}, seed {seed}: used {used}");
        }
    }
}

#[test]
fn a_batch_alone_does_not_get_the_full_rate() {
    let (_, used) = play(100, false, 0);
    assert!(used >= 0.99, "{used}");
}
