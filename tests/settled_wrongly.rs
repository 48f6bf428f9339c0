//! What a call really cost is settled afterwards: without bound, twice, too late, after a crash, or at the cost of
//! others. Each rule is asked of the decision in Rust and of the scripts in a real Redis, at the same moments.

#[path = "support/history.rs"]
mod history;
#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;
#[cfg(feature = "redis")]
#[path = "support/scripts.rs"]
mod scripts;

use history::{EPOCH, Kind, Machine, Pure};
use tollgate::ledger::{Answer, Booked, Call, Costs, Generation, Ledger, Micros, Named, Reply, SECOND, Want};

const PACED: Kind = Kind::Rolling { max: 10, window: SECOND, guard: 0, paced: true };
const UNPACED: Kind = Kind::Rolling { max: 10, window: SECOND, guard: 0, paced: false };
const BUCKET: Kind = Kind::Bucket { max: 10, window: SECOND, burst: 10, guard: 0 };
const CALENDAR: Kind = Kind::Calendar { max: 10, period: SECOND, guard: 100_000 };
/// What of [`BUCKET`] comes back in a moment.
const TOKEN: Micros = SECOND / 10;
/// What the gate makes of an amount that no limit can count.
const BEYOND: i64 = i64::MAX / 4;
/// The calendar's periods are not all of one length.
const RESET: Micros = SECOND + SECOND / 7;

/// One that can lose all it knows.
trait Store: Machine {
    fn lose(&mut self, now: Micros);
}

impl Store for Pure {
    fn lose(&mut self, now: Micros) {
        self.0 = Ledger::new(now);
    }
}

#[cfg(feature = "redis")]
impl Store for scripts::Scripts {
    fn lose(&mut self, _: Micros) {
        self.forget();
    }
}

/// A fresh state for each kind, in each store.
fn on_both<T: Copy>(kinds: &[(Kind, T)], test: impl Fn(&mut Fleet<'_>, T)) {
    for (kind, expected) in kinds {
        test(&mut Fleet::new(&mut Pure(Ledger::new(EPOCH)), &[*kind]), *expected);
    }
    #[cfg(feature = "redis")]
    {
        let redis = redis_server::PrivateRedis::start();
        let mut scripts = scripts::Scripts::on(&redis);
        for (kind, expected) in kinds {
            scripts.forget();
            test(&mut Fleet::new(&mut scripts, &[*kind]), *expected);
        }
    }
}

/// Members that ask one store. Moments are told from [`EPOCH`].
struct Fleet<'a> {
    store: &'a mut dyn Store,
    kinds: Vec<Kind>,
    number: i64,
    generation: Option<Generation>,
}

impl<'a> Fleet<'a> {
    fn new(store: &'a mut dyn Store, kinds: &[Kind]) -> Self {
        Self { store, kinds: kinds.to_vec(), number: 0, generation: None }
    }

    fn limits(&self, now: Micros) -> Vec<Named> {
        let named = |(at, kind): (usize, &Kind)| Named::new(format!("limit{at}"), kind.rule(EPOCH + now));
        self.kinds.iter().enumerate().map(named).collect()
    }

    fn send(&mut self, now: Micros, call: &Call) -> Answer {
        let Reply::Booked(answer) = self.store.book(EPOCH + now, &self.limits(now), call) else {
            panic!("stale")
        };
        self.generation = Some(answer.generation);
        answer
    }

    /// A call of a member, with its next number.
    fn call(&mut self, member: u64) -> Call {
        self.number += 1;
        let (number, generation) = (self.number, self.generation);
        Call { member, number, generation, horizon: 50_000, ..Call::default() }
    }

    /// Now or not at all.
    fn try_book(&mut self, member: u64, now: Micros, costs: &[i64]) -> Option<Booked> {
        let costs: Costs = costs.iter().copied().collect();
        let wants = vec![Want { costs: costs.clone(), class: 1, budget: Some(0), count: 1 }];
        let call = Call { wants, ..self.call(member) };
        let slot = self.send(now, &call).outcomes[0].slots.first().copied()?;
        Some(Booked::new(slot, costs))
    }

    fn book(&mut self, member: u64, now: Micros, cost: i64) -> Booked {
        self.try_book(member, now, &[cost]).expect("room")
    }

    fn settling(&mut self, booked: &Booked, real: i64) -> Call {
        let change = Booked::new(booked.slot, [real - booked.costs.of(0)].into_iter().collect());
        Call { settles: vec![change], ..self.call(1) }
    }

    fn settle(&mut self, now: Micros, booked: &Booked, real: i64) {
        let call = self.settling(booked, real);
        self.send(now, &call);
    }

    /// What is left of each limit, and when the next permit of cost 1 flies, from [`EPOCH`].
    fn look(&mut self, now: Micros) -> Vec<(i64, Micros)> {
        let limits = self.limits(now);
        let look = self.store.peek(EPOCH + now, &limits).expect("the resets are right");
        look.limits.into_iter().map(|(left, next)| (left, next - EPOCH)).collect()
    }

    fn left(&mut self, now: Micros) -> i64 {
        self.look(now)[0].0
    }

    fn next(&mut self, now: Micros) -> Micros {
        self.look(now)[0].1
    }
}

#[test]
fn a_debt_takes_more_than_one_further_window() {
    // Its own window is lost anyway; a calendar's reset forgives what is above it.
    let free_again =
        [(UNPACED, SECOND), (PACED, 2 * SECOND), (BUCKET, TOKEN + 11 * TOKEN), (CALENDAR, RESET + 100_000)];
    on_both(&free_again, |fleet, free| {
        let booked = fleet.book(1, 0, 1);
        fleet.settle(TOKEN, &booked, 1_000);
        assert_eq!(fleet.look(TOKEN), [(0, free)]);
        assert_eq!(fleet.next(free), free);
        fleet.try_book(2, free, &[1]).expect("it is over");
    });
}

#[test]
fn debts_that_follow_each_other_add_up_without_end() {
    on_both(&[(UNPACED, ()), (PACED, ()), (BUCKET, ()), (CALENDAR, ())], |fleet, ()| {
        // All fly before the first is known; each is known late, when the window of the first is nearly over.
        let booked: Vec<_> = (0..9).map(|at| fleet.book(1, at * 90_000, 1)).collect();
        for (at, booked) in booked.iter().enumerate() {
            let now = 900_000 + at as Micros * 90_000;
            fleet.settle(now, booked, BEYOND);
            // A bucket has no windows; to be filled twice takes it as long.
            let most = if matches!(fleet.kinds[0], Kind::Bucket { .. }) { now } else { booked.slot - EPOCH };
            let next = fleet.next(now);
            assert!(next <= most + 2 * SECOND, "{:?}: {next} after {most}", fleet.kinds);
        }
    });
}

#[test]
fn a_debt_wipes_out_what_others_use() {
    on_both(
        &[(UNPACED, (SECOND, 7)), (PACED, (SECOND, 7)), (CALENDAR, (RESET + 100_000, 10))],
        |fleet, over| {
            let booked = fleet.book(1, 0, 1);
            fleet.book(2, SECOND / 2, 3);
            (0..5).for_each(|_| fleet.settle(SECOND / 2, &booked, BEYOND));
            assert_eq!((fleet.left(SECOND / 2), fleet.left(over.0)), (0, over.1), "{:?}", fleet.kinds);
        },
    );
}

#[test]
fn a_settlement_told_twice_counts_twice() {
    on_both(&[(UNPACED, ()), (PACED, ()), (BUCKET, ()), (CALENDAR, ())], |fleet, ()| {
        for (real, left) in [(1, 9), (4, 5)] {
            let booked = fleet.book(1, 0, 3);
            let call = fleet.settling(&booked, real);
            (0..3).for_each(|_| _ = fleet.send(0, &call));
            assert_eq!(fleet.left(0), left, "{real}: {:?}", fleet.kinds);
        }
    });
}

#[test]
fn a_settlement_changes_a_window_that_is_over() {
    let over = [(UNPACED, SECOND), (PACED, SECOND), (CALENDAR, RESET + 100_000)];
    for real in [0, 3, 1_000] {
        on_both(&over, |fleet, over| {
            let booked = fleet.book(1, 0, 4);
            let others = fleet.book(2, over, 3);
            let before = fleet.look(over);
            fleet.settle(over, &booked, real);
            assert_eq!(fleet.look(over), before, "{real}: {:?}", fleet.kinds);
            assert_eq!(before[0].0, 7, "{others:?}");
        });
        // Just before that it does.
        on_both(&[(UNPACED, SECOND), (PACED, SECOND), (CALENDAR, RESET)], |fleet, over| {
            let booked = fleet.book(1, 0, 4);
            fleet.settle(over - 1, &booked, real);
            assert_eq!(fleet.left(over - 1), (10 - real).max(0), "{:?}", fleet.kinds);
        });
    }
}

#[test]
fn a_slot_near_a_reset_is_settled_on_one_side_of_it() {
    // It counts on both, and on the one that is over nothing does any more.
    for (real, left) in [(9, 1), (1, 9), (1_000, 0)] {
        on_both(&[(CALENDAR, ())], |fleet, ()| {
            let booked = fleet.book(1, RESET - 100_000, 4);
            assert_eq!((fleet.left(RESET - 1), fleet.left(RESET + 200_000)), (6, 6));
            fleet.settle(RESET + 200_000, &booked, real);
            assert_eq!(fleet.left(RESET + 200_000), left);
        });
        on_both(&[(CALENDAR, ())], |fleet, ()| {
            let booked = fleet.book(1, RESET - 100_001, 4);
            fleet.settle(RESET + 200_000, &booked, real);
            assert_eq!(fleet.left(RESET + 200_000), 10);
        });
    }
}

#[test]
fn what_others_use_is_given_back() {
    // The cell that the permit lay in is still there for a later one; its window is over.
    on_both(&[(UNPACED, ()), (PACED, ())], |fleet, ()| {
        let booked = fleet.book(1, 0, 4);
        fleet.book(2, 1_000, 3);
        for real in [0, 1_000] {
            let before = fleet.look(SECOND);
            fleet.settle(SECOND, &booked, real);
            assert_eq!(fleet.look(SECOND), before, "{:?}", fleet.kinds);
        }
        assert_eq!((fleet.left(SECOND + 999), fleet.left(SECOND + 1_000)), (3, 10));
    });
    // In a bucket what came back in time has been used since.
    on_both(&[(BUCKET, ())], |fleet, ()| {
        let booked = fleet.book(1, 0, 4);
        fleet.book(2, 6 * TOKEN, 3);
        fleet.settle(6 * TOKEN, &booked, 0);
        assert_eq!(fleet.left(6 * TOKEN), 7);
    });
}

#[test]
fn a_full_bucket_gets_a_token_twice() {
    on_both(
        &[(BUCKET, 10), (Kind::Bucket { max: 10, window: SECOND, burst: 3, guard: 0 }, 3)],
        |fleet, full| {
            // Full again to the microsecond, before and after that.
            let times = [full * TOKEN - 1, full * TOKEN, full * TOKEN + 1, (full + 1) * TOKEN, TOKEN, 0];
            for (at, wait) in times.into_iter().enumerate() {
                let now = at as Micros * 10 * SECOND + wait;
                let booked = fleet.book(1, now - wait, full);
                fleet.settle(now, &booked, 0);
                assert_eq!(fleet.left(now), full);
                fleet.book(2, now, full);
                assert_eq!(fleet.try_book(2, now, &[1]), None, "{full} after {wait}");
            }
        },
    );
}

#[test]
fn a_bucket_gives_back_what_a_later_permit_rests_on() {
    on_both(&[(BUCKET, ())], |fleet, ()| {
        // At one moment: nothing came in between, so both come back.
        let two = [fleet.book(1, 0, 5), fleet.book(1, 0, 5)];
        two.iter().for_each(|booked| fleet.settle(0, booked, 1));
        assert_eq!(fleet.left(0), 8);
        // Only the last one does; what it was charged more ends that.
        let two = [fleet.book(1, 2 * TOKEN, 5), fleet.book(1, 3 * TOKEN, 5)];
        fleet.settle(3 * TOKEN, &two[0], 0);
        assert_eq!(fleet.left(3 * TOKEN), 1);
        fleet.settle(3 * TOKEN, &two[1], 6);
        fleet.settle(3 * TOKEN, &two[1], 0);
        assert_eq!(fleet.left(3 * TOKEN), 0);
    });
}

#[test]
fn a_new_generation_settles_for_the_old_one() {
    on_both(&[(UNPACED, ()), (PACED, ()), (BUCKET, ()), (CALENDAR, ())], |fleet, ()| {
        let old = fleet.book(1, 0, 4);
        let (less, more) = (fleet.settling(&old, 0), fleet.settling(&old, 1_000));
        let unused = Call { returns: vec![old], ..fleet.call(1) };
        fleet.store.lose(EPOCH + 1);
        // Into the very cell, and as the last one.
        fleet.book(2, 1, 5);
        for call in [less, more, unused] {
            fleet.send(1, &call);
            assert_eq!(fleet.left(1), 5, "{:?}", fleet.kinds);
        }
    });
}

#[test]
fn who_crashed_before_settling_costs_nothing() {
    let over = [(UNPACED, SECOND), (PACED, SECOND), (BUCKET, SECOND), (CALENDAR, RESET + 100_000)];
    on_both(&over, |fleet, over| {
        fleet.book(1, 0, 10);
        assert_eq!(fleet.try_book(2, 1, &[1]), None, "it stands as it was guessed");
        assert_eq!((fleet.left(0), fleet.left(over)), (0, 10));
    });
}

#[test]
fn what_one_limit_refuses_is_charged_to_another() {
    let tokens = Kind::Rolling { max: 1_000, window: 60 * SECOND, guard: 0, paced: true };
    on_both(&[(UNPACED, ()), (PACED, ()), (BUCKET, ()), (CALENDAR, ())], |fleet, ()| {
        fleet.kinds.push(tokens);
        let first = fleet.try_book(1, 0, &[1, 900]).expect("room");
        let before = fleet.look(0);
        assert_eq!((before[0].0, before[1].0), (9, 100));
        // No room now, and never any: neither costs anything.
        assert_eq!(fleet.try_book(1, 0, &[1, 101]), None);
        assert_eq!(fleet.try_book(1, 0, &[1, 1_001]), None);
        assert_eq!(fleet.try_book(1, 0, &[11, 1]), None);
        assert_eq!(fleet.look(0), before, "{:?}", fleet.kinds);
        // Each unit is settled by itself.
        let change = Booked::new(first.slot, [0, -400].into_iter().collect());
        let call = Call { settles: vec![change], ..fleet.call(1) };
        fleet.send(0, &call);
        assert_eq!((fleet.left(0), fleet.look(0)[1].0), (9, 500));
    });
}

#[test]
fn more_is_left_than_there_is_or_less_than_nothing() {
    on_both(&[(UNPACED, ()), (PACED, ()), (BUCKET, ()), (CALENDAR, ())], |fleet, ()| {
        fastrand::seed(1);
        let (mut now, mut full, mut owing) = (0, 0, 0);
        for _ in 0..300 {
            now += fastrand::choice([0, 100_000, 300_000, 3 * SECOND]).unwrap_or(0);
            if let Some(booked) = fleet.try_book(1, now, &[fastrand::i64(1..=10)]) {
                now += fastrand::i64(0..100_000);
                // Less than nothing is no cost; who says so gets no more back than there is.
                fleet.settle(now, &booked, fastrand::i64(-10..20));
            }
            let left = fleet.left(now);
            assert!((0..=10).contains(&left), "{left} left: {:?}", fleet.kinds);
            (full, owing) = (full + i32::from(left == 10), owing + i32::from(left == 0));
        }
        assert!(full > 10 && owing > 10, "{:?}: full {full}, in debt {owing} times", fleet.kinds);
    });
}
