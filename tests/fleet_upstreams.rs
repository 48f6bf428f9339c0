//! The referees of the proof must themselves be right: each kind of upstream accepts what it says and not
//! one more.

#[path = "../examples/fleet/change.rs"]
mod change;
#[path = "../examples/fleet/clock.rs"]
mod clock;
#[path = "../examples/fleet/flights.rs"]
mod flights;
#[path = "../examples/fleet/judge.rs"]
mod judge;
#[path = "../examples/fleet/place.rs"]
mod place;
#[path = "../examples/fleet/price.rs"]
mod price;
#[path = "../examples/fleet/quota.rs"]
mod quota;
#[path = "../examples/fleet/rules.rs"]
mod rules;
#[path = "../examples/fleet/trip.rs"]
mod trip;
#[path = "../examples/fleet/unsettled.rs"]
mod unsettled;
#[path = "../examples/fleet/upstream.rs"]
mod upstream;

use std::{error::Error, ops::Range, time::Duration};

use clock::nanos;
use flights::{Flights, InFlight};
use futures_util::future::join_all;
use judge::{Judged, Seen, most_within};
use price::Price;
use quota::{Nanos, Quota, UpstreamKind, Which};
use rules::{Answer, Page};
use trip::{Aftermath, Attempt, RETURN, Trip};
use unsettled::{Guess, Unsettled};
use upstream::Upstream;

type Outcome<T> = Result<T, Box<dyn Error>>;

const MILLI: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MILLI;
const KINDS: [UpstreamKind; 4] =
    [UpstreamKind::Rolling, UpstreamKind::Fixed, UpstreamKind::Counter, UpstreamKind::Bucket];

/// An upstream's quota; each request takes one of `requests` and what is said of `tokens`.
struct Counted(Quota);

impl Counted {
    fn arrive(&mut self, now: Nanos) -> Result<(), Nanos> {
        self.0.arrive(now, &Price::default()).map_err(|refusal| refusal.wait)
    }

    fn tokens(&mut self, now: Nanos, amount: u64) -> Result<(), Nanos> {
        self.0.arrive(now, &tokens(amount)).map_err(|refusal| refusal.wait)
    }

    /// The places of the limits that refuse it.
    fn refused_by(&mut self, now: Nanos, amount: u64) -> Vec<usize> {
        let by = self.0.arrive(now, &tokens(amount)).err().map(|refusal| refusal.by).unwrap_or_default();
        (0..Which::MOST).filter(|limit| by.has(*limit)).collect()
    }
}

/// What an upstream answers to requests that say nothing of their cost.
struct Rules(rules::Rules);

impl Rules {
    fn new(quota: Counted, trip: Option<Trip>, redirect_every: Option<u64>) -> Self {
        Self(rules::Rules::new(quota.0, None, trip, redirect_every))
    }

    fn answer(&mut self, now: Nanos, page: Page) -> Answer {
        self.0.answer(now, page, &Price::default())
    }

    fn trip(&self) -> Option<Range<Nanos>> {
        self.0.trip()
    }
}

fn tokens(amount: u64) -> Price {
    Price(vec![("tokens".into(), amount)])
}

fn upstream(kind: UpstreamKind, limits: &[&str]) -> Counted {
    let limits: Vec<_> = limits.iter().map(|text| text.parse().expect("a limit")).collect();
    Counted(Quota::new(kind, &limits))
}

/// Three a second; from 4 s after the first arrival on nothing for two seconds.
fn tripping() -> Rules {
    let trip = Trip { lasts: Duration::from_secs(2), after: Duration::from_secs(4) };
    Rules::new(upstream(UpstreamKind::Rolling, &["3/s"]), Some(trip), None)
}

/// By the limit at this place, or by none.
fn refused_by(retry_after: u64, limit: Option<usize>) -> Answer {
    let mut by = Which::default();
    limit.into_iter().for_each(|limit| by.add(limit));
    Answer::Refused { retry_after, by }
}

/// By the trip.
fn tripped(retry_after: u64) -> Answer {
    refused_by(retry_after, None)
}

/// By the first limit.
fn refused(retry_after: u64) -> Answer {
    refused_by(retry_after, Some(0))
}

/// How many of `count` requests at one moment are accepted.
fn burst(quota: &mut Counted, now: Nanos, count: usize) -> usize {
    (0..count).filter(|_| quota.arrive(now).is_ok()).count()
}

#[test]
fn rolling_window_is_half_open() {
    let mut quota = upstream(UpstreamKind::Rolling, &["3/s"]);
    assert_eq!(burst(&mut quota, 0, 2), 2);
    assert_eq!(burst(&mut quota, 400 * MILLI, 2), 1);
    assert_eq!(quota.arrive(SECOND - 1), Err(1));
    // What came exactly one window ago is out; what came later is not.
    assert_eq!(burst(&mut quota, SECOND, 3), 2);
    assert_eq!(quota.arrive(SECOND), Err(400 * MILLI));
    assert_eq!(burst(&mut quota, 1_400 * MILLI, 2), 1);
}

#[test]
fn refused_requests_do_not_count() {
    for kind in [UpstreamKind::Rolling, UpstreamKind::Fixed, UpstreamKind::Bucket] {
        let mut quota = upstream(kind, &["3/s"]);
        assert_eq!(burst(&mut quota, 0, 50), 3, "{kind:?}");
        assert_eq!(burst(&mut quota, SECOND, 50), 3, "{kind:?}");
    }
}

#[test]
fn fixed_windows_forget_at_their_boundary() {
    let mut quota = upstream(UpstreamKind::Fixed, &["3/s"]);
    assert_eq!(burst(&mut quota, SECOND - 1, 5), 3);
    assert_eq!(quota.arrive(SECOND - 1), Err(1));
    // Twice the quota within a nanosecond: that is what this kind allows.
    assert_eq!(burst(&mut quota, SECOND, 5), 3);
    assert_eq!(quota.arrive(1_250 * MILLI), Err(750 * MILLI));
}

#[test]
fn two_counters_let_the_last_window_fade() {
    let mut quota = upstream(UpstreamKind::Counter, &["10/s"]);
    assert_eq!(burst(&mut quota, 990 * MILLI, 20), 10);
    // The estimate is 10 at the boundary, 9 a tenth later: room for one; 5 at the half: room for four more.
    assert_eq!(quota.arrive(SECOND), Err(100 * MILLI));
    assert_eq!(quota.arrive(1_100 * MILLI - 1), Err(1));
    assert_eq!(burst(&mut quota, 1_100 * MILLI, 5), 1);
    assert_eq!(burst(&mut quota, 1_500 * MILLI, 9), 4);
    // Of the five, half is left at the half of the next window; then room for seven and a half.
    assert_eq!(burst(&mut quota, 2_500 * MILLI, 20), 7);
    assert_eq!(burst(&mut quota, 9 * SECOND, 20), 10, "two windows later all is forgotten");
}

#[test]
fn two_counters_tell_a_wait_after_which_one_fits() {
    let mut quota = upstream(UpstreamKind::Counter, &["7/s"]);
    let mut now = 300 * MILLI;
    for _ in 0..100 {
        if let Err(wait) = quota.arrive(now) {
            assert!(quota.arrive(now + wait - 1).is_err());
            now += wait;
            assert_eq!(quota.arrive(now), Ok(()));
        }
    }
}

#[test]
fn bucket_gives_its_burst_then_its_rate() {
    let mut quota = upstream(UpstreamKind::Bucket, &["10/s burst 20"]);
    assert_eq!(burst(&mut quota, 0, 50), 20);
    assert_eq!(quota.arrive(0), Err(100 * MILLI));
    assert_eq!(quota.arrive(100 * MILLI - 1), Err(1));
    assert_eq!(burst(&mut quota, 100 * MILLI, 3), 1);
    assert_eq!(burst(&mut quota, 600 * MILLI, 9), 5);
    assert_eq!(burst(&mut quota, 60 * SECOND, 50), 20, "never more than the burst");
}

#[test]
fn bucket_of_a_rolling_limit_holds_max() {
    let mut quota = upstream(UpstreamKind::Bucket, &["5/s"]);
    assert_eq!(burst(&mut quota, 7, 50), 5);
    assert_eq!(burst(&mut quota, 7 + SECOND, 50), 5);
}

#[test]
fn bucket_of_seven_per_second_is_exact() {
    let mut quota = upstream(UpstreamKind::Bucket, &["7/s burst 1"]);
    let accepted = (0..10_000u64).filter(|step| quota.arrive(step * MILLI).is_ok()).count();
    // Asked each millisecond for ten seconds: every 143 ms one is ready.
    assert_eq!(accepted, 70);
}

#[test]
fn several_limits_are_charged_together_or_not_at_all() {
    let mut quota = upstream(UpstreamKind::Rolling, &["3/s", "5/10s"]);
    assert_eq!(burst(&mut quota, 0, 50), 3);
    assert_eq!(burst(&mut quota, SECOND, 50), 2, "the long window has two left");
    assert_eq!(quota.arrive(SECOND), Err(9 * SECOND));
    // The refusals by the long window took nothing from the short one.
    assert_eq!(burst(&mut quota, 10 * SECOND, 50), 3);
    assert_eq!(burst(&mut quota, 11 * SECOND, 50), 2);
}

#[test]
fn a_step_back_of_the_clock_is_no_gift() {
    for kind in KINDS {
        let mut quota = upstream(kind, &["3/s"]);
        assert_eq!(burst(&mut quota, 5 * SECOND, 50), 3, "{kind:?}");
        assert_eq!(burst(&mut quota, 4 * SECOND, 50), 0, "{kind:?}");
    }
}

#[test]
fn trip_refuses_everything_from_its_first_moment_to_its_last() {
    let mut rules = tripping();
    assert_eq!(rules.trip(), None, "it depends on the first arrival");
    assert_eq!(rules.answer(7 * SECOND, Page::Hit), Answer::Accepted);
    assert_eq!(rules.trip(), Some(11 * SECOND..13 * SECOND));
    assert_eq!(rules.answer(11 * SECOND - 1, Page::Hit), Answer::Accepted);
    for page in [Page::Hit, Page::Landed] {
        assert_eq!(rules.answer(11 * SECOND, page), tripped(2));
        assert_eq!(rules.answer(13 * SECOND - 1, page), tripped(1));
    }
    assert_eq!(rules.answer(13 * SECOND, Page::Hit), Answer::Accepted);
}

#[test]
fn trip_tells_what_is_left_of_it_rounded_up() {
    let mut rules = tripping();
    rules.answer(0, Page::Hit);
    let told =
        [(4 * SECOND, 2), (5 * SECOND - 1, 2), (5 * SECOND, 1), (5 * SECOND + 1, 1), (6 * SECOND - 1, 1)];
    for (now, seconds) in told {
        assert_eq!(rules.answer(now, Page::Hit), tripped(seconds), "at {now}");
    }
}

#[test]
fn trip_charges_nothing() {
    let mut rules = tripping();
    rules.answer(0, Page::Hit);
    for _ in 0..50 {
        assert_eq!(rules.answer(6 * SECOND - 1, Page::Hit), tripped(1));
    }
    for _ in 0..3 {
        assert_eq!(rules.answer(6 * SECOND, Page::Hit), Answer::Accepted);
    }
    assert_eq!(rules.answer(6 * SECOND, Page::Hit), refused(1), "by the quota, and at least a second");
}

#[test]
fn one_in_so_many_accepted_is_redirected() {
    let mut rules = Rules::new(upstream(UpstreamKind::Rolling, &["5/s"]), None, Some(3));
    let mut burst = |now| (0..7).map(|_| rules.answer(now, Page::Hit)).collect::<Vec<_>>();
    let (yes, elsewhere) = (Answer::Accepted, Answer::Redirected);
    assert_eq!(burst(0), [yes, yes, elsewhere, yes, yes, refused(1), refused(1)]);
    // The sixth that is accepted, whatever was refused in between.
    assert_eq!(burst(SECOND), [elsewhere, yes, yes, elsewhere, yes, refused(1), refused(1)]);
}

#[test]
fn where_a_redirect_leads_costs_one_request_and_leads_no_further() {
    let mut rules = Rules::new(upstream(UpstreamKind::Rolling, &["3/s"]), None, Some(1));
    assert_eq!(rules.answer(0, Page::Hit), Answer::Redirected);
    assert_eq!(rules.answer(0, Page::Landed), Answer::Accepted);
    assert_eq!(rules.answer(0, Page::Landed), Answer::Accepted);
    assert_eq!(rules.answer(0, Page::Landed), refused(1));
    assert_eq!(rules.answer(0, Page::Hit), refused(1));
}

#[test]
fn without_flags_nothing_trips_and_nothing_redirects() {
    let mut rules = Rules::new(upstream(UpstreamKind::Rolling, &["1000/s"]), None, None);
    assert!((0..1000).all(|now| rules.answer(now, Page::Hit) == Answer::Accepted));
    assert_eq!(rules.trip(), None);
}

#[test]
fn rolling_window_counts_amounts() {
    let mut quota = upstream(UpstreamKind::Rolling, &["1000 tokens/s"]);
    assert_eq!(quota.tokens(0, 400), Ok(()));
    assert_eq!(quota.tokens(200 * MILLI, 300), Ok(()));
    assert_eq!(quota.tokens(300 * MILLI, 301), Err(700 * MILLI), "the first must be out");
    assert_eq!(quota.tokens(300 * MILLI, 701), Err(900 * MILLI), "both must be out");
    assert_eq!(quota.tokens(300 * MILLI, 300), Ok(()), "what was refused has taken nothing");
    assert_eq!(quota.tokens(SECOND - 1, 1), Err(1));
    assert_eq!(quota.tokens(SECOND, 401), Err(200 * MILLI));
    assert_eq!(quota.tokens(SECOND, 400), Ok(()));
}

#[test]
fn fixed_windows_count_amounts() {
    let mut quota = upstream(UpstreamKind::Fixed, &["1000 tokens/s"]);
    assert_eq!(quota.tokens(900 * MILLI, 600), Ok(()));
    assert_eq!(quota.tokens(900 * MILLI, 401), Err(100 * MILLI));
    assert_eq!(quota.tokens(900 * MILLI, 400), Ok(()));
    assert_eq!(quota.tokens(SECOND - 1, 1), Err(1));
    assert_eq!(quota.tokens(SECOND, 1000), Ok(()));
}

#[test]
fn two_counters_let_amounts_fade() {
    let mut quota = upstream(UpstreamKind::Counter, &["1000 tokens/s"]);
    assert_eq!(quota.tokens(500 * MILLI, 1000), Ok(()));
    // At the half of the next window 500 are left of them.
    assert_eq!(quota.tokens(1_500 * MILLI, 501), Err(MILLI));
    assert_eq!(quota.tokens(1_500 * MILLI, 500), Ok(()));
    // 500 counted here, and 600 more have no room before 100 of these have faded.
    assert_eq!(quota.tokens(1_500 * MILLI, 600), Err(700 * MILLI));
    assert_eq!(quota.tokens(2_200 * MILLI - 1, 600), Err(1));
    assert_eq!(quota.tokens(2_200 * MILLI, 600), Ok(()));
}

#[test]
fn bucket_gives_amounts() {
    let mut quota = upstream(UpstreamKind::Bucket, &["1000 tokens/s burst 300"]);
    assert_eq!(quota.tokens(0, 300), Ok(()));
    assert_eq!(quota.tokens(0, 70), Err(70 * MILLI));
    assert_eq!(quota.tokens(70 * MILLI - 1, 70), Err(1));
    assert_eq!(quota.tokens(70 * MILLI, 70), Ok(()));
    assert_eq!(quota.tokens(70 * MILLI, 1), Err(MILLI));
    assert_eq!(quota.tokens(SECOND, 300), Ok(()), "never more than the burst");
    assert_eq!(quota.tokens(SECOND, 1), Err(MILLI));
}

#[test]
fn what_takes_nothing_of_a_limit_is_not_refused_by_it() {
    for kind in KINDS {
        let mut quota = upstream(kind, &["5/s", "1000 tokens/s"]);
        assert_eq!(quota.tokens(0, 1000), Ok(()), "{kind:?}");
        assert_eq!(burst(&mut quota, 0, 50), 4, "{kind:?}: one of five took all tokens");
        assert_eq!(quota.refused_by(0, 0), [0], "{kind:?}");
    }
}

#[test]
fn what_is_more_than_a_limit_has_is_always_refused() {
    for kind in KINDS {
        let mut quota = upstream(kind, &["1000 tokens/s"]);
        for now in 0..50 {
            assert_eq!(quota.refused_by(now * 300 * MILLI, 1001), [0], "{kind:?}");
        }
        assert_eq!(quota.tokens(20 * SECOND, 1000), Ok(()), "{kind:?}");
    }
}

#[test]
fn what_one_unit_refuses_counts_in_none() {
    for kind in KINDS {
        let mut quota = upstream(kind, &["4/s", "1000 tokens/s"]);
        assert_eq!(quota.tokens(0, 900), Ok(()), "{kind:?}");
        // Neither of the requests nor of the tokens.
        for _ in 0..50 {
            assert_eq!(quota.refused_by(0, 101), [1], "{kind:?}");
        }
        assert_eq!(quota.tokens(0, 50), Ok(()), "{kind:?}");
        assert_eq!(quota.tokens(0, 20), Ok(()), "{kind:?}");
        assert_eq!(quota.tokens(0, 30), Ok(()), "{kind:?}");
        for _ in 0..50 {
            assert_eq!(quota.refused_by(0, 0), [0], "{kind:?}");
            assert_eq!(quota.refused_by(0, 1), [0, 1], "{kind:?}");
        }
        // Two windows later the two counters have forgotten, too.
        assert_eq!(quota.tokens(2 * SECOND, 1000), Ok(()), "{kind:?}");
        assert_eq!(burst(&mut quota, 2 * SECOND, 50), 3, "{kind:?}");
    }
}

#[test]
fn limits_of_one_unit_in_two_windows_count_both() {
    let mut quota = upstream(UpstreamKind::Rolling, &["150 tokens/10s", "100 tokens/s"]);
    assert_eq!(quota.tokens(0, 100), Ok(()));
    assert_eq!(quota.refused_by(0, 60), [0, 1]);
    assert_eq!(quota.tokens(0, 60), Err(10 * SECOND), "the longer wait, whichever comes last");
    assert_eq!(quota.refused_by(SECOND, 60), [0]);
    assert_eq!(quota.tokens(SECOND, 50), Ok(()));
    assert_eq!(quota.refused_by(SECOND, 60), [0, 1]);
}

/// An upstream that never forgets, asked at random: what each kind must hold in whichever window.
#[test]
fn amounts_at_random_are_never_over() {
    let limit = "1000 tokens/s".parse().expect("a limit");
    for (kind, most) in
        [(UpstreamKind::Rolling, 1000), (UpstreamKind::Bucket, 2000), (UpstreamKind::Fixed, 2000)]
    {
        let mut quota = upstream(kind, &["1000 tokens/s"]);
        let mut random = fastrand::Rng::with_seed(7);
        let (mut now, mut seen) = (0, Vec::new());
        for _ in 0..5_000 {
            now += random.u64(..20 * MILLI);
            let amount = random.u64(1..=300);
            let accepted = quota.tokens(now, amount).is_ok();
            seen.push(Seen { at: now, amount, accepted, refused: !accepted });
        }
        let accepted: Vec<_> = seen.iter().copied().filter(|one| one.accepted).collect();
        let judged = Judged::new(&limit, &accepted);
        assert!(judged.most <= Some(most), "{kind:?}: {judged:?}");
        assert!(judged.used > 0.8, "{kind:?}: {judged:?}");
        // Each refusal was for a reason: with it a window would have been over.
        if kind == UpstreamKind::Rolling {
            for at in (0..seen.len()).filter(|at| seen[*at].refused) {
                let before = seen[..at].iter().filter(|one| one.accepted);
                let inside = before.filter(|one| seen[at].at - one.at < SECOND).map(|one| one.amount);
                assert!(inside.sum::<u64>() + seen[at].amount > 1000);
            }
        }
    }
}

fn seen(milli: Nanos, amount: u64, accepted: bool, refused: bool) -> Seen {
    Seen { at: milli * MILLI, amount, accepted, refused }
}

#[test]
fn a_limit_is_judged_by_what_it_let_through_and_what_it_refused() {
    let arrivals = [
        seen(0, 300, true, false),
        seen(400, 500, true, false),
        // Too many requests, but these tokens were there: not among the most, and not used.
        seen(500, 100, false, false),
        seen(900, 250, false, true),
        seen(1_000, 300, true, false),
        seen(2_000, 0, true, false),
    ];
    let judged = Judged::new(&"1000 tokens/s".parse().expect("a limit"), &arrivals);
    let expected = Judged {
        limit: "1000 tokens/s".into(),
        unit: "tokens".into(),
        max: 1000,
        most: Some(1050),
        over: 50,
        refused: 1,
        used: 1100.0 / 2000.0,
    };
    assert_eq!(judged, expected);
}

#[test]
fn a_window_holds_nothing_that_came_a_whole_window_before() {
    let amounts = [(0, 5), (SECOND - 1, 1), (SECOND, 3), (2 * SECOND - 1, 2)];
    assert_eq!(most_within(amounts.into_iter(), SECOND), 6);
    assert_eq!(most_within(amounts.into_iter(), SECOND + 1), 9);
    assert_eq!(most_within(std::iter::empty(), SECOND), 0);
}

#[test]
fn of_a_limit_that_was_set_windows_count_that_begin_a_window_later() {
    let limit = "4 tokens/s".parse().expect("a limit");
    let arrivals = [0, 999, 1_000, 1_999, 2_000, 2_001, 2_500, 3_000].map(|milli: Nanos| (milli * MILLI, 2));
    let changed = change::Changed::new(&limit, 1_000 * MILLI, &arrivals);
    let expected =
        change::Changed { limit: "4 tokens/s".into(), max: 4, most_after: 6, used_after: 8.0 / 4.0 };
    assert_eq!(changed, expected);
    assert_eq!(change::Changed::new(&limit, 3_000 * MILLI, &arrivals).most_after, 0);
}

#[test]
fn of_a_short_run_a_whole_window_counts() {
    let limit = "10/s".parse().expect("a limit");
    let judged = Judged::new(&limit, &[seen(0, 1, true, false), seen(10, 4, true, false)]);
    assert_eq!(judged.used, 0.5);
    assert_eq!((judged.most, judged.over, judged.refused), (Some(5), 0, 0));
    assert_eq!(Judged::new(&limit, &[]).used, 0.0);
}

fn guess(granted: Nanos, sent: Nanos, ended: Option<Nanos>, booked: u64, real: u64) -> Guess {
    let ended = ended.map(|milli| milli * MILLI);
    Guess { granted: granted * MILLI, sent: sent * MILLI, ended, booked, real }
}

#[test]
fn unsettled_is_the_largest_sum_of_what_is_in_flight_together() {
    let guesses = [
        // It is sent when the third ends, which is no moment together.
        guess(1_090, 1_100, Some(1_300), 100, 145),
        // It takes less than was booked: that makes up for others while it flies, and only then.
        guess(1_060, 1_080, Some(1_090), 100, 40),
        guess(1_000, 1_000, Some(1_100), 100, 150),
        guess(1_050, 1_050, Some(1_200), 100, 130),
    ];
    let unsettled = Unsettled::new("tokens", &guesses);
    assert_eq!((unsettled.in_flight, unsettled.booked, unsettled.real), (80, 400, 465));
}

#[test]
fn what_was_too_low_is_unsettled_from_its_booking_until_the_store_knows() {
    let bound = |guesses: &[Guess]| Unsettled::new("tokens", guesses).bound;
    let (first, later) = (guess(900, 900, Some(1_000), 100, 110), |granted| {
        guess(granted, granted, Some(granted + 1), 100, 105)
    });
    assert_eq!(bound(&[first, later(1_099)]), 15);
    assert_eq!(bound(&[first, later(1_100)]), 10);
    // What was too high makes up for it only from when it is sent until it has ended.
    let high = |sent, ended| guess(800, sent, Some(ended), 100, 50);
    assert_eq!(bound(&[first, high(800, 1_050)]), 0);
    assert_eq!(bound(&[first, high(851, 1_050)]), 10);
    assert_eq!(bound(&[first, high(800, 1_049)]), 10);
}

#[test]
fn what_never_ends_stays_unsettled() {
    let guesses = [guess(0, 0, None, 10, 20), guess(5_000, 5_000, Some(5_001), 10, 30)];
    assert_eq!(Unsettled::new("tokens", &guesses).in_flight, 30);
    let high = [guess(0, 0, None, 20, 10)];
    assert_eq!(Unsettled::new("tokens", &high).bound, 0);
}

#[test]
fn calls_in_flight_end_and_make_room() {
    let mut flights = Flights::new(2);
    for now in [0, 0] {
        assert!(flights.arrive(now));
        flights.begin();
    }
    assert!(!flights.arrive(SECOND - 1), "both are in flight");
    flights.end(SECOND);
    assert!(flights.arrive(SECOND));
    flights.begin();
    assert!(!flights.arrive(SECOND));
    flights.end(2 * SECOND);
    flights.end(2 * SECOND);
    assert!(flights.arrive(4 * SECOND), "asked for and not taken");
    // Two of two for two seconds, none for two more.
    assert_eq!(flights.outcome(), InFlight { max: 2, most: 2, refused: 2, used: 0.5 });
}

#[test]
fn places_and_quota_refuse_for_themselves() {
    let quota = upstream(UpstreamKind::Rolling, &["3/s"]);
    let mut rules = rules::Rules::new(quota.0, Some(2), None, None);
    let hit = |now: Nanos, rules: &mut rules::Rules| rules.answer(now, Page::Hit, &Price::default());
    assert_eq!(hit(0, &mut rules), Answer::Accepted);
    assert_eq!(hit(0, &mut rules), Answer::Accepted);
    for _ in 0..50 {
        assert_eq!(hit(1, &mut rules), refused_by(1, None), "by the places, which the quota does not count");
    }
    rules.end(2);
    assert_eq!(hit(2, &mut rules), Answer::Accepted, "the third");
    rules.end(3);
    rules.end(3);
    for _ in 0..50 {
        assert_eq!(hit(4, &mut rules), refused(1), "by the quota, which takes no place");
    }
    assert_eq!(hit(SECOND, &mut rules), Answer::Accepted);
    assert_eq!(hit(SECOND, &mut rules), Answer::Accepted);
    let calls = rules.in_flight().expect("it counts them");
    assert_eq!((calls.most, calls.refused), (2, 50));
}

fn serve(limits: &[&str], places: Option<usize>, call_time: Duration) -> Upstream {
    let quota = upstream(UpstreamKind::Rolling, limits);
    let rules = rules::Rules::new(quota.0, places, None, None);
    Upstream::start(rules, ["tokens"].into_iter(), call_time).expect("a free port")
}

async fn get(http: &reqwest::Client, upstream: &Upstream, tokens: u64) -> Outcome<(u16, Option<String>)> {
    let request =
        http.get(format!("{}/hit", upstream.url)).header("x-pod", 3).header("x-cost-tokens", tokens);
    let response = request.send().await?;
    let told = response.headers().get("x-cost-tokens").and_then(|told| Some(told.to_str().ok()?.to_owned()));
    let status = response.status().as_u16();
    response.bytes().await?;
    Ok((status, told))
}

/// The upstream has a runtime of its own, which is not dropped inside another.
fn ask<T>(upstream: &Upstream, questions: impl AsyncFnOnce(&Upstream, reqwest::Client) -> T) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(questions(upstream, reqwest::Client::new())))
}

#[test]
fn over_http_amounts_are_read_counted_and_told() -> Outcome<()> {
    let upstream = serve(&["100/min", "1000 tokens/min"], None, Duration::ZERO);
    ask(&upstream, amounts_are_told)?
}

async fn amounts_are_told(upstream: &Upstream, http: reqwest::Client) -> Outcome<()> {
    assert_eq!(get(&http, upstream, 700).await?, (200, Some("700".into())));
    assert_eq!(get(&http, upstream, 301).await?, (429, None));
    assert_eq!(get(&http, upstream, 300).await?, (200, Some("300".into())));
    assert_eq!(get(&http, upstream, 0).await?.0, 200);
    assert_eq!(upstream.counts(), (3, 1));
    let log = upstream.log();
    let amounts: Vec<_> = log.arrivals.iter().map(|one| (one.price.of("tokens"), one.accepted)).collect();
    assert_eq!(amounts, [(700, true), (301, false), (300, true), (0, true)]);
    let refused = &log.arrivals[1];
    assert_eq!((refused.by.has(0), refused.by.has(1), refused.pod), (false, true, 3));
    assert!(log.arrivals.iter().all(|one| one.page == Page::Hit && one.price.of("requests") == 1));
    assert_eq!((log.redirects, log.trip, log.in_flight), (0, None, None));
    Ok(())
}

#[test]
fn over_http_a_place_is_held_to_the_end_of_the_answer() -> Outcome<()> {
    let upstream = serve(&["100/min", "1000 tokens/min"], Some(3), Duration::from_millis(300));
    ask(&upstream, places_are_held)?
}

async fn places_are_held(upstream: &Upstream, http: reqwest::Client) -> Outcome<()> {
    let statuses = |answers: Vec<Outcome<(u16, _)>>| {
        let mut statuses: Vec<_> = answers.into_iter().map(|answer| answer.map_or(0, |it| it.0)).collect();
        statuses.sort_unstable();
        statuses
    };
    for _ in 0..2 {
        let answers = join_all((0..5).map(|_| get(&http, upstream, 1))).await;
        assert_eq!(statuses(answers), [200, 200, 200, 429, 429]);
        // All have read their answers to the end: all places are free again.
    }
    // Who goes away in the middle leaves its place as well.
    let gone = tokio::time::timeout(Duration::from_millis(100), get(&http, upstream, 1)).await;
    assert!(gone.is_err());
    let mut freed = false;
    for _ in 0..20 {
        let answers = join_all((0..3).map(|_| get(&http, upstream, 1))).await;
        freed |= statuses(answers) == [200, 200, 200];
        if freed {
            break;
        }
    }
    assert!(freed);
    let calls = upstream.log();
    let in_flight = calls.in_flight.expect("it counts them");
    assert_eq!((in_flight.max, in_flight.most), (3, 3));
    assert!(in_flight.used > 0.2 && in_flight.used <= 1.0, "{in_flight:?}");
    let accepted: Vec<_> = calls.arrivals.iter().filter(|one| one.accepted).map(|one| one.at).collect();
    assert!(accepted[3] - accepted[0] >= nanos(Duration::from_millis(300)), "each took its time");
    Ok(())
}

const TRIP: Range<Nanos> = 4 * SECOND..6 * SECOND;

fn sent(milli: Nanos, refused: Option<Nanos>) -> Attempt {
    Attempt { sent: milli * MILLI, refused: refused.map(|milli| milli * MILLI) }
}

#[test]
fn a_fleet_that_stops_is_timed_from_the_first_refusal_it_saw() {
    // The quota's refusal at 3,990 is none of the trip's; what was sent before the first answer could not know.
    let attempts = [
        sent(3_980, Some(3_990)),
        sent(3_999, Some(4_002)),
        sent(4_000, Some(4_001)),
        sent(4_061, Some(4_062)),
        sent(4_062, Some(6_010)),
        sent(6_000, None),
    ];
    let arrivals = [(4_000 * MILLI, false), (6_005 * MILLI, true), (6_205 * MILLI - 1, false)];
    let late = [(6_005 * MILLI + RETURN, true)];
    let seen = Aftermath::new(TRIP, &attempts, &[&arrivals[..], &late[..]].concat(), 100.0);
    let expected = Aftermath {
        stop_ms: Some(61.0),
        during: 1,
        refused_after: 1,
        first_200_ms: 2,
        paced_200_ms: 20.0,
        resumed_ms: Some(5.0),
    };
    assert_eq!(seen, expected);
}

#[test]
fn a_fleet_that_never_comes_back_says_so() {
    let silent = Aftermath::new(TRIP, &[], &[(0, true)], 5.0);
    assert_eq!((silent.stop_ms, silent.resumed_ms), (None, None));
    assert_eq!((silent.during, silent.refused_after, silent.first_200_ms), (0, 0, 0));
    let at_once = Aftermath::new(TRIP, &[sent(4_000, Some(4_005))], &[], 5.0);
    assert_eq!((at_once.stop_ms, at_once.during), (Some(0.0), 0));
}
