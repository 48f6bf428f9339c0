//! Fleets that always want more: what the quota promises is used, whatever the way to the store.

use tollgate::{
    Priority,
    ledger::{Micros, Rule, SECOND},
};

use crate::{
    judge::most_within,
    pauses::Pauses,
    world::{Habit, MILLI, Nature, Plan, World},
};

struct Fleet {
    max: i64,
    window: Micros,
    guard: Micros,
    trips: Vec<Micros>,
    tasks: usize,
    /// A token bucket with this burst.
    burst: Option<i64>,
    reject: bool,
    /// Each way takes up to so much longer, in 1/1000 of it.
    spread: i64,
    seconds: i64,
}

/// Use from the third window on, as a part of promise 2; Jain's index; store calls per permit.
fn play(fleet: &Fleet, seed: u64) -> (f64, f64, f64, World) {
    let habit = Habit {
        cost: 1..=1,
        wait: (!fleet.reject).then_some(600 * SECOND),
        drop: 0,
        priority: Priority::Normal,
        think: 200..=2 * MILLI,
        settles: None,
    };
    let replicas = fleet.trips.iter().map(|&trip| {
        let nature = Nature { trip, spread: fleet.spread, stall: 0, freeze: 0 };
        (nature, vec![habit.clone(); fleet.tasks])
    });
    let rule = match fleet.burst {
        Some(burst) => Rule::bucket(fleet.max, fleet.window, burst, fleet.guard),
        None => Rule::rolling(fleet.max, fleet.window, fleet.guard, true),
    };
    let plan = Plan {
        limits: vec![rule],
        aligned: vec![None],
        guard: fleet.guard,
        replicas: replicas.collect(),
        pauses: Pauses::default(),
        until: fleet.seconds * SECOND,
    };
    let mut world = World::new(plan, seed);
    world.run();
    let (from, until) = (2 * fleet.window, fleet.seconds * SECOND);
    let used = world.sent.iter().filter(|sent| (from..until).contains(&sent.at)).count();
    let promised =
        fleet.max as f64 * (until - from) as f64 / (fleet.window + fleet.guard + fleet.window / 256) as f64;
    let mut shares = vec![0.0_f64; fleet.trips.len()];
    for sent in &world.sent {
        shares[sent.replica] += 1.0;
    }
    let sum: f64 = shares.iter().sum();
    let jain = sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>());
    let calls = world.calls() as f64 / world.sent.len() as f64;
    let mut arrivals: Vec<_> = world.sent.iter().map(|sent| (sent.at, sent.cost)).collect();
    arrivals.sort_unstable();
    assert!(most_within(&arrivals, fleet.window) <= fleet.max + fleet.burst.unwrap_or(0), "over");
    (used as f64 / promised, jain, calls, world)
}

fn usual(max: i64, window: Micros, trips: Vec<Micros>) -> Fleet {
    let seconds = (window / SECOND).max(1) * 12;
    Fleet {
        max,
        window,
        guard: 50 * MILLI,
        trips,
        tasks: 50,
        burst: None,
        reject: false,
        spread: 100,
        seconds,
    }
}

#[test]
fn no_round_trip_costs_quota() {
    let trips: [(&str, Vec<Micros>); 8] = [
        ("0.2 ms", vec![200; 8]),
        ("2 ms", vec![2 * MILLI; 8]),
        ("10 ms", vec![10 * MILLI; 8]),
        ("30 ms", vec![30 * MILLI; 8]),
        ("60 ms", vec![60 * MILLI; 8]),
        ("120 ms", vec![120 * MILLI; 8]),
        ("4 fast, 4 at 60 ms", [vec![1_000; 4], vec![60 * MILLI; 4]].concat()),
        ("7 fast, 1 at 120 ms", [vec![1_000; 7], vec![120 * MILLI; 1]].concat()),
    ];
    for (name, trips) in trips {
        for max in [100, 1_000] {
            for seed in 0..3 {
                let fleet = usual(max, SECOND, trips.clone());
                let (used, jain, calls, world) = play(&fleet, seed);
                println!(
                    "{max}/1s {name}: {used:.3} of promise 2, jain {jain:.3}, {calls:.2} calls, {} late",
                    world.late()
                );
                assert!(used >= 0.97, "{max}/1s, {name}, seed {seed}: {used:.3}");
            }
        }
    }
}

#[test]
fn every_replica_gets_its_share_and_pays_few_calls() {
    for (max, window, replicas, guard) in [
        (100, SECOND, 1, 10 * MILLI),
        (100, SECOND, 3, 10 * MILLI),
        (100, SECOND, 8, 10 * MILLI),
        (1_000, SECOND, 8, 10 * MILLI),
        (20_000, SECOND, 8, 10 * MILLI),
        (10, SECOND, 8, 10 * MILLI),
        (100, 60 * SECOND, 8, 600 * MILLI),
    ] {
        for seed in 0..2 {
            let mut fleet = usual(max, window, vec![1_000; replicas]);
            fleet.guard = guard;
            if max == 10 {
                fleet.seconds = 60;
            }
            if max == 20_000 {
                (fleet.seconds, fleet.tasks) = (6, 300);
            }
            let (used, jain, calls, world) = play(&fleet, seed);
            let bar = 1.2 + 3.0 * replicas as f64 * fleet.seconds as f64 / world.sent.len() as f64;
            let ratio = wait_ratio(&fleet, &world);
            println!(
                "{max}/{}s R{replicas}: {used:.3}, jain {jain:.3}, {calls:.2} calls of {bar:.2}, wait {ratio:.2}",
                window / SECOND
            );
            assert!(used >= 0.99, "{max}, {replicas} replicas, seed {seed}: used {used:.3}");
            assert!(
                ratio <= 1.2,
                "{max}, {replicas} replicas, seed {seed}: waits of {ratio:.2} times the queue"
            );
            assert!(jain >= 0.95, "{max}, {replicas} replicas, seed {seed}: jain {jain:.3}");
            assert!(calls <= bar, "{max}, {replicas} replicas, seed {seed}: {calls:.2} calls");
        }
    }
}

/// How much longer than the queue before it the unlucky wait: p99 against queue length / fair rate, of calls
/// that came after the cold burst's two windows.
fn wait_ratio(fleet: &Fleet, world: &World) -> f64 {
    let settled = world.sent.iter().filter(|sent| sent.at - sent.waited >= 2 * fleet.window);
    let mut waits: Vec<_> = settled.map(|sent| sent.waited).collect();
    waits.sort_unstable();
    let spacing = (fleet.window + fleet.guard) as f64 / fleet.max as f64;
    let fair = (fleet.tasks * fleet.trips.len()) as f64 * spacing;
    waits[waits.len() * 99 / 100] as f64 / fair
}

#[test]
fn a_bucket_gives_its_rate() {
    for replicas in [1, 8] {
        for seed in 0..2 {
            let mut fleet = usual(100, SECOND, vec![1_000; replicas]);
            fleet.burst = Some(10);
            let (_, jain, calls, world) = play(&fleet, seed);
            let (from, until) = (2 * SECOND, fleet.seconds * SECOND);
            let used = world.sent.iter().filter(|sent| (from..until).contains(&sent.at)).count();
            let used = used as f64 / (fleet.max * (fleet.seconds - 2)) as f64;
            println!(
                "bucket R{replicas}: {used:.3} of its rate, jain {jain:.3}, {calls:.2} calls, {} late",
                world.late()
            );
            assert!(used >= 0.97, "{replicas} replicas, seed {seed}: {used:.3}");
        }
    }
}

#[test]
fn a_busy_machine_does_not_make_every_permit_late() {
    // Who rejects books nothing ahead: it must ask in time, and here it often cannot.
    for (max, reject, bar) in [(100, false, 0.97), (1_000, false, 0.97), (100, true, 0.90)] {
        for seed in 0..2 {
            // Replies take up to 10 ms each way, with a guard that forgives 5.
            let mut fleet = usual(max, SECOND, vec![200; 8]);
            (fleet.guard, fleet.spread, fleet.reject) = (10 * MILLI, 100_000, reject);
            let (used, jain, calls, world) = play(&fleet, seed);
            let (late, sent) = (world.late(), world.sent.len());
            println!(
                "{max}/1s busy, reject {reject}: {used:.3}, jain {jain:.3}, {calls:.2} calls, {late} late of {sent}"
            );
            assert!(used >= bar, "{max}, reject {reject}, seed {seed}: {used:.3}");
        }
    }
}

#[test]
fn who_will_not_wait_gets_the_quota_too() {
    for (max, replicas) in [(100, 1), (100, 8), (1_000, 8)] {
        for seed in 0..2 {
            let mut fleet = usual(max, SECOND, vec![1_000; replicas]);
            (fleet.reject, fleet.guard) = (true, 10 * MILLI);
            let (used, jain, calls, _) = play(&fleet, seed);
            println!("reject {max}/1s R{replicas}: {used:.3}, jain {jain:.3}, {calls:.2} calls");
            assert!(used >= 0.97, "{max}, {replicas} replicas, seed {seed}: {used:.3}");
            assert!(
                calls <= 1.5 * replicas as f64,
                "{max}, {replicas} replicas, seed {seed}: {calls:.2} calls"
            );
        }
    }
}

#[test]
fn a_saturated_stream_is_even() {
    for (max, most) in [(100, 2.0), (1_000, 0.25 * 1_000.0 / 42.0)] {
        for (replicas, reject) in [(1, false), (8, false), (1, true), (8, true)] {
            for seed in 0..2 {
                let mut fleet = usual(max, SECOND, vec![300; replicas]);
                fleet.reject = reject;
                let (.., world) = play(&fleet, seed);
                let (width, bins) = (SECOND / 40, 10 * 40);
                let mut counts = vec![0.0_f64; bins];
                for sent in world.sent.iter().filter(|sent| sent.at >= 2 * SECOND) {
                    if let Some(count) = counts.get_mut(((sent.at - 2 * SECOND) / width) as usize) {
                        *count += 1.0;
                    }
                }
                let mean = counts.iter().sum::<f64>() / bins as f64;
                let worst = counts.iter().map(|count| (count - mean).abs()).fold(0.0, f64::max);
                println!("{max}/1s R{replicas}, reject {reject}: {mean:.2} per W/40, at most {worst:.2} off");
                assert!(
                    worst <= most,
                    "{max}, {replicas} replicas, reject {reject}, seed {seed}: {worst:.2}"
                );
            }
        }
    }
}
