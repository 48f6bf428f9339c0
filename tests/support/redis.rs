//! A Redis of its own for one test: nothing is shared, nothing is left behind.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{
    env,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

/// A server in memory on a free port, killed when dropped. The binary is `$REDIS_SERVER`, else `redis-server`
/// from the PATH.
pub struct PrivateRedis {
    child: Child,
    port: u16,
}

impl PrivateRedis {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With settings of its own.
    pub fn start_with(settings: &[&str]) -> Self {
        // Between picking the port and using it somebody else may take it.
        (0..10).find_map(|_| Self::try_on(free_port(), settings)).expect("redis-server does not start")
    }

    /// Where nobody listens yet, or where a server that was killed did.
    pub fn start_on(port: u16) -> Self {
        (0..100).find_map(|_| Self::try_on(port, &[])).expect("redis-server does not start on that port")
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// A plain connection, to look at what is stored.
    pub fn look(&self) -> redis::Connection {
        redis::Client::open(self.url()).and_then(|client| client.get_connection()).expect("a connection")
    }

    fn try_on(port: u16, settings: &[&str]) -> Option<Self> {
        let binary = env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let child = Command::new(&binary)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .args(settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot run {binary:?}: {error}. Install Redis 6.2 or later (package redis-server), or set REDIS_SERVER to its path")
            });
        let mut redis = Self { child, port };
        for _ in 0..1_000 {
            if answers(port) {
                return Some(redis);
            }
            if redis.child.try_wait().is_ok_and(|status| status.is_some()) {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

fn answers(port: u16) -> bool {
    let ping = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 7];
        stream.read_exact(&mut reply)?;
        Ok::<_, std::io::Error>(&reply == b"+PONG\r\n")
    };
    ping().unwrap_or(false)
}
