//! Which stored form suits the log of a rolling window? Measured on a real Redis.
//!
//! The log is up to 257 cells, each the latest slot in microseconds and a count. Every form below
//! plays the same bookings through one shared script body, on one server, in turns, so that drift
//! of the machine hits all of them alike. Run with `cargo bench --bench stored_form`; the server
//! is `$REDIS_SERVER`, or `redis-server` from the PATH.
//!
//! The columns: client-side medians, also as a multiple of a script that only reads the clock;
//! the server's own time per call (`INFO commandstats`); `MEMORY USAGE` of all the keys together,
//! with about a thousand and about a million requests in the window.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::env;
use std::error::Error;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::Script;
use redis::aio::MultiplexedConnection;

type Outcome<T> = Result<T, Box<dyn Error>>;

const ROUNDS: usize = 5;
const TYPICAL_CALLS: usize = 2000;
const SCAN_CALLS: usize = 200;
const TIME_LIMIT: Duration = Duration::from_secs(55);

/// Microseconds since the epoch with today's number of digits; the scripts get the time as an
/// argument so that every form plays the same bookings.
const START: u64 = 1_790_000_000_123_457;
const CELL: u64 = 1_000_000;
const WINDOW: u64 = 256 * CELL;
/// Three bookings of four update the last cell, the fourth appends one and drops one.
const BOOKINGS_PER_CELL: u64 = 4;
/// A thousand requests per window, and a million.
const FEW: u64 = 4;
const MANY: u64 = 3906;

/// One way to store the log. `read` defines `next_cell()`, which walks from the head and fetches
/// `CHUNK` cells at a time where the form allows it; `write` defines `last_cell()` and
/// `store(dropped, merge, latest, count)`.
struct Form {
    name: &'static str,
    /// Fields of the hash beyond the six that every form has, and the variables to put there.
    fields: &'static str,
    values: &'static str,
    /// Whether the log has a key besides the hash.
    own_key: bool,
    read: &'static str,
    write: &'static str,
}

/// Numbers go into text through `%.0f` wherever Lua would join them: its own conversion keeps 14
/// digits, and a time has 16. Arguments of `redis.call` are safe, they keep 17.
const FORMS: [Form; 5] = [
    Form {
        name: "A list of integers",
        fields: "",
        values: "",
        own_key: true,
        read: "
            local chunk, i = redis.call('LRANGE', KEYS[2], 0, 2 * CHUNK - 1), -1
            local function next_cell()
                i = i + 2
                return tonumber(chunk[i]), tonumber(chunk[i + 1])
            end",
        write: "
            local function last_cell()
                local cell = redis.call('LRANGE', KEYS[2], -2, -1)
                return tonumber(cell[1]), tonumber(cell[2])
            end
            local function store(dropped, merge, latest, count)
                if merge or dropped > 0 then
                    redis.call('LTRIM', KEYS[2], 2 * dropped, merge and -3 or -1)
                end
                redis.call('RPUSH', KEYS[2], latest, count)
            end",
    },
    Form {
        name: "B list of text",
        fields: "",
        values: "",
        own_key: true,
        read: "
            local chunk, i = redis.call('LRANGE', KEYS[2], 0, CHUNK - 1), 0
            local function parse(text)
                if not text then return end
                local latest, count = string.match(text, '^(%d+):(%d+)$')
                return tonumber(latest), tonumber(count)
            end
            local function next_cell()
                i = i + 1
                return parse(chunk[i])
            end",
        write: "
            local function last_cell()
                return parse(redis.call('LRANGE', KEYS[2], -1, -1)[1])
            end
            local function store(dropped, merge, latest, count)
                if merge or dropped > 0 then
                    redis.call('LTRIM', KEYS[2], dropped, merge and -2 or -1)
                end
                redis.call('RPUSH', KEYS[2], string.format('%.0f:%.0f', latest, count))
            end",
    },
    Form {
        name: "C msgpack string",
        fields: "",
        values: "",
        own_key: true,
        read: "
            local packed = redis.call('GET', KEYS[2])
            local log, i = packed and cmsgpack.unpack(packed) or {}, -1
            local function next_cell()
                i = i + 2
                return log[i], log[i + 1]
            end",
        write: "
            local function last_cell()
                return log[#log - 1], log[#log]
            end
            local function store(dropped, merge, latest, count)
                if dropped > 0 then log = {unpack(log, 2 * dropped + 1)} end
                local at = merge and #log - 1 or #log + 1
                log[at], log[at + 1] = latest, count
                redis.call('SET', KEYS[2], cmsgpack.pack(log))
            end",
    },
    Form {
        name: "D ring of records",
        fields: ", 'head', 'len'",
        values: ", 'head', head, 'len', len",
        own_key: true,
        // A chunk that meets the end of the string comes back short, and the next one starts at 0.
        read: "
            local head, len = tonumber(meta[7]) or 0, tonumber(meta[8]) or 0
            local SLOTS, SIZE, RECORD = 257, 12, '<I8I4'
            local chunk, pos, i = '', 1, 0
            local function next_cell()
                if i == len then return end
                if pos > #chunk then
                    local at = (head + i) % SLOTS * SIZE
                    chunk, pos = redis.call('GETRANGE', KEYS[2], at, at + SIZE * CHUNK - 1), 1
                end
                local latest, count
                latest, count, pos = struct.unpack(RECORD, chunk, pos)
                i = i + 1
                return latest, count
            end",
        // The string gets its full size at once: growing in place would reserve twice as much.
        write: "
            local function last_cell()
                if len == 0 then return end
                local at = (head + len - 1) % SLOTS * SIZE
                return struct.unpack(RECORD, redis.call('GETRANGE', KEYS[2], at, at + SIZE - 1))
            end
            local function store(dropped, merge, latest, count)
                if len == 0 then redis.call('SET', KEYS[2], string.rep('\\0', SLOTS * SIZE)) end
                head, len = (head + dropped) % SLOTS, len - dropped + (merge and 0 or 1)
                local at = (head + len - 1) % SLOTS * SIZE
                redis.call('SETRANGE', KEYS[2], at, struct.pack(RECORD, latest, count))
            end",
    },
    Form {
        name: "E text in the hash",
        fields: ", 'log'",
        values: ", 'log', log",
        own_key: false,
        // The comma leads each cell: it lets the search for the last one fail fast elsewhere.
        read: "
            local log, pos = meta[7] or '', 1
            local function next_cell()
                local latest, count, after = string.match(log, '^,(%d+):(%d+)()', pos)
                pos = after or pos
                return tonumber(latest), tonumber(count)
            end",
        write: "
            local last = ''
            local function last_cell()
                local latest, count
                last, latest, count = string.match(log, '(,(%d+):(%d+))$', -40)
                return tonumber(latest), tonumber(count)
            end
            local function store(dropped, merge, latest, count)
                if merge then log = string.sub(log, 1, -#last - 1) end
                for _ = 1, dropped do
                    log = string.sub(log, string.find(log, ',', 2, true) or #log + 1)
                end
                log = log .. string.format(',%.0f:%.0f', latest, count)
            end",
    },
];

/// The base: the cost of a call that reads the clock and nothing else.
const CLOCK_ONLY: &str = "return tonumber(redis.call('TIME')[1])";

/// The typical booking. One chunk of 16 holds all it looks at: at most one cell expires between
/// two of these bookings, and at most three more are looked at.
const TYPICAL: &str = "
    redis.call('TIME')
    local now, n, look, window, width = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]),
        tonumber(ARGV[5]), tonumber(ARGV[6])
    local CHUNK = 16
    local meta = redis.call('HMGET', KEYS[1],
        'limit', 'used', 'tail', 'pace', 'pace_rem', 'paced_until'{fields})
    local limit, used, tail = tonumber(meta[1] or ARGV[4]), tonumber(meta[2]) or 0, tonumber(meta[3]) or 0
    local pace, pace_rem = tonumber(meta[4]) or 0, tonumber(meta[5]) or 0
    local paced_until = tonumber(meta[6]) or 0
    {read}
    {write}
    local slot = math.max(now, tail, paced_until)
    local dropped = 0
    local latest, count = next_cell()
    while latest and latest < now - window do
        used, dropped = used - count, dropped + 1
        latest, count = next_cell()
    end
    local freed = 0
    while latest and look > 0 do
        freed, look = freed + count, look - 1
        latest, count = next_cell()
    end
    local last, booked = last_cell()
    local merge = last and math.floor(last / width) == math.floor(slot / width)
    store(dropped, merge, slot, merge and booked + n or n)
    used = used + n
    redis.call('HSET', KEYS[1], 'limit', limit, 'used', used, 'tail', slot,
        'pace', pace, 'pace_rem', pace_rem, 'paced_until', slot + pace{values})
    for _, key in ipairs(KEYS) do
        redis.call('PEXPIRE', key, 600000)
    end
    return used";

/// The rare full scan: every cell into a Lua table, then the sum of the counts.
const SCAN: &str = "
    local CHUNK = 257
    local meta = redis.call('HMGET', KEYS[1],
        'limit', 'used', 'tail', 'pace', 'pace_rem', 'paced_until'{fields})
    {read}
    local cells, size = {}, 0
    local latest, count = next_cell()
    while latest do
        cells[size + 1], cells[size + 2], size = latest, count, size + 2
        latest, count = next_cell()
    end
    assert(size == 2 * 257, 'the log is not full')
    local sum = 0
    for i = 2, size, 2 do
        sum = sum + cells[i]
    end
    return sum";

impl Form {
    fn script(&self, body: &str) -> Script {
        let code = body
            .replace("{fields}", self.fields)
            .replace("{values}", self.values)
            .replace("{read}", self.read)
            .replace("{write}", self.write);
        Script::new(&code)
    }
}

/// A server of its own that ends with this program, however that ends: the shell holds the other
/// end of a pipe and kills the server once the pipe closes. There is no data to save.
struct Server {
    shell: Child,
    url: String,
}

impl Server {
    fn start() -> Outcome<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let program = env::var_os("REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
        let shell = Command::new("sh")
            .args(["-c", "trap '' INT TERM; \"$@\" & read -r _; kill -KILL $!; wait", "sh"])
            .arg(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { shell, url: format!("redis://127.0.0.1:{port}/") })
    }

    async fn connect(&self) -> Outcome<MultiplexedConnection> {
        let client = redis::Client::open(self.url.as_str())?;
        let started = Instant::now();
        loop {
            match client.get_multiplexed_async_connection().await {
                Ok(connection) => return Ok(connection),
                Err(error) if started.elapsed() > Duration::from_secs(5) => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Client-side times of single calls, and the server's own account of the same calls.
#[derive(Default)]
struct Times {
    micros: Vec<f64>,
    server_micros: f64,
}

impl Times {
    fn p50(&mut self) -> f64 {
        self.micros.sort_by(f64::total_cmp);
        self.micros[self.micros.len() / 2]
    }

    fn server(&self) -> f64 {
        self.server_micros / self.micros.len() as f64
    }
}

/// One log under test: its scripts, its keys and how far its clock has run.
struct Log {
    name: &'static str,
    typical: Script,
    scan: Option<Script>,
    keys: Vec<String>,
    per_cell: u64,
    booking: u64,
    typical_times: Times,
    scan_times: Times,
}

impl Log {
    fn new(form: &Form, per_cell: u64) -> Self {
        // The same length of key for all, and one slot of a cluster for both keys.
        let tag = format!("{{{}-{per_cell:04}}}", &form.name[..1]);
        let mut keys = vec![format!("log:{tag}:meta")];
        keys.extend(form.own_key.then(|| format!("log:{tag}:cell")));
        let (typical, scan) = (form.script(TYPICAL), Some(form.script(SCAN)));
        Self { typical, scan, keys, ..Self::base(form.name, per_cell) }
    }

    fn base(name: &'static str, per_cell: u64) -> Self {
        Self {
            name,
            typical: Script::new(CLOCK_ONLY),
            scan: None,
            keys: vec!["log:{Z-0000}:meta".into(), "log:{Z-0000}:cell".into()],
            per_cell,
            booking: 0,
            typical_times: Times::default(),
            scan_times: Times::default(),
        }
    }

    /// The next booking: a quarter of a cell's requests at a quarter of its width.
    async fn book(&mut self, connection: &mut MultiplexedConnection) -> Outcome<u64> {
        let now = START + self.booking * CELL / BOOKINGS_PER_CELL;
        let share = |quarter| self.per_cell * quarter / BOOKINGS_PER_CELL;
        let quarter = self.booking % BOOKINGS_PER_CELL;
        let n = share(quarter + 1) - share(quarter);
        let look = 1 + self.booking % 3;
        self.booking += 1;
        let mut call = self.typical.prepare_invoke();
        self.keys.iter().for_each(|key| _ = call.key(key));
        for argument in [now, n, look, self.per_cell * 257, WINDOW, CELL] {
            call.arg(argument);
        }
        Ok(call.invoke_async(connection).await?)
    }

    /// Two windows of bookings: the log is then full, and worn by appends and drops.
    async fn fill(&mut self, connection: &mut MultiplexedConnection) -> Outcome<()> {
        let mut used = 0;
        for _ in 0..2 * 257 * BOOKINGS_PER_CELL {
            used = self.book(connection).await?;
        }
        if self.scan.is_some() {
            assert_eq!(used, 257 * self.per_cell, "{}: wrong sum kept", self.name);
            assert_eq!(self.scan(connection).await?, used, "{}: wrong cells kept", self.name);
        }
        Ok(())
    }

    async fn scan(&self, connection: &mut MultiplexedConnection) -> Outcome<u64> {
        let mut call = self.scan.as_ref().ok_or("nothing to scan")?.prepare_invoke();
        self.keys.iter().for_each(|key| _ = call.key(key));
        Ok(call.invoke_async(connection).await?)
    }

    async fn time_typical(&mut self, connection: &mut MultiplexedConnection) -> Outcome<()> {
        reset_stats(connection).await?;
        for _ in 0..TYPICAL_CALLS {
            let started = Instant::now();
            self.book(connection).await?;
            self.typical_times.micros.push(started.elapsed().as_secs_f64() * 1e6);
        }
        self.typical_times.server_micros += server_micros(connection).await?;
        Ok(())
    }

    async fn time_scan(&mut self, connection: &mut MultiplexedConnection) -> Outcome<()> {
        reset_stats(connection).await?;
        for _ in 0..SCAN_CALLS {
            let started = Instant::now();
            self.scan(connection).await?;
            self.scan_times.micros.push(started.elapsed().as_secs_f64() * 1e6);
        }
        self.scan_times.server_micros += server_micros(connection).await?;
        Ok(())
    }

    async fn memory(&self, connection: &mut MultiplexedConnection) -> Outcome<u64> {
        let mut total = 0;
        for key in &self.keys {
            let mut usage = redis::cmd("MEMORY");
            usage.arg("USAGE").arg(key).arg("SAMPLES").arg(0);
            total += usage.query_async::<u64>(connection).await?;
        }
        Ok(total)
    }
}

async fn reset_stats(connection: &mut MultiplexedConnection) -> Outcome<()> {
    Ok(redis::cmd("CONFIG").arg("RESETSTAT").query_async(connection).await?)
}

/// What the server spent in scripts since the last reset.
async fn server_micros(connection: &mut MultiplexedConnection) -> Outcome<f64> {
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(connection).await?;
    let (_, line) = stats.split_once("cmdstat_evalsha:").ok_or("no calls counted")?;
    let (_, usec) = line.split_once("usec=").ok_or("no time counted")?;
    Ok(usec.split(',').next().unwrap_or_default().parse()?)
}

async fn measure(server: &Server) -> Outcome<()> {
    let mut connection = server.connect().await?;
    let connection = &mut connection;

    let mut base = Log::base("Z clock only", FEW);
    let mut logs: Vec<Log> = FORMS.iter().map(|form| Log::new(form, FEW)).collect();
    for log in std::iter::once(&mut base).chain(&mut logs) {
        log.fill(connection).await?;
    }
    for _ in 0..ROUNDS {
        base.time_typical(connection).await?;
        for log in &mut logs {
            log.time_typical(connection).await?;
        }
        for log in &mut logs {
            log.time_scan(connection).await?;
        }
    }

    let floor = base.typical_times.p50();
    println!(
        "{:<20}{:>9}{:>7}{:>11}{:>9}{:>11}{:>10}{:>10}{:>8}",
        "form", "p50 us", "x Z", "server us", "scan us", "server us", "B @1e3", "B @1e6", "diff"
    );
    println!("{:<20}{floor:>9.1}{:>7.2}{:>11.2}", base.name, 1.0, base.typical_times.server());
    for (form, log) in FORMS.iter().zip(&mut logs) {
        let mut large = Log::new(form, MANY);
        large.fill(connection).await?;
        let (few, many) = (log.memory(connection).await?, large.memory(connection).await?);
        let typical = log.typical_times.p50();
        println!(
            "{:<20}{typical:>9.1}{:>7.2}{:>11.2}{:>9.1}{:>11.2}{few:>10}{many:>10}{:>+7.1}%",
            log.name,
            typical / floor,
            log.typical_times.server(),
            log.scan_times.p50(),
            log.scan_times.server(),
            (many as f64 / few as f64 - 1.0) * 100.0,
        );
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    // `cargo test --all-targets` runs this program too, without the flag: nothing to measure then.
    if !env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let server = Server::start()?;
    tokio::time::timeout(TIME_LIMIT, measure(&server)).await?
}
