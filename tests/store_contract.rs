//! What every store must do, whatever it is: one suite, run against each.

#[cfg(feature = "redis")]
#[path = "support/redis.rs"]
mod redis_server;

use tollgate::{
    Limit,
    ledger::{Answer, Booked, Call, Costs, Micros, SECOND, Want},
    store::{Bell, MemoryStore, Quota, Store},
};

/// Machines that run tests are busy.
#[cfg(feature = "redis")]
const PATIENT: std::time::Duration = std::time::Duration::from_secs(10);

fn quota(provider: &str, limits: &[&str]) -> Quota {
    Quota::new(provider, limits.iter().map(|text| text.parse::<Limit>().expect("a limit")))
}

/// Of member 1, `count` permits of cost 1.
fn call(number: i64, count: u32, budget: Option<Micros>) -> Call {
    // Of three limits at most.
    let wants = vec![Want { costs: Costs::same(1, 3), class: 1, budget, count }];
    Call { member: 1, number, horizon: 50_000, wants, ..Call::default() }
}

async fn book(store: &dyn Store, quota: &Quota, call: &Call) -> Answer {
    store.book(quota, call).await.expect("an answer").expect("the limits are known")
}

/// The permits of an answer, and whether the rest was refused.
fn granted(answer: &Answer) -> usize {
    answer.outcomes.iter().map(|outcome| outcome.slots.len()).sum()
}

/// Under several limits all is charged or nothing.
async fn books_all_or_nothing(store: &dyn Store) {
    let both = quota("all", &["5/min unpaced", "2/h unpaced"]);
    let first = book(store, &both, &call(1, 5, Some(0))).await;
    assert_eq!(granted(&first), 2);
    assert_eq!(first.outcomes[0].refused.expect("three are refused").limit, Some(1), "by the second limit");
    assert_eq!(first.left, [3, 0], "what the second limit refused the first was not charged for");
    let again = book(store, &both, &call(2, 1, Some(0))).await;
    assert_eq!((granted(&again), again.left), (0, vec![3, 0]));
    // Alone the first has room.
    let alone = quota("all", &["5/min unpaced"]);
    assert_eq!(granted(&book(store, &alone, &call(3, 5, Some(0))).await), 3);
}

/// But a pause holds for it.
async fn permits_what_counts_in_no_limit(store: &dyn Store) {
    let quota = quota("none", &[]);
    let call = |number, budget| Call {
        wants: vec![Want { costs: Costs::same(1, 0), class: 1, budget, count: 3 }],
        ..call(number, 0, None)
    };
    let free = book(store, &quota, &call(1, Some(0))).await;
    assert_eq!((granted(&free), free.left), (3, vec![]));
    assert_eq!(free.next.expect("it asked").limit, None);
    store.pause(&quota.provider, None, 60 * SECOND).await.expect("a pause");
    let refused = book(store, &quota, &call(2, Some(0))).await;
    assert_eq!(granted(&refused), 0);
    let outcome = refused.outcomes[0].refused.expect("paused");
    assert_eq!((outcome.at, outcome.limit), (refused.pause, None));
    let waits = book(store, &quota, &call(3, None)).await;
    assert_eq!(waits.outcomes[0].slots, [waits.pause], "the others are asked for when it comes to that");
}

async fn never_books_more_than_the_limit(store: &dyn Store) {
    for (provider, limit, most) in [
        ("never rolling", "20/min", 20),
        ("never unpaced", "20/min unpaced", 20),
        ("never bucket", "60/h burst 20", 19),
        ("never aligned", "20/366day aligned", 20),
    ] {
        let quota = quota(provider, &[limit]);
        let mut sum = 0;
        for number in 1..=12 {
            // Eight members, so that none gets the cold burst alone.
            let call = Call { member: number as u64 % 8, ..call(number, 7, Some(0)) };
            sum += granted(&book(store, &quota, &call).await);
        }
        assert_eq!(sum, most, "{limit}");
    }
}

async fn a_repeated_number_gets_the_same_answer(store: &dyn Store) {
    let quota = quota("repeated", &["10/min unpaced"]);
    let call = call(7, 4, Some(0));
    let first = book(store, &quota, &call).await;
    let second = book(store, &quota, &call).await;
    assert_eq!(Answer { now: first.now, ..second }, first);
    assert_eq!(store.peek(&quota).await.expect("a look").limits[0].0, 6, "booked once");

    // A goodbye that comes twice gives back once.
    let permit = Booked::new(first.outcomes[0].slots[0], Costs::same(1, 2));
    let goodbye = Call {
        member: 1,
        number: 8,
        generation: Some(first.generation),
        goodbye: true,
        returns: vec![permit],
        ..Call::default()
    };
    book(store, &quota, &goodbye).await;
    book(store, &quota, &goodbye).await;
    assert_eq!(store.peek(&quota).await.expect("a look").limits[0].0, 7);
}

async fn a_refusal_leaves_no_trace(store: &dyn Store) {
    let quota = quota("refusal", &["3/min"]);
    book(store, &quota, &call(1, 3, Some(0))).await;
    let before = store.peek(&quota).await.expect("a look").limits;
    for number in 2..6 {
        let refused = book(store, &quota, &call(number, 3, Some(0))).await;
        let why = refused.outcomes[0].refused.expect("refused");
        assert_eq!((granted(&refused), why.limit), (0, Some(0)));
        assert!(why.at > refused.now, "later is later than now");
    }
    assert_eq!(store.peek(&quota).await.expect("a look").limits, before);
}

async fn a_pause_only_moves_forward(store: &dyn Store) {
    let quota = quota("pause", &["10/min"]);
    let long = store.pause(&quota.provider, None, 60 * SECOND).await.expect("a pause");
    assert_eq!(long, 60 * SECOND);
    let short = store.pause(&quota.provider, None, SECOND).await.expect("a pause");
    assert!(short > SECOND && short <= long, "{short} left");
    let answer = book(store, &quota, &call(1, 1, Some(SECOND))).await;
    let why = answer.outcomes[0].refused.expect("refused");
    assert_eq!((why.at, why.limit), (answer.pause, None), "by the pause, until its end");
    let waits = book(store, &quota, &call(2, 1, None)).await;
    assert_eq!(waits.outcomes[0].slots, [answer.pause]);
}

/// Once for each pause that moved, for those who listen to this provider.
async fn a_bell_counts_the_pauses_that_moved(store: &dyn Store) {
    let (quota, other) = (quota("bell", &["10/min"]), quota("no bell", &["10/min"]));
    let Some(mut bell) = store.listen(&quota, 1) else { return };
    let other_gate = store.listen(&quota, 2).expect("it has bells");
    let silent = store.listen(&other, 1).expect("it has bells");
    // Until it is heard at all: that may take a moment and must not hold up anybody.
    let mut time = 60 * SECOND;
    for _ in 0..500 {
        if bell.borrow().pauses > 0 {
            break;
        }
        time += SECOND;
        store.pause(&quota.provider, None, time).await.expect("a pause");
        _ = tokio::time::timeout(std::time::Duration::from_millis(20), bell.changed()).await;
    }
    // What still is on its way has arrived when the last one has.
    let settled = |mut bell: Bell| async move {
        while tokio::time::timeout(std::time::Duration::from_millis(500), bell.changed()).await.is_ok() {}
        bell.borrow().pauses
    };
    let before = settled(bell.clone()).await;
    assert!(before > 0, "it never rings");
    store.pause(&quota.provider, None, SECOND).await.expect("a shorter pause");
    store.pause(&quota.provider, None, 2 * time).await.expect("a longer pause");
    bell.wait_for(|rung| rung.pauses > before).await.expect("the store lives");
    assert_eq!(settled(bell.clone()).await, before + 1);
    assert_eq!(other_gate.borrow().pauses, before + 1, "the same for all");
    assert_eq!(silent.borrow().pauses, 0);
}

async fn gives_back_what_is_returned(store: &dyn Store) {
    let quota = quota("give", &["4/min unpaced"]);
    let first = book(store, &quota, &call(1, 4, Some(0))).await;
    let permits = |count: usize| {
        let slots = first.outcomes[0].slots.iter().take(count);
        slots.map(|&slot| Booked::new(slot, Costs::same(1, 2))).collect::<Vec<_>>()
    };
    let returning =
        |number, generation| Call { member: 1, number, generation, returns: permits(2), ..Call::default() };
    let unknown = book(store, &quota, &returning(2, None)).await;
    assert_eq!(unknown.left, [0], "booked in another generation");
    let known = book(store, &quota, &returning(3, Some(first.generation))).await;
    assert_eq!(known.left, [2]);
    assert_eq!(granted(&book(store, &quota, &call(4, 4, Some(0))).await), 2);
}

async fn a_confirmed_slot_ahead_is_kept(store: &dyn Store) {
    let quota = quota("confirm", &["2/min unpaced"]);
    let first = book(store, &quota, &call(1, 3, None)).await;
    let far = book(store, &quota, &call(2, 1, None)).await.outcomes[0].slots[0];
    assert!(far >= first.now + 60 * SECOND);
    let confirm = Call {
        member: 1,
        number: 3,
        generation: Some(first.generation),
        confirms: vec![Booked::new(far, Costs::same(1, 2))],
        ..Call::default()
    };
    assert_eq!(book(store, &quota, &confirm).await.confirmed, [Some(far)]);
}

/// Who left is not counted among those who share.
async fn a_goodbye_leaves_the_share_to_the_others(store: &dyn Store) {
    let quota = quota("goodbye", &["100/min unpaced"]);
    let of = |member, call: Call| Call { member, more: true, ..call };
    book(store, &quota, &of(2, call(1, 1, Some(0)))).await;
    let shared = book(store, &quota, &of(1, call(1, 99, None))).await;
    assert_eq!(granted(&shared), 50, "of two");
    let goodbye = Call { member: 2, number: 2, goodbye: true, ..Call::default() };
    book(store, &quota, &goodbye).await;
    let alone = book(store, &quota, &of(1, call(2, 49, Some(0)))).await;
    assert_eq!(granted(&alone), 49);
}

async fn a_peek_changes_nothing(store: &dyn Store) {
    let quota = quota("peek", &["5/min unpaced", "10/h burst 5", "5/366day aligned"]);
    let fresh = store.peek(&quota).await.expect("a look");
    assert_eq!(fresh.limits.iter().map(|limit| limit.0).collect::<Vec<_>>(), [5, 4, 5]);
    assert!(fresh.limits.iter().all(|limit| limit.1 == fresh.now));
    book(store, &quota, &call(1, 2, Some(0))).await;
    for _ in 0..3 {
        let look = store.peek(&quota).await.expect("a look");
        assert_eq!(look.limits.iter().map(|limit| limit.0).collect::<Vec<_>>(), [3, 2, 3]);
    }
    assert_eq!(granted(&book(store, &quota, &call(2, 9, Some(0))).await), 2, "the bucket is the smallest");
}

/// Providers share nothing.
async fn providers_are_apart(store: &dyn Store) {
    for provider in ["apart a", "apart b", "apart:{c}"] {
        let quota = quota(provider, &["1/min"]);
        assert_eq!(granted(&book(store, &quota, &call(1, 1, Some(0))).await), 1, "{provider}");
    }
}

async fn keeps_the_contract(store: &dyn Store) {
    books_all_or_nothing(store).await;
    permits_what_counts_in_no_limit(store).await;
    never_books_more_than_the_limit(store).await;
    a_repeated_number_gets_the_same_answer(store).await;
    a_refusal_leaves_no_trace(store).await;
    a_pause_only_moves_forward(store).await;
    a_bell_counts_the_pauses_that_moved(store).await;
    gives_back_what_is_returned(store).await;
    a_confirmed_slot_ahead_is_kept(store).await;
    a_goodbye_leaves_the_share_to_the_others(store).await;
    a_peek_changes_nothing(store).await;
    providers_are_apart(store).await;
}

#[tokio::test]
async fn in_memory() {
    keeps_the_contract(&MemoryStore::new()).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn in_redis() {
    let redis = redis_server::PrivateRedis::start();
    let store = tollgate::RedisStore::new(&redis.url()).expect("a URL").timeout(PATIENT);
    keeps_the_contract(&store).await;
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn in_redis_on_a_given_connection() {
    let redis = redis_server::PrivateRedis::start();
    let client = redis::Client::open(redis.url()).expect("a URL");
    let multiplexed = client.get_multiplexed_async_connection().await.expect("a connection");
    keeps_the_contract(&tollgate::RedisStore::from_connection(multiplexed).prefix("one").timeout(PATIENT))
        .await;
    let managed = client.get_connection_manager().await.expect("a connection");
    keeps_the_contract(&tollgate::RedisStore::from_connection(managed).prefix("two").timeout(PATIENT)).await;
    let multiplexed = client.get_multiplexed_async_connection().await.expect("a connection");
    let store = tollgate::RedisStore::from_connection(multiplexed).bell(&redis.url()).expect("a URL");
    keeps_the_contract(&store.prefix("three").timeout(PATIENT)).await;
}
