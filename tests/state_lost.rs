//! The store has lost its state: what it granted before is unknown to it now and must not fly.

use tollgate::{
    clock::Moment,
    gate::{Ask, Common, Core, Mail, Patience, Settings, Verdict},
    ledger::{Costs, Ledger, Micros, Named, Reply, Rule, SECOND},
};

const EPOCH: Micros = 1_700_000_000 * SECOND;

struct World {
    core: Core<u32>,
    ledger: Ledger,
    rule: Rule,
    now: Micros,
    granted: Vec<(u32, i64)>,
}

impl World {
    /// Plays until `until`, with a store that answers at once.
    fn run(&mut self, until: Micros) {
        loop {
            let mut mail = Mail::new();
            let moment = Moment { mono: self.now, wall: EPOCH + self.now };
            let next = self.core.poll(moment, &mut mail);
            if let Some(call) = next.call {
                let limits = [Named::new("it", self.rule.clone())];
                let Reply::Booked(answer) = self.ledger.book(EPOCH + self.now, &limits, &call) else {
                    panic!("stale")
                };
                self.core.answered(moment, Ok(answer), &mut mail);
            } else {
                self.now = next.wake.filter(|wake| *wake < until).unwrap_or(until);
            }
            for (caller, verdict) in mail {
                match verdict {
                    Verdict::Granted(permit) => self.granted.push((caller, permit.generation.since - EPOCH)),
                    other => panic!("caller {caller} was told {other:?}"),
                }
            }
            if self.now >= until {
                return;
            }
        }
    }
}

#[test]
fn permits_of_an_earlier_generation_do_not_fly() {
    let rule = Rule::rolling(100, SECOND, 50_000, true);
    let settings = Settings {
        member: 1,
        rules: vec![rule.clone()],
        guard: 50_000,
        queue: 1_000,
        ageing: 60_000_000,
        parts: std::sync::Arc::default(),
        common: Common::default(),
    };
    let mut world =
        World { core: Core::new(settings), ledger: Ledger::new(EPOCH), rule, now: 0, granted: Vec::new() };
    for caller in 0..300 {
        let patience = Patience::Until(100 * SECOND);
        world
            .core
            .arrive(0, Ask::new(Costs::same(1, 1), patience), caller)
            .unwrap_or_else(|refused| panic!("{refused:?}"));
    }
    world.run(1_500_000);
    assert!((101..200).contains(&world.granted.len()), "{}", world.granted.len());

    let lost_at = world.now;
    world.ledger = Ledger::new(EPOCH + lost_at);
    let before = world.granted.len();
    // Those due before the gate hears of it, within half a horizon, may fly.
    world.run(lost_at + 25_000);
    let of_old = |granted: &[(u32, i64)]| granted.iter().filter(|(_, since)| *since != lost_at).count();
    assert!(of_old(&world.granted[before..]) <= 3, "{:?}", &world.granted[before..]);
    let heard = world.granted.len();
    world.run(lost_at + 10 * SECOND);
    assert_eq!(of_old(&world.granted[heard..]), 0);
    assert_eq!(world.granted.len(), 300, "everybody is served in the new one");
}
