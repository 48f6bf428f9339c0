//! The value of a key may be a secret: it must stand nowhere but in the request itself, not in Redis, not in a log,
//! not in what is printed.

#![cfg(all(feature = "middleware", feature = "redis"))]

#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/scopes.rs"]
mod scopes;
#[path = "support/layers.rs"]
mod stack;
#[path = "support/mod.rs"]
mod support;
#[path = "support/upstream.rs"]
mod upstream;

use std::{
    collections::BTreeSet,
    fmt::Debug,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use redis_server::{PrivateRedis, free_port};
use scopes::{limit, memory, ms, on, rest, scoped};
use tollgate::{
    Call, Limiter, Provider, RedisStore, RequestBuilderExt, Scope, Toll, Tollgate,
    reqwest_middleware::RequestBuilder, store::Store,
};
use upstream::{Canned, Log, after, fine};

const TOKEN: &str = "sk-live-4eC39HqLyjWDarjtT1zdp7dc";
const TENANT: &str = "tenant-geheim-4711";
const PEPPER: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
/// In the path, in the place of a name in braces.
const INDEX: &str = "patients-of-ward-9";

fn provider() -> Provider {
    let searches = Scope::route("POST /v1/search/{index}");
    scoped(&[(Scope::all().each("authorization"), "9/h"), (searches.each("tenant"), "5 tokens/h")])
        .pause_in(Scope::all().each("authorization"))
        .secret(PEPPER)
        .key("tenant", |request| Some(request.headers().get("x-tenant")?.to_str().ok()?.to_owned()))
        .estimate("tokens", |_| 1)
        .settle("tokens", |_| Some(2))
}

/// Fails if a value is readable in any of these ways.
fn must_not_tell(text: &str, what: &str) {
    for value in [TOKEN, &TOKEN[8..], TENANT, "geheim", PEPPER, INDEX] {
        let bytes = value.as_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let listed = bytes.iter().map(u8::to_string).collect::<Vec<_>>();
        for form in [value.to_owned(), hex.to_uppercase(), hex, listed.join(", "), listed.join(",\n    ")] {
            assert!(!text.to_lowercase().contains(&form.to_lowercase()), "{what} tells {form:?}:\n{text}");
        }
    }
}

fn searches(canned: &Canned, tollgate: &Tollgate) -> impl Fn() -> RequestBuilder + use<> {
    let http = canned.behind(tollgate);
    let url = format!("http://acme.test/v1/search/{INDEX}");
    move || http.post(&url).header("Authorization", format!("Bearer {TOKEN}")).header("X-Tenant", TENANT)
}

/// All that a server is told, keys, values and arguments alike.
struct Monitor(BufReader<TcpStream>);

impl Monitor {
    fn start(redis: &PrivateRedis) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream.write_all(b"MONITOR\r\n").expect("sent");
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).expect("an answer");
        assert_eq!(line, "+OK\r\n");
        Self(lines)
    }

    /// What it was told until now.
    fn text(mut self, redis: &PrivateRedis) -> String {
        redis::cmd("ECHO").arg("that is all").exec(&mut redis.look()).expect("ECHO");
        let mut text = String::new();
        while !text.contains("that is all") {
            assert!(self.0.read_line(&mut text).expect("more lines") > 0);
        }
        text
    }
}

/// The values that are told in the place of a key's.
fn told_of(text: &str, key: &str) -> BTreeSet<String> {
    let name = format!("{key}=");
    let digit = |letter: &char| letter.is_ascii_hexdigit() || *letter == '-';
    text.split(&name).skip(1).map(|rest| rest.chars().take_while(digit).collect()).collect()
}

#[tokio::test]
async fn redis_is_told() {
    let redis = PrivateRedis::start();
    let monitor = Monitor::start(&redis);
    let store = Arc::new(RedisStore::new(&redis.url()).expect("a URL").timeout(ms(10_000)));
    let (tollgate, limiter) = on(&store, provider());
    let search = searches(&Canned::new(after(1, "1")), &tollgate);
    // Sent twice, and settled: two tokens each. Then refused, by a call that is answered at once and by one that waits.
    let response = search().send().await.expect("accepted");
    assert_eq!(Toll::of(&response).expect("a toll").attempts(), 2);
    response.bytes().await.expect("a body");
    search().cost("tokens", 2).send().await.expect("accepted");
    search().cost("tokens", 3).or_reject().send().await.expect_err("five tokens in all");
    search().cost("tokens", 3).wait_at_most(ms(100)).send().await.expect_err("five tokens in all");
    let by_hand = || limiter.acquire().key("authorization", format!("Bearer {TOKEN}")).key("tenant", TENANT);
    by_hand().await.expect("there is room").give_back();
    search().key("tenant", "").key("authorization", TOKEN).send().await.expect("accepted");
    limiter.pause(ms(1)).await.expect("stored");
    limiter.peek().await.expect("a look");
    tollgate.shutdown().await;

    let text = monitor.text(&redis);
    must_not_tell(&text, "Redis");
    let all: Vec<_> = ["authorization", "tenant"].map(|key| told_of(&text, key)).into();
    let [tokens, tenants] = &all[..] else { unreachable!() };
    let hashes = |told: &BTreeSet<String>| told.iter().filter(|value| value.len() == 32).count();
    assert_eq!((hashes(tokens), tokens.contains("-"), tokens.len()), (2, true, 3), "{tokens:?}");
    assert_eq!((hashes(tenants), tenants.len()), (2, 2), "{tenants:?}");
    assert!(tokens.is_disjoint(tenants));
}

fn shown(texts: &mut Vec<String>, what: &impl Debug) {
    texts.extend([format!("{what:?}"), format!("{what:#?}")]);
}

/// Each cause of it as well.
fn told(texts: &mut Vec<String>, error: &(dyn std::error::Error + 'static)) {
    for error in std::iter::successors(Some(error), |error| error.source()) {
        texts.extend([error.to_string(), format!("{error:?}"), format!("{error:#?}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_printed_or_logged_tells() {
    let (log, _guard) = Log::capture();
    let mut texts = Vec::new();
    let call = Call::new().key("tenant", TENANT).key("authorization", TOKEN).cost("tokens", 1);
    shown(&mut texts, &call);
    shown(&mut texts, &provider());

    let (store, tollgate, limiter) = memory(provider().warn_after(ms(1)));
    let search = searches(&Canned::new(after(1, "1")), &tollgate);
    let response = search().send().await.expect("accepted");
    shown(&mut texts, Toll::of(&response).expect("a toll"));
    shown(&mut texts, &response);
    let by_hand =
        || limiter.acquire().key("authorization", format!("Bearer {TOKEN}")).route("POST /v1/search/{index}");
    shown(&mut texts, &by_hand().key("tenant", TENANT).await.expect("there is room"));
    let failed = [
        search().cost("tokens", 5).or_reject(),
        search().cost("tokens", 5).wait_at_most(ms(100)),
        search().cost("tokens", 50),
        search().cost("token", 5),
        search().key("Tenant", TENANT),
        search().provider("amce"),
    ];
    for request in failed {
        told(&mut texts, &request.send().await.expect_err("refused"));
    }
    told(&mut texts, &by_hand().key("Tenant", TENANT).await.expect_err("no such key"));
    for what in [&tollgate as &dyn Debug, &limiter, &store, &tollgate.middleware()] {
        shown(&mut texts, &what);
    }
    tollgate.shutdown().await;
    told(&mut texts, &search().send().await.expect_err("shut down"));
    told(
        &mut texts,
        &Tollgate::builder().provider(provider().secret(&PEPPER[..15])).build().expect_err("short"),
    );

    let (observed, limiter) = on(&store, provider().observe(true));
    let search = searches(&Canned::new(|_, _| fine()), &observed);
    for _ in 0..9 {
        search().or_reject().send().await.expect("observed only");
    }
    tokio::time::sleep(ms(100)).await;
    assert!(limiter.counts().would_refuse > 0);
    for (at, text) in texts.iter().enumerate() {
        // What reqwest prints of a request itself is its business: its URL.
        must_not_tell(&text.replace(&format!("/v1/search/{INDEX}"), ""), &format!("text {at}"));
    }
    let log = log.text();
    must_not_tell(&log, "the log");
    for part in ["refused a request", "calls wait long", "would have been refused"] {
        assert!(log.contains(part), "{part} is not in the log:\n{log}");
    }
}

#[tokio::test]
async fn the_error_of_a_store_tells() {
    let (log, _guard) = Log::capture();
    let away = RedisStore::new(&format!("redis://127.0.0.1:{}", free_port())).expect("a URL");
    // And one on which the keys are used for something else.
    let redis = PrivateRedis::start();
    redis::cmd("SET").arg("tollgate:v1:{acme}:control").arg("x").exec(&mut redis.look()).expect("SET");
    let other = RedisStore::new(&redis.url()).expect("a URL").timeout(ms(10_000));
    for store in [away, other] {
        let (tollgate, limiter) = on(&Arc::new(store), provider());
        let search = searches(&Canned::new(|_, _| fine()), &tollgate);
        let mut texts = Vec::new();
        told(&mut texts, &search().send().await.expect_err("no state"));
        let error = limiter.acquire().key("tenant", TENANT).await.expect_err("no state");
        assert!(error.is_store(), "{error}");
        told(&mut texts, &error);
        texts.iter().for_each(|text| must_not_tell(text, "an error"));
    }
    must_not_tell(&log.text(), "the log");
}

async fn tenants_of(limiter: &Limiter) -> usize {
    rest(|| limiter.acquire().key("tenant", TENANT)).await
}

async fn share(one: &Arc<impl Store>, secrets: [Option<&str>; 2]) -> (usize, usize) {
    let mut limiters = Vec::new();
    for secret in secrets {
        let provider = Provider::new("acme").limit_in(Scope::all().each("tenant"), limit("3/h unpaced"));
        let provider = secret.into_iter().fold(provider.limit(limit("9/h unpaced")), Provider::secret);
        limiters.push(on(one, provider));
    }
    (tenants_of(&limiters[0].1).await, tenants_of(&limiters[1].1).await)
}

#[tokio::test]
async fn replicas_of_two_secrets_share_or_those_of_one_do_not() {
    let redis = PrivateRedis::start();
    let all = [
        ([Some(PEPPER), Some(PEPPER)], (3, 0)),
        ([None, None], (3, 0)),
        ([Some(PEPPER), Some("another 16 bytes or more")], (3, 3)),
        ([Some(PEPPER), None], (3, 3)),
        ([Some("acme: at least 16"), None], (3, 3)),
    ];
    for (at, (secrets, expected)) in all.into_iter().enumerate() {
        let store =
            RedisStore::new(&redis.url()).expect("a URL").prefix(format!("p{at}")).timeout(ms(10_000));
        let store = Arc::new(store);
        assert_eq!(share(&store, secrets).await, expected, "{secrets:?}");
        let provider = Provider::new("acme").limit(limit("9/h unpaced")).secret(PEPPER);
        let (_tollgate, limiter) = on(&store, provider);
        let whole = rest(|| limiter.acquire()).await;
        assert_eq!(whole, 9 - expected.0 - expected.1, "what has no key is shared all the same");
    }
}
