//! More calls fly than there are places, or a place is lost: random fleets in virtual time, at random distances from
//! their store, which is out of reach now and then; callers wait, would not, or go away. `SEED=n` plays one again, but
//! for the numbers by which the store knows the gates.

use std::{
    env,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

#[path = "support/remote.rs"]
mod remote;
#[path = "support/mod.rs"]
mod support;

use remote::Remote;
use support::Watch;
use tollgate::{Limiter, Tollgate};

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    /// Below `most`.
    fn roll(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn ms(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.roll(most * 1_000))
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.roll(many) == 0
    }
}

/// What flies in the whole fleet, as the upstream would see it.
#[derive(Default)]
struct Sky {
    flying: AtomicI64,
    flew: AtomicU64,
}

struct Caller {
    comes: Duration,
    cost: i64,
    flies: Duration,
    /// `None`: as long as it takes; zero: not at all.
    waits: Option<Duration>,
    /// It loses interest after so long, flying or not.
    goes: Option<Duration>,
}

impl Caller {
    fn random(dice: &mut Dice, max: i64) -> Self {
        let cost = if dice.one_in(8) { 1 + dice.roll(max as u64) as i64 } else { 1 };
        let flies = if dice.one_in(15) { Duration::from_secs(8) } else { dice.ms(200) };
        let waits = match dice.roll(6) {
            0 => Some(Duration::ZERO),
            1 => Some(dice.ms(2_000)),
            _ => None,
        };
        let goes = dice.one_in(6).then(|| dice.ms(600));
        Self { comes: dice.ms(4_000), cost, flies, waits, goes }
    }

    async fn call(self, limiter: Limiter, sky: Arc<Sky>, max: i64) {
        tokio::time::sleep(self.comes).await;
        let ask = limiter.acquire().cost("calls", self.cost as u64);
        let ask = match self.waits {
            Some(Duration::ZERO) => ask.or_reject(),
            Some(time) => ask.wait_at_most(time),
            None => ask,
        };
        let fly = async {
            let Ok(permit) = ask.await else { return };
            let mut flight = Aloft { sky: &sky, cost: self.cost, _permit: permit };
            assert!(flight.take_off() <= max, "one too many");
            tokio::time::sleep(self.flies).await;
            sky.flew.fetch_add(1, SeqCst);
            drop(flight);
        };
        let _ = tokio::time::timeout(self.goes.unwrap_or(Duration::from_secs(300)), fly).await;
    }
}

/// Comes down before its permit is dropped.
struct Aloft<'a> {
    sky: &'a Sky,
    cost: i64,
    _permit: tollgate::Permit,
}

impl Aloft<'_> {
    fn take_off(&mut self) -> i64 {
        self.sky.flying.fetch_add(self.cost, SeqCst) + self.cost
    }
}

impl Drop for Aloft<'_> {
    fn drop(&mut self) {
        self.sky.flying.fetch_sub(self.cost, SeqCst);
    }
}

async fn play(seed: u64) -> u64 {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let max = 1 + dice.roll(6) as i64;
    let mut limits = vec![format!("{max} in flight lease 3s")];
    let others = ["30/1s unpaced", "30/1s", "20/1s burst 3", "30/1s aligned", "1000 tokens/min"];
    if dice.one_in(2) {
        limits.extend(others.get(dice.roll(5) as usize).map(|limit| (*limit).to_owned()));
    }
    let limits: Vec<_> = limits.iter().map(String::as_str).collect();
    let shared = Remote::here();
    let replicas: Vec<(Remote, (Tollgate, Limiter))> = (0..1 + dice.roll(4))
        .map(|_| {
            let store = if dice.one_in(5) { shared.another() } else { shared.far(dice.ms(25)) };
            let store = if dice.one_in(4) { store.deaf() } else { store };
            let replica = store.replica(&limits);
            (store, replica)
        })
        .collect();
    let sky = Arc::new(Sky::default());
    let callers: Vec<_> = (0..20 + dice.roll(60))
        .map(|_| {
            let limiter = replicas[dice.roll(replicas.len() as u64) as usize].1.1.clone();
            tokio::spawn(Caller::random(&mut dice, max).call(limiter, sky.clone(), max))
        })
        .collect();
    for _ in 0..dice.roll(4) {
        let (store, (tollgate, _)) = &replicas[dice.roll(replicas.len() as u64) as usize];
        tokio::time::sleep(dice.ms(1_000)).await;
        store.out_of_reach(true);
        // Shorter than what is left of a lease when it begins.
        tokio::time::sleep(dice.ms(900)).await;
        store.out_of_reach(false);
        if dice.one_in(6) {
            tollgate.shutdown().await;
        }
    }
    for caller in callers {
        caller.await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert_eq!(sky.flying.load(SeqCst), 0, "seed {seed}");
    // What could not be told in time is told again, or its lease is over.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let look = replicas[0].1.1.peek().await.expect("in memory");
    assert_eq!((look.limits[0].left, look.queued), (max as u64, 0), "seed {seed}");
    let calls = || replicas.iter().map(|(store, _)| store.calls()).sum::<u64>();
    let before = calls();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(calls(), before, "seed {seed}: nobody flies, nobody waits, and it goes on");
    let flew = sky.flew.load(SeqCst);
    // Two for each that flies, with those who ask in vain, tell that they go, or ask twice a second.
    let time = 12;
    let most = 8 * (flew + 80) + time * 2 * replicas.len() as u64 * 3;
    assert!(before <= most, "seed {seed}: {before} calls for {flew} that flew");
    flew
}

#[test]
fn no_place_is_taken_twice_or_lost_and_nobody_is_stuck() {
    let seeds: Vec<u64> = match env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => {
            let many = env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300);
            // In the last one an answer that is repeated tells of a slot that was far when it was decided.
            (0..many).chain([10_163]).collect()
        }
    };
    let mut flew = 0;
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        flew += runtime.expect("a runtime").block_on(async {
            let time = Watch::start();
            let flew = play(seed).await;
            assert!(time.read() < Duration::from_secs(600), "seed {seed}: {:?}", time.read());
            flew
        });
    }
    println!("{flew} flew");
    assert!(flew > 10);
}
