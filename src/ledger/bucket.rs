//! The classic token bucket: at most `capacity` at once and `tokens` per `period` after that.

use super::{Micros, cells::Cells};

/// A bucket as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub capacity: i64,
    /// `tokens` come back in each `period` microseconds; reduced, so that products stay below 2^53.
    pub tokens: i64,
    pub period: Micros,
    /// Width of the cells in which tokens are held aside.
    pub cell: Micros,
}

impl Rule {
    /// The guard is paid from the burst; a burst too small for that pays with wider spacing.
    pub fn new(max: i64, window: Micros, burst: i64, guard: Micros) -> Self {
        let (rate, window) = (i128::from(max), i128::from(window));
        let during_guard = (rate * i128::from(guard) + window - 1) / window;
        let burst = i128::from(burst);
        let (capacity, period) = if burst > during_guard {
            (burst - during_guard, window)
        } else {
            (1, window + i128::from(guard) * rate)
        };
        let common = gcd(period, rate);
        let narrow = |n: i128| i64::try_from(n).unwrap_or(i64::MAX);
        Self {
            capacity: narrow(capacity),
            tokens: narrow(rate / common),
            period: narrow(period / common),
            cell: narrow((window / 256).max(1)),
        }
    }

    /// Whether it can be counted in doubles, as Lua does: twice the capacity, since there may be a debt.
    pub fn is_exact(&self) -> bool {
        self.capacity.checked_mul(self.period).is_some_and(|parts| parts <= 1 << 52)
    }

    /// How long `parts` of a token (in 1/`period`) take to come, rounded up: against the caller.
    fn wait(&self, parts: i64) -> Micros {
        parts.max(0).div_euclid(self.tokens) + i64::from(parts.max(0) % self.tokens > 0)
    }

    /// To compare it with others: Lua has no larger integers to do it exactly.
    fn rate(&self) -> f64 {
        self.tokens as f64 / self.period as f64
    }

    pub fn spacing(&self, cost: i64) -> Micros {
        self.wait(cost * self.period)
    }
}

/// Missing means empty at the beginning of time: by now it is full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Whole tokens at `last_time`, and `rem` parts of one in 1/`period`; below zero it is a debt. A
    /// `last_time` in the future is when the last token was promised: nothing before then.
    pub tokens: i64,
    pub last_time: Micros,
    pub rem: i64,
    /// When the last booking was charged; 0: nothing can be given back to it any more.
    pub tail: Micros,
    /// Tokens charged when they were there, to fly later (another limit, or a reply that takes its time):
    /// until then the capacity is lower by them, else they would fly on top of a full bucket.
    pub held: Cells,
    /// By which limit the tokens were counted.
    pub counted_by: Option<Rule>,
}

impl State {
    /// If the limit was another one what is missing stays missing: of a smaller bucket it may be more than it holds,
    /// which is a debt, but never above the capacity once more. The time since then counts at the slower rate.
    fn fit(&mut self, rule: &Rule, now: Micros, resume: Micros) {
        if self.counted_by.as_ref() == Some(rule) {
            return;
        }
        let Some(was) = self.counted_by.replace(rule.clone()) else { return };
        if was.rate() < rule.rate() {
            self.pass_by(&was, now, resume);
        }
        if was.period != rule.period {
            self.rem = 0;
        }
        let less = (was.capacity - rule.capacity).max(0);
        self.tokens = (self.tokens - less).max(-rule.capacity);
    }

    /// Time passes. A clock that steps back changes nothing: no token is earned or lost.
    fn prune(&mut self, rule: &Rule, now: Micros) {
        while let Some(cell) = self.held.get(0).filter(|cell| cell.latest <= now) {
            self.refill(rule, cell.latest);
            self.held.drop_until(cell.latest);
            // How much of a token given back would have been too much before, nobody knows any more.
            self.tail = 0;
        }
        self.refill(rule, now);
    }

    /// The same, and a pause that is over has emptied it.
    pub fn pass(&mut self, rule: &Rule, now: Micros, resume: Micros) {
        self.fit(rule, now, resume);
        self.pass_by(rule, now, resume);
    }

    fn pass_by(&mut self, rule: &Rule, now: Micros, resume: Micros) {
        if resume <= now {
            self.resume(rule, resume);
        }
        self.prune(rule, now);
    }

    fn refill(&mut self, rule: &Rule, now: Micros) {
        if now <= self.last_time {
            return;
        }
        let capacity = rule.capacity - self.held.used;
        let missing = (capacity - self.tokens) * rule.period - self.rem;
        let elapsed = now - self.last_time;
        if elapsed > rule.wait(missing) {
            // Full: a token given back from now on is lost already.
            (self.tokens, self.rem, self.tail) = (capacity, 0, 0);
        } else {
            // In the microsecond in which it gets full what that is too long is carried: else rounding
            // would cost a little of every token.
            let parts = self.tokens * rule.period + self.rem + elapsed * rule.tokens;
            (self.tokens, self.rem) = (parts.div_euclid(rule.period), parts.rem_euclid(rule.period));
        }
        self.last_time = now;
    }

    /// After a pause the bucket starts empty: nobody stampedes. A debt stays.
    fn resume(&mut self, rule: &Rule, resume: Micros) {
        if self.last_time < resume {
            self.prune(rule, resume);
            if self.tokens >= 0 {
                (self.tokens, self.rem) = (0, 0);
            }
        }
    }

    pub fn earliest(&self, rule: &Rule, t: Micros, cost: i64, resume: Micros) -> Micros {
        let mut then = self.clone();
        then.resume(rule, resume);
        then.prune(rule, t);
        if then.tokens >= cost {
            return t.max(then.last_time);
        }
        loop {
            let at = then.last_time + rule.wait((cost - then.tokens) * rule.period - then.rem);
            match then.held.get(0) {
                Some(cell) if cell.latest < at || cost > rule.capacity - then.held.used => {
                    then.prune(rule, cell.latest.max(then.last_time));
                }
                _ => return at,
            }
            if then.tokens >= cost {
                return then.last_time;
            }
        }
    }

    /// Charges `cost` as soon from `now` on as it is there; what flies later than that is held aside.
    pub fn take(&mut self, rule: &Rule, now: Micros, slot: Micros, cost: i64, resume: Micros) {
        let at = self.earliest(rule, now, cost, resume);
        self.resume(rule, resume);
        self.prune(rule, at);
        self.tokens -= cost;
        self.tail = at;
        if slot > at {
            self.held.add(rule.cell, slot, cost);
        }
    }

    /// What a permit costs on top. Nothing that was charged before can be given back to it any more.
    pub fn charge(&mut self, rule: &Rule, extra: i64) -> bool {
        let extra = extra.min(rule.capacity + self.tokens);
        if extra <= 0 {
            return false;
        }
        self.tokens -= extra;
        self.tail = 0;
        true
    }

    /// Gives back only if nothing was charged since: a bucket that was full in between has lost the token
    /// already, and a later slot may rest on it. What is held aside stays: its cell may hold others' tokens.
    pub fn give(&mut self, rule: &Rule, now: Micros, slot: Micros, cost: i64) -> bool {
        if slot != self.tail {
            return false;
        }
        if self.last_time > now {
            self.last_time -= cost * rule.period / rule.tokens;
        } else {
            self.tokens += cost;
            let capacity = rule.capacity - self.held.used;
            if self.tokens >= capacity {
                (self.tokens, self.rem) = (capacity, 0);
            }
        }
        true
    }

    pub fn left(&self, rule: &Rule, now: Micros, resume: Micros) -> i64 {
        let mut then = self.clone();
        then.resume(rule, resume);
        then.prune(rule, now);
        then.tokens.max(0)
    }

    pub fn idle_at(&self, rule: &Rule) -> Micros {
        let full = self.last_time + rule.wait((rule.capacity - self.tokens) * rule.period - self.rem);
        self.held.last().map_or(full, |cell| full.max(cell.latest) + rule.wait(self.held.used * rule.period))
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
