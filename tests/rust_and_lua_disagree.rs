//! Two machines that decide: Rust for memory, Lua for Redis. The same random history, played to both, must get
//! the same replies. `CASES=5000 cargo test --test rust_and_lua_disagree` plays more.

#![cfg(feature = "redis")]

#[path = "support/history.rs"]
mod history;
#[path = "support/redis.rs"]
mod redis_server;
#[path = "support/scripts.rs"]
mod scripts;

use std::{cell::RefCell, sync::Arc};

use history::{Machine, Wild, config, histories, play};
use proptest::prelude::*;
use redis_server::PrivateRedis;
use scripts::Scripts;
use tollgate::ledger::{Call, Claim, Ledger, Micros, Named, Peek, Reply, Undecided};

/// Both, side by side.
struct Both<'a> {
    rust: Ledger,
    begun: bool,
    lua: &'a mut Scripts,
}

impl Both<'_> {
    /// In Redis the state begins with the first call that is not refused for its resets.
    fn begin(&mut self, now: Micros) {
        if !self.begun {
            self.rust = Ledger::new(now);
        }
    }
}

impl Machine for Both<'_> {
    fn book(&mut self, now: Micros, limits: &[Named], call: &Call) -> Reply {
        self.begin(now);
        let (rust, lua) = (self.rust.book(now, limits, call), self.lua.book(now, limits, call));
        assert_eq!(rust, lua, "at {now}: {call:?}");
        self.begun |= matches!(rust, Reply::Booked(_));
        rust
    }

    fn pause(&mut self, now: Micros, part: Option<&Arc<str>>, time: Micros) -> Micros {
        self.begin(now);
        self.begun = true;
        let rust = match part {
            Some(part) => self.rust.pause_part(now, part, now + time) - now,
            None => self.rust.pause(now + time) - now,
        };
        let lua = self.lua.pause(now, part, time);
        assert_eq!(rust, lua, "at {now}: pause {time}");
        rust
    }

    fn peek(&mut self, now: Micros, limits: &[Named]) -> Result<Peek, Undecided> {
        let (rust, lua) = (self.rust.peek(now, limits), self.lua.peek(now, limits));
        assert_eq!(rust, lua, "at {now}: peek");
        rust
    }

    fn set(&mut self, now: Micros, claim: &Claim, text: &str, number: Option<i64>) -> String {
        self.begin(now);
        self.begun = true;
        let (rust, lua) = (self.rust.set(now, claim, text, number).0, self.lua.set(now, claim, text, number));
        assert_eq!(rust, lua, "at {now}: set {text}");
        rust
    }
}

#[test]
fn the_same_history_gets_the_same_replies() {
    let redis = PrivateRedis::start();
    let lua = RefCell::new(Scripts::on(&redis));
    let wild = Wild { steps: 40, wrong: true, back: true, changes: false };
    proptest!(config(300), |(history in histories(wild))| {
        let mut lua = lua.borrow_mut();
        lua.forget();
        play(&history, &mut Both { rust: Ledger::new(0), begun: false, lua: &mut lua });
    });
}

#[test]
fn the_same_history_gets_the_same_replies_while_limits_change() {
    let redis = PrivateRedis::start();
    let lua = RefCell::new(Scripts::on(&redis));
    let wild = Wild { steps: 40, wrong: true, back: true, changes: true };
    proptest!(config(300), |(history in histories(wild))| {
        let mut lua = lua.borrow_mut();
        lua.forget();
        play(&history, &mut Both { rust: Ledger::new(0), begun: false, lua: &mut lua });
    });
}
