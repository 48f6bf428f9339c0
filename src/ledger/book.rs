//! Booking: what a provider has booked, by whom, and one call to it.

use std::{collections::HashMap, sync::Arc};

use super::{
    Micros,
    accord::{Accord, Claim},
    call::{Answer, Call, Class, Costs, Generation, Reply, Undecided},
    crowd::Crowd,
    desk::{Desk, Round, Seat},
    far::Far,
    limits::{Rule, State, Taking},
    tightest,
};

/// Who was unseen for so long has left: what it was told is forgotten, and what it said.
pub const GONE: Micros = 60_000_000;
/// So long after its end a pause of a part is remembered: until then the stream resumes paced.
const OVER: Micros = 3_600_000_000;
/// So many states are kept in any case.
const FEW: usize = 1_024;

/// A limit under the name of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub claim: Claim,
    /// What is in force by the accord that the claim goes by.
    pub rule: Rule,
    /// A shared store notices if it loses the state of this one. Not where there are as many as credentials.
    pub watched: bool,
    /// So much is left to others by the lowest class, while there is somebody of the highest.
    pub reserve: i64,
}

impl Named {
    /// That all replicas have alike.
    pub fn new(name: impl Into<String>, rule: Rule) -> Self {
        let name = name.into();
        let claim = Claim::new(name.clone(), name.clone());
        Self { name, claim, rule, watched: true, reserve: 0 }
    }
}

/// All state of one provider.
#[derive(Clone, Debug)]
pub struct Ledger {
    generation: Generation,
    pause: Micros,
    /// Pauses of parts, by their names.
    parts: HashMap<Arc<str>, Micros>,
    members: HashMap<u64, Member>,
    limits: HashMap<String, Shared>,
    /// By the names of claims.
    accords: HashMap<String, Accord>,
    /// Members that have a place in flight coming, who do not know it yet.
    woken: Vec<u64>,
    /// More states than this, and those that say nothing any more are dropped.
    crowded: usize,
    /// When that was done last.
    swept: Micros,
}

/// A limit as all who use it see it.
#[derive(Clone, Debug, Default)]
struct Shared {
    /// `None`: as a fresh one.
    state: Option<State>,
    /// From when on it is as a fresh one.
    idle: Micros,
    crowd: Crowd,
    far: Far,
}

/// What a member was told last.
#[derive(Clone, Debug)]
struct Member {
    seen: Micros,
    /// The last slot it was given.
    last: Micros,
    number: i64,
    answer: Answer,
}

/// A look at a provider that changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peek {
    pub now: Micros,
    pub pause: Micros,
    /// For each limit what is left, and the first slot of a permit of cost 1.
    pub limits: Vec<(i64, Micros)>,
}

impl Ledger {
    pub fn new(now: Micros) -> Self {
        Self {
            generation: Generation { ordinal: 1, since: now },
            pause: 0,
            parts: HashMap::new(),
            members: HashMap::new(),
            limits: HashMap::new(),
            accords: HashMap::new(),
            woken: Vec::new(),
            crowded: FEW,
            swept: now,
        }
    }

    /// Nobody sends before `until`. Only ever later.
    pub fn pause(&mut self, until: Micros) -> Micros {
        self.pause = self.pause.max(until);
        self.pause
    }

    /// Nobody in this part of the provider sends before `until`. Only ever later.
    pub fn pause_part(&mut self, now: Micros, part: &Arc<str>, until: Micros) -> Micros {
        // A part may have the name of a credential: what is long over is not kept.
        self.parts.retain(|_, until| *until > now - OVER);
        let pause = self.parts.entry(part.clone()).or_default();
        *pause = until.max(*pause);
        *pause
    }

    /// The ends of the last pauses of these parts.
    fn ends<'a>(&self, now: Micros, parts: &'a [Arc<str>]) -> Vec<(&'a str, Micros)> {
        let ends = parts.iter().filter_map(|part| Some((&**part, *self.parts.get(part)?)));
        ends.filter(|(_, end)| *end > now - OVER).collect()
    }

    /// A limit is set anew: the accord on it then, as text, and whether that is another one.
    pub fn set(&mut self, now: Micros, claim: &Claim, text: &str, number: Option<i64>) -> (String, bool) {
        let accord = self.accords.entry(claim.name.clone()).or_default();
        let before = accord.text().to_owned();
        accord.set(&claim.text, text, number, now);
        (accord.text().to_owned(), accord.text() != before)
    }

    /// Looks and changes nothing.
    ///
    /// # Errors
    /// What the caller goes by is not so.
    pub fn peek(&self, now: Micros, limits: &[Named]) -> Result<Peek, Undecided> {
        self.peek_in(now, limits, &[])
    }

    /// The same for a caller in these parts of the provider.
    ///
    /// # Errors
    /// As there.
    pub fn peek_in(&self, now: Micros, limits: &[Named], parts: &[Arc<str>]) -> Result<Peek, Undecided> {
        cover(now, limits)?;
        let heard = |Named { claim, .. }: &Named| {
            let mut accord = self.accords.get(&claim.name).cloned().unwrap_or_default();
            accord.hear(&claim.text, now);
            accord
        };
        agree(now, limits, limits.iter().map(heard))?;
        let mut desk = self.open(now, limits, 0, parts);
        desk.prune();
        let start = now.max(desk.resume);
        let limits = desk.limits.iter().map(|Seat { rule, state, resume, .. }| {
            let next = match (rule, state) {
                (Rule::Flight(rule), State::Flight(state)) => state.earliest(rule, start),
                _ => state.earliest(rule, start, 1, 1, *resume),
            };
            (state.left(rule, now, *resume), next)
        });
        Ok(Peek { now, pause: desk.resume, limits: limits.collect() })
    }

    /// What [`book`](Self::book) says to a lone caller that wants one permit now, if it can have it: charged in
    /// place, without the copy that a refusal needs. Tells the limit with the least left, and how much. Only
    /// for a clock that never steps back: what has passed is dropped even if there is no permit.
    pub fn take_now(
        &mut self,
        now: Micros,
        limits: &[Named],
        costs: &Costs,
        class: Class,
        parts: &[Arc<str>],
    ) -> Option<(usize, i64)> {
        let ends = self.ends(now, parts);
        let paused = ends.iter().map(|(_, end)| *end).fold(self.pause, Micros::max) > now;
        if paused || self.hear(now, limits).is_err() {
            return None;
        }
        for (Named { name, rule, .. }, cost) in limits.iter().zip(costs.iter()) {
            let resume = resumes(self.pause, &ends, name);
            // A place in flight has a holder, and classes must know of each other: that is for a booking.
            let booked = matches!(rule, Rule::Flight(_)) || class != 1;
            if booked || cost > rule.max() || rule.beyond(now) {
                return None;
            }
            let state = self.state(name, rule);
            state.prune(rule, now, resume);
            if cost > 0 && state.earliest(rule, now, class, cost, resume) > now {
                return None;
            }
        }
        let how = Taking { now, class, waited: false, paces: true };
        let mut left = Vec::with_capacity(limits.len());
        for (Named { name, rule, .. }, cost) in limits.iter().zip(costs.iter()) {
            let resume = resumes(self.pause, &ends, name);
            let shared = self.limits.get_mut(name)?;
            let state = shared.state.as_mut()?;
            if cost > 0 {
                state.take(rule, now, cost, how, resume);
                shared.idle = state.idle_at(rule);
            }
            left.push(state.left(rule, now, resume));
        }
        self.forget_the_idle(now);
        let tightest = tightest(&left, limits.iter().map(|limit| &limit.rule));
        Some((tightest, left.get(tightest).copied().unwrap_or(0)))
    }

    fn state(&mut self, name: &str, rule: &Rule) -> &mut State {
        // Not by an entry, which would take a name of its own each time.
        if self.limits.get(name).is_none_or(|shared| shared.state.is_none()) {
            self.limits.entry(name.to_owned()).or_default().state = Some(rule.fresh());
        }
        let shared = self.limits.get_mut(name).and_then(|shared| shared.state.as_mut());
        shared.unwrap_or_else(|| unreachable!("it was put there"))
    }

    /// Members whose turn it is now, under a limit of calls in flight: whoever called must tell them.
    pub fn take_woken(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.woken)
    }

    /// Limits with a state, and members that are remembered.
    pub fn kept(&self) -> (usize, usize) {
        (self.limits.len(), self.members.len())
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }

    pub fn book(&mut self, now: Micros, limits: &[Named], call: &Call) -> Reply {
        let known = self.members.get(&call.member).filter(|member| member.seen > now - GONE);
        if let Some(member) = known.filter(|member| member.number == call.number) {
            return Reply::Booked(Answer { now, ..member.answer.clone() });
        }
        let before = known.map_or(0, |member| member.last);
        if let Err(undecided) = self.hear(now, limits) {
            return Reply::Undecided(undecided);
        }
        let mut desk = self.open(now, limits, call.member, &call.parts);
        let resume = desk.resume;
        let entitled = desk.entitled();
        for (seat, limit) in desk.limits.iter_mut().zip(limits) {
            if let Some(shared) = self.limits.get(&limit.name) {
                seat.live = 1 + shared.crowd.live(now, call.member);
                seat.contended = shared.crowd.is_waiting(now, call.member);
            }
        }
        desk.prune();
        desk.seat(&call.places);
        desk.meet(&call.wants);

        let ours = call.generation == Some(self.generation);
        if ours {
            for booked in &call.returns {
                let (_, own) = desk.redeem(booked);
                desk.give(&own, true);
            }
            call.settles.iter().for_each(|change| desk.settle(change));
        }
        let start = now + call.lead;
        desk.base = start.max(resume);
        let reach = call.reach();
        desk.reach = reach;
        desk.shut = resume > self.pause && resume > now + reach;
        let confirmed = desk.confirm(&call.confirms, ours, (start - call.late).max(resume));
        let far_held = confirmed.iter().flatten().any(|&slot| slot > now + reach);
        let mut round = Round::begin(start, reach, before, far_held);
        let outcomes: Vec<_> = call.wants.iter().map(|want| desk.serve(want, &mut round)).collect();
        let next = call.wants.last().map(|want| match round.full {
            Some((limit, _)) => desk.no_place(limit),
            None => desk.refusal(desk.outlook(want, round.stop), want, start),
        });
        desk.queue(round.full);
        let asked: u32 = call.wants.iter().map(|want| want.count).sum();
        let unserved = asked - round.granted - round.refused;
        let waits = call.more || unserved > 0;

        let answer = Answer {
            now,
            decided: now,
            highest: desk.highest,
            generation: self.generation,
            pause: resume,
            confirmed,
            outcomes,
            paced: next.is_some_and(|next| desk.is_paced(&next)),
            next,
            left: desk.left(),
        };
        self.woken.extend(desk.entitled().into_iter().filter(|member| !entitled.contains(member)));
        let until = if waits { round.last.max(now) + 2 * reach } else { now };
        let Desk { limits: seats, touched, .. } = desk;
        for (limit, Seat { rule, state, far, .. }) in limits.iter().zip(seats) {
            let shared = self.limits.entry(limit.name.clone()).or_default();
            shared.far = far;
            // A refusal leaves no trace, not even of what was pruned for it: the clock may step back.
            if touched {
                shared.idle = state.idle_at(rule);
                shared.state = Some(state);
            }
            shared.crowd.tell(now, call.member, until, call.goodbye);
        }
        // Who says goodbye is remembered as any other: a repeated goodbye must not give its permits back twice.
        let last = round.last.max(before);
        let member = Member { seen: now, last, number: call.number, answer: answer.clone() };
        self.members.insert(call.member, member);
        self.forget_the_idle(now);
        Reply::Booked(answer)
    }

    /// What a caller says of its limits, and whether it may be decided by that.
    fn hear(&mut self, now: Micros, limits: &[Named]) -> Result<(), Undecided> {
        cover(now, limits)?;
        let heard = |Named { claim, .. }: &Named| {
            self.accords.get(&claim.name).is_some_and(|accord| accord.is_heard(claim, now))
        };
        if limits.iter().all(heard) {
            return Ok(());
        }
        for Named { claim, .. } in limits {
            self.accords.entry(claim.name.clone()).or_default().hear(&claim.text, now);
        }
        let accords = limits.iter().map(|limit| self.accords[&limit.claim.name].clone());
        agree(now, limits, accords)
    }

    /// The states a call is about, out of the ledger.
    fn open<'a>(&self, now: Micros, limits: &'a [Named], member: u64, parts: &[Arc<str>]) -> Desk<'a> {
        let ends = self.ends(now, parts);
        let resume = ends.iter().map(|(_, end)| *end).fold(self.pause, Micros::max);
        let limits = limits.iter().map(|Named { name, rule, reserve, .. }| {
            let shared = self.limits.get(name);
            let state = shared.and_then(|shared| shared.state.clone()).unwrap_or_else(|| rule.fresh());
            let far = shared.map(|shared| shared.far.clone()).unwrap_or_default();
            Seat {
                rule,
                state,
                resume: resumes(self.pause, &ends, name),
                reserve: *reserve,
                far,
                live: 1,
                contended: false,
                burnt: 0,
            }
        });
        let limits = limits.collect();
        Desk { member, now, base: now, resume, shut: false, reach: 0, highest: 0, touched: false, limits }
    }

    /// Scopes come and go: what says nothing any more is dropped, whenever there is twice as much as was left the
    /// last time; and if there is much, from time to time.
    fn forget_the_idle(&mut self, now: Micros) {
        let kept = self.members.len() + self.limits.len();
        if kept < self.crowded && (kept < FEW || now < self.swept + GONE) {
            return;
        }
        self.swept = now;
        self.members.retain(|_, member| member.seen > now - GONE);
        self.limits.retain(|_, shared| {
            shared.crowd.forget(now);
            shared.idle > now || !shared.crowd.is_empty() || !shared.far.is_idle(now)
        });
        self.crowded = FEW.max(2 * (self.members.len() + self.limits.len()));
    }
}

/// Whether the resets told lie around now.
fn cover(now: Micros, limits: &[Named]) -> Result<(), Undecided> {
    let covers = limits.iter().all(|limit| limit.rule.covers(now));
    if covers { Ok(()) } else { Err(Undecided::Stale(now)) }
}

/// Whether the caller goes by these accords.
fn agree(now: Micros, limits: &[Named], accords: impl Iterator<Item = Accord>) -> Result<(), Undecided> {
    let texts: Vec<_> = accords.map(|accord| accord.text().to_owned()).collect();
    let agreed = limits.iter().zip(&texts).all(|(limit, text)| limit.claim.agreed == *text);
    if agreed { Ok(()) } else { Err(Undecided::Changed(now, texts)) }
}

/// When a limit resumes: with the provider, and if its state is that of a part, with that. To a limit that calls of
/// other parts use, too, the pause of one is nothing.
fn resumes(pause: Micros, ends: &[(&str, Micros)], name: &str) -> Micros {
    let own = ends.iter().filter(|(part, _)| name.strip_suffix(part).is_some_and(|rest| rest.ends_with(':')));
    own.map(|(_, end)| *end).fold(pause, Micros::max)
}
