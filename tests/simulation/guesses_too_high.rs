//! Fleets that always want more and always guess too much: what comes back is used.

use std::ops::RangeInclusive;

use tollgate::{
    Priority,
    ledger::{Micros, Rule, SECOND},
};

use crate::{
    judge::{Law, most_held},
    pauses::Pauses,
    world::{Habit, MILLI, Nature, Plan, Sent, World},
};

const WINDOW: Micros = 60 * SECOND;
const GUARD: Micros = 600 * MILLI;
const MAX: i64 = 100_000;
const UNTIL: Micros = 14 * WINDOW;
/// How long a call takes.
const TAKES: RangeInclusive<Micros> = WINDOW / 20..=WINDOW / 5;
/// Its real cost, in 1/1000 of the guess.
const REAL: RangeInclusive<i64> = 125..=500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Paced,
    Unpaced,
    Calendar,
}

impl Kind {
    fn rule(self) -> Rule {
        match self {
            Self::Calendar => Rule::calendar(MAX, GUARD, Vec::new()),
            _ => Rule::rolling(MAX, WINDOW, GUARD, self == Self::Paced),
        }
    }

    fn law(self) -> Law {
        match self {
            Self::Calendar => Law::Aligned { max: MAX, window: WINDOW },
            _ => Law::Rolling { max: MAX, window: WINDOW },
        }
    }

    /// What no scheme that reserves the guess until the real cost is known can exceed, in each microsecond.
    fn attainable(self) -> f64 {
        if self == Self::Calendar {
            return MAX as f64 / WINDOW as f64;
        }
        // A call counts its guess for as long as it takes and its real cost for the rest of the span: so much of the
        // area below `MAX` it fills.
        let real = mean(&REAL) / 1_000.0;
        let span = (WINDOW + GUARD + WINDOW / 256) as f64;
        MAX as f64 * real / (mean(&TAKES) + real * (span - mean(&TAKES)))
    }
}

fn mean(range: &RangeInclusive<i64>) -> f64 {
    (range.start() + range.end()) as f64 / 2.0
}

fn play(kind: Kind, guess: i64, replicas: usize, seed: u64) -> World {
    let nature = Nature { trip: MILLI, spread: 100, stall: 0, freeze: 0 };
    let habit = Habit {
        cost: guess..=guess,
        wait: Some(3_600 * SECOND),
        drop: 0,
        priority: Priority::Normal,
        think: 200..=2 * MILLI,
        settles: Some((REAL, TAKES)),
    };
    let plan = Plan {
        limits: vec![kind.rule()],
        aligned: vec![Some(WINDOW)],
        guard: GUARD,
        replicas: vec![(nature, vec![habit; 400 / replicas]); replicas],
        pauses: Pauses::default(),
        until: UNTIL,
    };
    let mut world = World::new(plan, seed);
    world.run();
    world
}

/// How much more what is sent in a fortieth of a window varies than if each call came by chance.
fn lumps(sent: &[&Sent]) -> f64 {
    let mut counts = vec![0.0_f64; 12 * 40];
    for sent in sent {
        counts[((sent.at - 2 * WINDOW) / (WINDOW / 40)) as usize] += 1.0;
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / counts.len() as f64 / mean
}

#[test]
fn what_comes_back_is_left_unused() {
    for kind in [Kind::Paced, Kind::Unpaced, Kind::Calendar] {
        for guess in [500, 2_000, 8_000] {
            for replicas in [1, 4, 8] {
                for seed in 0..2 {
                    let world = play(kind, guess, replicas, seed);
                    let case = format!("{kind:?}, guess {guess} of {MAX}, {replicas} replicas, seed {seed}");
                    let most = most_held(kind.law(), &world.sent);
                    let steady = (2 * WINDOW)..UNTIL;
                    let sent: Vec<_> = world.sent.iter().filter(|sent| steady.contains(&sent.at)).collect();
                    let used = sent.iter().map(|sent| sent.real).sum::<i64>() as f64;
                    let used = used / (kind.attainable() * (12 * WINDOW) as f64);
                    let (lumps, calls) = (lumps(&sent), world.calls() as f64 / world.sent.len() as f64);
                    println!(
                        "{case}: {used:.3} of what is attainable, at most {most} held, {lumps:.2} lumps, {calls:.2} calls"
                    );
                    assert!(most <= MAX, "{case}: {most} held");
                    // Two thirds of the quota are then held by the next call of each replica, and the one whose turn
                    // it is learns of what the others give back only when it has something to settle itself.
                    let dear = guess * replicas as i64 > MAX / 2;
                    assert!(used >= if dear { 0.65 } else { 0.85 }, "{case}: {used:.3}");
                    assert!(kind != Kind::Paced || dear || lumps <= 1.0, "{case}: {lumps:.2} lumps");
                }
            }
        }
    }
}
