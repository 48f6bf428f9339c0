//! Random fleets with delays, stalls, frozen processes, dropped callers and pauses: nothing over, nothing lost,
//! nobody stuck, and nothing sent that a pause should have stopped.

use fastrand::Rng;
use tollgate::{
    Priority,
    ledger::{Micros, Rule, SECOND},
};

use crate::{
    judge::{Law, most_held, over},
    pauses::{self, Pauses},
    seeds,
    world::{EPOCH, Habit, MILLI, Nature, Plan, World},
};

struct Case {
    plan: Plan,
    laws: Vec<Law>,
    guard: Micros,
}

fn default_guard(window: Micros) -> Micros {
    (window / 100).max((window / 10).min(50 * MILLI)).min(SECOND)
}

fn random_case(rng: &mut Rng) -> Case {
    let (mut limits, mut laws, mut aligned, mut guards) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rng.usize(1..=2) {
        let window = [SECOND, 2 * SECOND, 5 * SECOND][rng.usize(0..3)];
        let max = [5, 10, 60, 100, 300, 1_000][rng.usize(0..6)];
        let guard = default_guard(window);
        guards.push(guard);
        match rng.u32(0..10) {
            0..6 => {
                limits.push(Rule::rolling(max, window, guard, rng.u32(0..4) > 0));
                laws.push(Law::Rolling { max, window });
                aligned.push(None);
            }
            6..8 => {
                let burst = rng.i64(1..=max);
                limits.push(Rule::bucket(max, window, burst, guard));
                laws.push(Law::Bucket { max, window, burst });
                aligned.push(None);
            }
            _ => {
                limits.push(Rule::calendar(max, guard, Vec::new()));
                laws.push(Law::Aligned { max, window });
                aligned.push(Some(window));
            }
        }
    }
    let most = limits.iter().map(Rule::max).min().unwrap_or(1);
    let costs = [1..=1, 1..=rng.i64(1..=5.min(most)), 1..=rng.i64(1..=20.min(most))][rng.usize(0..3)].clone();
    let settles = rng.bool().then(|| {
        let window = laws.iter().map(Law::window).min().unwrap_or(SECOND);
        (rng.i64(0..500)..=rng.i64(500..=1_000), MILLI..=window / rng.i64(2..20))
    });
    let classes: &[_] = if rng.bool() {
        &[Priority::Normal]
    } else {
        &[Priority::High, Priority::Normal, Priority::Low, Priority::Low]
    };
    let replicas = (0..rng.usize(2..=8)).map(|_| {
        let nature = Nature {
            trip: [200, 1_000, 2_000, 10 * MILLI, 60 * MILLI, 120 * MILLI][rng.usize(0..6)],
            spread: 100,
            stall: [0, 50, 500][rng.usize(0..3)],
            freeze: [0, 0, 3_000][rng.usize(0..3)],
        };
        let habits = (0..rng.usize(1..30)).map(|_| Habit {
            cost: costs.clone(),
            wait: [None, Some(100 * MILLI), Some(SECOND), Some(60 * SECOND)][rng.usize(0..4)],
            drop: [0, 0, 3][rng.usize(0..3)],
            priority: classes[rng.usize(0..classes.len())],
            think: 200..=[2 * MILLI, 50 * MILLI, SECOND][rng.usize(0..3)],
            settles: settles.clone(),
        });
        (nature, habits.collect())
    });
    let replicas: Vec<_> = replicas.collect();
    let guard = guards.iter().copied().min().unwrap_or(0);
    let until = rng.i64(4..10) * SECOND;
    let heard = (0..rng.usize(0..=3)).map(|_| {
        let time = [10 * MILLI, 100 * MILLI, 700 * MILLI, 2 * SECOND, 5 * SECOND][rng.usize(0..5)];
        (rng.i64(300 * MILLI..until), rng.usize(0..replicas.len()), time)
    });
    let heard = heard.collect();
    let pauses = Pauses { heard, unheard: [0, 50, 100][rng.usize(0..3)] };
    Case { plan: Plan { limits, aligned, guard, replicas, pauses, until }, laws, guard }
}

/// What is to be seen of a seed in which nothing is wrong.
#[derive(Default)]
struct Played {
    sent: usize,
    pauses: usize,
    strays: usize,
}

/// What is wrong with this seed, if anything.
fn play(seed: u64) -> Result<Played, String> {
    let mut rng = Rng::with_seed(seed);
    let Case { plan, laws, guard } = random_case(&mut rng);
    let told = format!("seed {seed}: {laws:?}, {} replicas", plan.replicas.len());
    let mut world = World::new(plan, seed);
    world.run();
    // The wire: up to half the guard of jitter, the other half is the replicas' own.
    let jittered = |at: Micros, rng: &mut Rng| EPOCH + at + rng.i64(0..=guard / 2);
    let mut arrivals: Vec<_> =
        world.sent.iter().map(|sent| (jittered(sent.at, &mut rng), sent.real)).collect();
    arrivals.sort_unstable();
    for law in laws {
        if let Some(excess) = over(law, &arrivals) {
            return Err(format!("{told}: over by {excess} under {law:?}"));
        }
        let held = most_held(law, &world.sent);
        if held > law.max() {
            return Err(format!("{told}: {held} held under {law:?}"));
        }
    }
    if let Some(what) = pauses::broken(&world) {
        return Err(format!("{told}: {what}"));
    }
    if world.stuck() > 0 {
        return Err(format!("{told}: {} callers are stuck", world.stuck()));
    }
    if world.lost() > 0 {
        return Err(format!("{told}: {} permits are lost", world.lost()));
    }
    if let Some(late) = world.overdue.iter().max() {
        return Err(format!("{told}: a caller was answered {late} us after its bound"));
    }
    if std::env::var_os("SEED").is_some() {
        let (sent, refused, dropped) = (world.sent.len(), world.refused, world.dropped);
        println!("{told}: {sent} sent, {refused} refused, {dropped} dropped, {} calls", world.calls());
    }
    Ok(Played { sent: world.sent.len(), pauses: world.paused.len(), strays: pauses::strays(&world) })
}

#[test]
fn no_window_is_exceeded_no_permit_lost_nobody_stuck() {
    let results: Vec<_> = seeds(200).map(play).collect();
    let failures: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let sum = |what: fn(&Played) -> usize| results.iter().flatten().map(what).sum::<usize>();
    let (sent, pauses, strays) =
        (sum(|played| played.sent), sum(|played| played.pauses), sum(|played| played.strays));
    println!("{} seeds, {} failed, {sent} requests sent", results.len(), failures.len());
    println!("{pauses} pauses, {strays} sent before they were heard of");
    assert!(failures.is_empty(), "{failures:#?}");
}
