//! A Redis for one run.

use std::{
    env,
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use crate::Outcome;

/// Keeps its server as long as it lives.
pub struct Redis {
    pub url: String,
    watchdog: Child,
}

/// Runs what it is given until its standard input closes, which the end of this process does too.
const WATCHDOG: &str = r#"trap 'kill -9 $!' EXIT; trap : INT TERM; "$@" & read -r _"#;

impl Redis {
    /// Starts `$REDIS_SERVER`, or `redis-server` from the PATH, on a free port.
    pub fn start() -> Outcome<Self> {
        let binary = env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        match Command::new(&binary).arg("--version").output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(format!(
                    "\"{binary}\" not found: install Redis (apt install redis-server, brew install redis), \
                     set REDIS_SERVER to its path, or give --redis URL"
                )
                .into());
            }
            Err(error) => return Err(format!("cannot run \"{binary}\": {error}").into()),
            Ok(_) => {}
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "redis", &binary, "--port", &port.to_string()])
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let redis = Self { url: format!("redis://127.0.0.1:{port}"), watchdog };
        for _ in 0..250 {
            if answers(port) {
                return Ok(redis);
            }
            sleep(Duration::from_millis(20));
        }
        Err(format!("\"{binary}\" was started on port {port} and does not answer").into())
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // The run is over; a watchdog that cannot be waited for has nothing left to tell.
        let _ = self.watchdog.wait();
    }
}

fn answers(port: u16) -> bool {
    let ping = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).map(|()| answer)
    };
    ping().is_ok_and(|answer: [u8; 7]| &answer == b"+PONG\r\n")
}
