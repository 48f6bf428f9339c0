//! What reading an answer costs: against a walk over its headers, which looks at nothing, and against a look at each,
//! which takes the value as text.
//!
//! ```text
//! cargo bench --bench headers              # all
//! cargo bench --bench headers -- github    # one dialect
//! ```
//!
//! Bars: at most twice such a pass if no header is about limits, ten times if some are. A machine that does other
//! things beside it shows more.
#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    hint::black_box,
    time::{Duration, Instant, SystemTime},
};

use tollgate::{
    Dialect,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    signal::read,
};

const ROUNDS: usize = 25;
const TIMES: u32 = 20_000;

/// An answer such as a large API gives, without its limits.
const PLAIN: [(&str, &str); 16] = [
    ("date", "Mon, 30 Nov 2026 12:00:00 GMT"),
    ("content-type", "application/json; charset=utf-8"),
    ("content-length", "5120"),
    ("connection", "keep-alive"),
    ("cache-control", "private, max-age=60, s-maxage=60"),
    ("vary", "Accept, Authorization, Cookie, X-GitHub-OTP"),
    ("etag", "W/\"644b5b0155e6404a9cc4bd9d8b1ae730\""),
    ("server", "nginx"),
    ("strict-transport-security", "max-age=31536000; includeSubdomains; preload"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "deny"),
    ("x-xss-protection", "0"),
    ("x-request-id", "0A1B:2C3D:4E5F60:718293:6A7B8C9D"),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("content-security-policy", "default-src 'none'"),
    ("access-control-allow-origin", "*"),
];

fn headers(limits: &[(&'static str, &'static str)]) -> HeaderMap {
    let all = PLAIN.iter().chain(limits);
    all.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
}

fn main() {
    println!("{ROUNDS} rounds of {TIMES} answers with {} headers and those of their limits\n", PLAIN.len());
    println!(
        "{:<14} {:<20} {:>7} {:>7} {:>7}   per walk  per look",
        "dialect", "headers of limits", "walk", "look", "read"
    );
    for name in ["generic", "github", "openai", "anthropic", "ietf", "unknown"] {
        compare(name, "none", 200, &[]);
    }
    compare("generic", "retry-after", 429, &[("retry-after", "30")]);
    let github = [
        ("x-ratelimit-limit", "5000"),
        ("x-ratelimit-remaining", "4999"),
        ("x-ratelimit-used", "1"),
        ("x-ratelimit-reset", "1796041234"),
        ("x-ratelimit-resource", "core"),
    ];
    compare("github", "five", 200, &github);
    compare("unknown", "five", 200, &github);
    let openai = [
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-limit-tokens", "150000"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-remaining-tokens", "149984"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    compare("openai", "six", 200, &openai);
    compare("slack", "retry-after", 429, &[("retry-after", "30")]);
    let shopify = [("x-shopify-shop-api-call-limit", "32/40")];
    compare("shopify_rest", "one", 200, &shopify);
    let ietf = [
        ("ratelimit", "\"burst\";r=40;t=2, \"daily\";r=500;t=40000"),
        ("ratelimit-policy", "\"burst\";q=100;w=60, \"daily\";q=1000;w=86400"),
    ];
    compare("ietf", "two, structured", 200, &ietf);
}

/// Both in turns, so that what else the machine does hits both.
fn compare(name: &str, what: &str, status: u16, limits: &[(&'static str, &'static str)]) {
    if std::env::args().skip(1).any(|only| !only.starts_with('-') && only != name) {
        return;
    }
    let dialect = Dialect::named(name).expect("a preset");
    let status = StatusCode::from_u16(status).expect("a status");
    let (headers, now) = (headers(limits), SystemTime::now());
    let (mut walks, mut looks, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        walks.push(time(|| walk(black_box(&headers))));
        looks.push(time(|| look(black_box(&headers))));
        reads.push(time(|| {
            black_box(read(status, black_box(&headers), None, now, &dialect));
        }));
    }
    let [walk, look, read] = [walks, looks, reads].map(median);
    let nanos = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(TIMES);
    let ratio = |pass| read.div_duration_f64(pass);
    println!(
        "{name:<14} {what:<20} {:>4.0} ns {:>4.0} ns {:>4.0} ns {:>10.2} {:>9.2}",
        nanos(walk),
        nanos(look),
        nanos(read),
        ratio(walk),
        ratio(look)
    );
}

fn walk(headers: &HeaderMap) {
    for (name, value) in headers {
        black_box((name.as_str(), value.as_bytes()));
    }
}

fn look(headers: &HeaderMap) {
    for (name, value) in headers {
        black_box((name.as_str(), value.to_str().ok()));
    }
}

fn time(mut run: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..TIMES).for_each(|_| run());
    start.elapsed()
}

/// What the machine does besides hits single rounds, not the one in the middle.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
