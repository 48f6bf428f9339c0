//! What goes to the scripts and what comes back: flat numbers and texts. The other side is `lua/*.lua`.

use std::{str::SplitAsciiWhitespace, sync::Arc};

use crate::{
    ledger::{
        Answer, Booked, Call, Claim, Class, Costs, Generation, Micros, Named, Outcome, Peek, Refused, Reply,
        Rule, Undecided, Want,
    },
    store::StoreError,
};

/// Doubles count exactly up to here, and Lua counts in doubles.
const EXACT: i64 = 1 << 53;

/// KEYS and ARGV of one script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) keys: Vec<String>,
    pub(super) args: Vec<String>,
}

/// A provider and its limits, the frame of every request.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) prefix: &'a str,
    pub(super) provider: &'a str,
    pub(super) limits: &'a [Named],
}

impl Subject<'_> {
    pub(super) fn book(&self, now: Option<Micros>, call: &Call) -> Result<Request, StoreError> {
        let mut request = self.begin(now);
        let member = format!("{:016x}", call.member);
        request.keys.push(self.key(&format!("told:{member}")));
        request.limits(self)?;
        request.text(member);
        request.text(call.number.to_string());
        let known = call.generation.unwrap_or(Generation { ordinal: 0, since: 0 });
        request.numbers([known.ordinal, known.since, call.lead, call.late, call.horizon]);
        let limits = self.limits.len();
        request.costs(&call.places, limits);
        request.parts(self, &call.parts);
        request.numbers([i64::from(call.more), i64::from(call.goodbye)]);
        request.permits(&call.returns, limits);
        request.permits(&call.settles, limits);
        request.permits(&call.confirms, limits);
        request.number(call.wants.len() as i64);
        for want in &call.wants {
            request.costs(&want.costs, limits);
            request.number(i64::from(want.class));
            request.optional(want.budget);
            request.number(i64::from(want.count));
        }
        Ok(request)
    }

    pub(super) fn pause(&self, now: Option<Micros>, part: Option<&str>, time: Micros) -> Request {
        let mut request = self.begin(now);
        request.keys.extend(part.map(|part| self.part(part)));
        // Its end must still be exact.
        request.number(time.min(EXACT / 2));
        request
    }

    pub(super) fn change(
        &self,
        now: Option<Micros>,
        claim: &Claim,
        text: &str,
        number: Option<i64>,
    ) -> Request {
        let mut request = self.begin(now);
        request.claim(claim);
        request.text(text);
        request.optional(number);
        request
    }

    pub(super) fn peek(&self, now: Option<Micros>, parts: &[Arc<str>]) -> Result<Request, StoreError> {
        let mut request = self.begin(now);
        request.limits(self)?;
        request.parts(self, parts);
        Ok(request)
    }

    /// All keys of a provider share one hash tag, so that a cluster keeps them on one node.
    pub(super) fn key(&self, name: &str) -> String {
        format!("{}:v1:{{{}}}:{name}", self.prefix, self.provider)
    }

    /// Where the pause of a part is.
    fn part(&self, part: &str) -> String {
        self.key(&format!("pause:{part}"))
    }

    fn begin(&self, now: Option<Micros>) -> Request {
        let mut request = Request::default();
        request.keys.push(self.key("control"));
        request.optional(now);
        request
    }
}

impl Request {
    fn text(&mut self, text: impl Into<String>) {
        self.args.push(text.into());
    }

    /// What no double holds exactly is further away than any time or count that matters.
    fn number(&mut self, number: i64) {
        self.args.push(number.clamp(-EXACT, EXACT).to_string());
    }

    fn numbers<const N: usize>(&mut self, numbers: [i64; N]) {
        numbers.into_iter().for_each(|number| self.number(number));
    }

    fn optional(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.number(number),
            None => self.text(""),
        }
    }

    fn permits(&mut self, permits: &[Booked], limits: usize) {
        self.number(permits.len() as i64);
        for permit in permits {
            self.number(permit.slot);
            self.costs(&permit.costs, limits);
            self.numbers([i64::from(permit.class), i64::from(permit.far)]);
        }
    }

    fn parts(&mut self, subject: &Subject<'_>, parts: &[Arc<str>]) {
        self.number(parts.len() as i64);
        for part in parts {
            self.keys.push(subject.part(part));
            self.text(&**part);
        }
    }

    fn claim(&mut self, claim: &Claim) {
        [&claim.name, &claim.text, &claim.agreed].into_iter().for_each(|text| self.text(text));
    }

    fn costs(&mut self, costs: &Costs, limits: usize) {
        (0..limits).for_each(|limit| self.number(costs.of(limit)));
    }

    fn limits(&mut self, subject: &Subject<'_>) -> Result<(), StoreError> {
        self.number(subject.limits.len() as i64);
        for limit in subject.limits {
            let key = subject.key(&limit.name);
            if self.keys.contains(&key) {
                return Err(StoreError::answer(format!(
                    "two limits of {:?} count the same ({}): keep the smaller one",
                    subject.provider, limit.name
                )));
            }
            self.keys.push(key);
            self.keys.push(subject.key(&format!("{}:crowd", limit.name)));
            self.keys.push(subject.key(&format!("{}:far", limit.name)));
            self.text(&limit.name);
            self.claim(&limit.claim);
            self.numbers([i64::from(limit.watched), limit.reserve]);
            match &limit.rule {
                Rule::Rolling(rule) => {
                    self.keys.push(subject.key(&format!("{}:log", limit.name)));
                    self.text("rolling");
                    self.numbers([rule.max, rule.span, rule.cell, rule.slack, i64::from(rule.paced)]);
                }
                Rule::Bucket(rule) => {
                    if !rule.is_exact() {
                        return Err(StoreError::answer(format!(
                            "{} cannot be counted exactly: use a smaller guard or rounder numbers",
                            limit.claim.text
                        )));
                    }
                    self.text("bucket");
                    self.numbers([rule.capacity, rule.tokens, rule.period, rule.cell]);
                }
                Rule::Flight(rule) => {
                    self.text("flight");
                    self.numbers([rule.max, rule.lease]);
                }
                Rule::Calendar(rule) => {
                    self.text("calendar");
                    self.numbers([rule.max, rule.guard, rule.resets.len() as i64]);
                    rule.resets.iter().for_each(|&reset| self.number(reset));
                }
            }
        }
        Ok(())
    }
}

pub(super) fn booked(text: &str, call: &Call, limits: usize) -> Result<Reply, StoreError> {
    let (text, accords) = accords(text);
    let reply = |mut read: Reader<'_>| {
        let now = match read.head(accords, limits)? {
            Ok(now) => now,
            Err(undecided) => return Some(Reply::Undecided(undecided)),
        };
        let decided = read.number()?;
        let at = decided;
        let highest = Class::try_from(read.number()?).ok().filter(|class| *class < 2)?;
        let generation = Generation { ordinal: read.number()?, since: read.number()? };
        let pause = read.number()?;
        let confirmed = read.list(call.confirms.len(), |read| read.maybe(at))?;
        if read.number()? != call.wants.len() as i64 {
            return None;
        }
        let outcome = |want: &Want| {
            let slots = read.slots(at, want.count as usize)?;
            Some(Outcome { slots, refused: read.refused(at, limits)? })
        };
        let outcomes = call.wants.iter().map(outcome).collect::<Option<_>>()?;
        let next = read.refused(at, limits)?;
        let paced = read.number()? == 1;
        let left = read.list(limits, Reader::number)?;
        read.end()?;
        Some(Reply::Booked(Answer {
            now,
            decided,
            highest,
            generation,
            pause,
            confirmed,
            outcomes,
            next,
            paced,
            left,
        }))
    };
    reply(Reader::new(text)).ok_or_else(|| malformed(text))
}

/// What is left of the pause.
pub(super) fn paused(text: &str) -> Result<Micros, StoreError> {
    let reply = |mut read: Reader<'_>| {
        let now = read.head("", 0)?.ok()?;
        let until = read.number()?;
        read.end()?;
        Some(until - now)
    };
    reply(Reader::new(text)).ok_or_else(|| malformed(text))
}

/// The accord on one limit.
pub(super) fn changed(text: &str) -> Result<String, StoreError> {
    let (head, accord) = accords(text);
    let reply = |mut read: Reader<'_>| {
        read.head("", 0)?.ok()?;
        read.end()
    };
    reply(Reader::new(head)).map(|()| accord.to_owned()).ok_or_else(|| malformed(text))
}

pub(super) fn peeked(text: &str, limits: usize) -> Result<Result<Peek, Undecided>, StoreError> {
    let (text, accords) = accords(text);
    let reply = |mut read: Reader<'_>| {
        let now = match read.head(accords, limits)? {
            Ok(now) => now,
            Err(undecided) => return Some(Err(undecided)),
        };
        let pause = read.number()?;
        let limits = (0..limits).map(|_| Some((read.number()?, read.number()?))).collect::<Option<_>>()?;
        read.end()?;
        Some(Ok(Peek { now, pause, limits }))
    };
    reply(Reader::new(text)).ok_or_else(|| malformed(text))
}

/// The numbers of a reply, and the texts behind them.
fn accords(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}

fn malformed(text: &str) -> StoreError {
    let start: String = text.chars().take(60).collect();
    StoreError::answer(format!("the reply of a script makes no sense: {start:?}; is another version in use?"))
}

/// Numbers with spaces between them. `None`: there is something else.
struct Reader<'a> {
    numbers: SplitAsciiWhitespace<'a>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { numbers: text.split_ascii_whitespace() }
    }

    /// Sums of these stay in range, whatever is sent.
    fn number(&mut self) -> Option<i64> {
        self.numbers.next()?.parse().ok().filter(|number: &i64| number.unsigned_abs() <= 2 * EXACT as u64)
    }

    /// The store's time; `Err` if it could not decide. `accords`: what is behind the numbers.
    fn head(&mut self, accords: &str, limits: usize) -> Option<Result<Micros, Undecided>> {
        let (kind, now) = (self.number()?, self.number()?);
        if kind == 1 {
            return Some(Ok(now));
        }
        self.end()?;
        let texts: Vec<_> = accords.split("\n\n").map(str::to_owned).collect();
        match kind {
            0 => Some(Err(Undecided::Stale(now))),
            2 => (texts.len() == limits).then_some(Err(Undecided::Changed(now, texts))),
            _ => None,
        }
    }

    /// `Some(None)`: none.
    fn maybe(&mut self, at: Micros) -> Option<Option<Micros>> {
        Some(if self.number()? == 0 { None } else { Some(at + self.number()?) })
    }

    fn list<T>(&mut self, len: usize, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        if self.number()? != len as i64 {
            return None;
        }
        (0..len).map(|_| read(self)).collect()
    }

    /// Runs of equal steps; never more slots than were asked for.
    fn slots(&mut self, mut at: Micros, most: usize) -> Option<Vec<Micros>> {
        let mut slots = Vec::new();
        for _ in 0..self.number()? {
            let (step, times) = (self.number()?, usize::try_from(self.number()?).ok()?);
            if slots.len() + times > most {
                return None;
            }
            for _ in 0..times {
                at = at.checked_add(step)?;
                slots.push(at);
            }
        }
        Some(slots)
    }

    /// `Some(None)`: nothing was refused.
    fn refused(&mut self, at: Micros, limits: usize) -> Option<Option<Refused>> {
        if self.number()? == 0 {
            return Some(None);
        }
        let at = at + self.number()?;
        let limit = match self.number()? {
            -1 => None,
            limit => Some(usize::try_from(limit).ok().filter(|&limit| limit < limits)?),
        };
        Some(Some(Refused { at, limit }))
    }

    fn end(&mut self) -> Option<()> {
        self.numbers.next().is_none().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, rule: Rule) -> Named {
        let claim = Claim::new(format!("all {name}"), format!("text of {name}"));
        Named { claim, ..Named::new(name, rule) }
    }

    fn booking(limits: &[Named], call: &Call) -> Result<Request, StoreError> {
        Subject { prefix: "p", provider: "acme", limits }.book(Some(9), call)
    }

    #[test]
    fn a_booking_is_flat() {
        let mut limits = [
            named("a", Rule::rolling(100, 60_000_000, 600_000, true)),
            named("b", Rule::bucket(10, 1_000_000, 20, 0)),
            named("c", Rule::calendar(7, 5, vec![1, 20, 30])),
        ];
        (limits[1].watched, limits[1].reserve) = (false, 6);
        let call = Call {
            member: u64::MAX,
            number: 3,
            generation: Some(Generation { ordinal: 2, since: 4 }),
            lead: 11,
            late: 6,
            horizon: 50_000,
            places: [0, 0, 4].into_iter().collect(),
            parts: ["tenant=1".into()].into(),
            more: true,
            returns: vec![Booked::new(15, [2, 0, 1].into_iter().collect())],
            settles: vec![Booked {
                class: 2,
                far: true,
                ..Booked::new(14, [-1, 0, 7].into_iter().collect())
            }],
            wants: vec![
                Want { costs: Costs::same(1, 3), class: 1, budget: None, count: 4 },
                Want { costs: Costs::same(1, 3), class: 1, budget: Some(Micros::MAX), count: 5 },
            ],
            ..Call::default()
        };
        let request = booking(&limits, &call).expect("a request");
        let keys = "control told:ffffffffffffffff a a:crowd a:far a:log b b:crowd b:far c c:crowd c:far \
                    pause:tenant=1";
        let keys: Vec<_> = keys.split(' ').map(|name| format!("p:v1:{{acme}}:{name}")).collect();
        assert_eq!(request.keys, keys);
        let Rule::Rolling(rule) = &limits[0].rule else { unreachable!() };
        let (cell, slack) = (rule.cell, rule.slack);
        assert_eq!(
            request.args.join(" "),
            format!(
                "9 3 a all a text of a is text of a 1 0 rolling 100 60600000 {cell} {slack} 1 b all b text of b is text of b 0 6 bucket 20 1 100000 3906 \
                 c all c text of c is text of c 1 0 calendar 7 5 3 1 20 30 ffffffffffffffff 3 2 4 11 6 50000 0 0 4 1 tenant=1 1 0 1 15 2 0 1 1 0 1 14 -1 \
                 0 7 2 1 0 2 1 1 1 1  4 1 1 1 1 9007199254740992 5"
            )
        );
    }

    #[test]
    fn what_cannot_be_counted_is_an_error() {
        let error = booking(
            &[named("a", Rule::rolling(1, 1_000, 0, true)), named("a", Rule::rolling(2, 1_000, 0, true))],
            &Call::default(),
        );
        assert!(error.expect_err("one state for two").to_string().contains("count the same (a)"));
        let wide = Rule::bucket(89_999_999, 7_200_000_000, 1, 3_600_000_000);
        let error = booking(&[named("a", wide)], &Call::default()).expect_err("above 2^53");
        assert!(error.to_string().contains("counted exactly"));
    }

    fn asked() -> Call {
        Call {
            confirms: vec![Booked::new(1, Costs::same(1, 1)); 2],
            wants: vec![
                Want { costs: Costs::same(1, 1), class: 1, budget: None, count: 5 },
                Want { costs: Costs::same(1, 1), class: 1, budget: Some(0), count: 1 },
            ],
            ..Call::default()
        }
    }

    /// Repeated at 1007, decided at 1000.
    const ANSWER: &str = "1 1007 1000 1 3 900 0 2 1 50 0 2 2 10 1 5 3 0 0 1 40 1 1 60 -1 1 2 17 0";

    #[test]
    fn an_answer_is_read() {
        let answer = Answer {
            now: 1007,
            decided: 1000,
            highest: 1,
            generation: Generation { ordinal: 3, since: 900 },
            pause: 0,
            confirmed: vec![Some(1050), None],
            outcomes: vec![
                Outcome { slots: vec![1010, 1015, 1020, 1025], refused: None },
                Outcome { slots: vec![], refused: Some(Refused { at: 1040, limit: Some(1) }) },
            ],
            next: Some(Refused { at: 1060, limit: None }),
            paced: true,
            left: vec![17, 0],
        };
        assert_eq!(booked(ANSWER, &asked(), 2), Ok(Reply::Booked(answer)));
        assert_eq!(booked("0 1007", &asked(), 2), Ok(Reply::Undecided(Undecided::Stale(1007))));
        let changed = Undecided::Changed(1007, vec!["is 5/s".into(), "is 6/s\nnow 9 4/s\nfor 6/s".into()]);
        let text = "2 1007\nis 5/s\n\nis 6/s\nnow 9 4/s\nfor 6/s";
        assert_eq!(booked(text, &asked(), 2), Ok(Reply::Undecided(changed.clone())));
        assert_eq!(peeked(text, 2), Ok(Err(changed)));
        assert!(booked(text, &asked(), 3).is_err());
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        let words: Vec<_> = ANSWER.split(' ').collect();
        let mut texts = vec![
            format!("{ANSWER} 1"),
            "".into(),
            "0".into(),
            "2 5".into(),
            "2 5\nis 5/s".into(),
            "2 5 5\nis 5/s\n\nis 6/s".into(),
            "0 5 5".into(),
        ];
        texts.extend((0..words.len()).map(|len| words[..len].join(" ")));
        for at in 0..words.len() {
            for wrong in ["x", "1.5", "9223372036854775807", "-9223372036854775808", "4000000000"] {
                let mut words = words.clone();
                words[at] = wrong;
                // Some of these are answers nobody gives; none may panic or fill the memory.
                let _ = booked(&words.join(" "), &asked(), 2);
                if !["4000000000"].contains(&wrong) {
                    texts.push(words.join(" "));
                }
            }
        }
        for text in texts {
            let error = booked(&text, &asked(), 2).expect_err(&text);
            assert!(!error.is_unreachable(), "{text}");
            peeked(&text, 2).map(|_| ()).unwrap_or_default();
            paused(&text).map(|_| ()).unwrap_or_default();
        }
    }

    #[test]
    fn looks_and_pauses_are_read() {
        let peek = Peek { now: 5, pause: 0, limits: vec![(3, 5), (0, 99)] };
        assert_eq!(peeked("1 5 0 3 5 0 99", 2), Ok(Ok(peek)));
        assert_eq!(peeked("0 5", 2), Ok(Err(Undecided::Stale(5))));
        assert!(peeked("1 5 0 3 5", 2).is_err());
        assert_eq!(paused("1 5 25"), Ok(20));
        assert!(paused("1 5").is_err());
        assert!(paused("0 5").is_err());
        assert_eq!(changed("1 5\nis 6/s\nnow 9 4/s"), Ok("is 6/s\nnow 9 4/s".to_owned()));
        assert!(changed("2 5\nis 6/s").is_err());
    }
}
