//! Answers that were stored somewhere: their `Date` is old, and so are their counters.

use super::{hear, ms};

const FRESH: (&str, &str) = ("date", "Mon, 30 Nov 2026 11:50:00 GMT");

#[test]
fn the_date_of_a_stored_answer_is_the_base() {
    let retry = ("retry-after", "Mon, 30 Nov 2026 12:00:30 GMT");
    // By the clock of who answers: ten minutes behind ours.
    assert_eq!(hear("generic", 429, &[FRESH, retry]).wait, Some(ms(630_000)));
    for (name, value, cached) in [
        ("age", "600", true),
        ("age", "0", false),
        ("age", "old", false),
        ("x-from-cache", "1", true),
        ("x-from-cache", "", false),
        ("x-cache", "HIT from edge", true),
        ("x-cache", "Hit from cloudfront", true),
        ("x-cache", "MISS", false),
        ("cf-cache-status", "HIT", true),
        ("cf-cache-status", "DYNAMIC", false),
    ] {
        let wait = if cached { 30_000 } else { 630_000 };
        assert_eq!(
            hear("generic", 429, &[FRESH, retry, (name, value)]).wait,
            Some(ms(wait)),
            "{name}: {value}"
        );
    }
}

#[test]
fn a_stored_answer_blocks_everybody_or_tells_old_counters() {
    let fields =
        [("x-ratelimit-limit", "60"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1796041234")];
    let stored = [&fields[..], &[("x-from-cache", "1")]].concat();
    assert_eq!(hear("github", 200, &fields).wait, Some(ms(1_234_000)));
    let signal = hear("github", 200, &stored);
    assert_eq!((signal.wait, signal.windows.len()), (None, 0));
    // A refusal is heard, wherever it comes from.
    assert_eq!(hear("github", 403, &stored).wait, Some(ms(1_234_000)));
}
