//! What the replicas say of a limit: each what it was configured with, and what one has said at run time. Only texts:
//! who asks makes one limit of them, and the store decides for none who goes by another accord.

use super::{Micros, book::GONE};

/// A replica that asks, about one limit. A limit of a scope is one, whatever value its keys have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What all who have it call the limit.
    pub name: String,
    /// How it was configured here.
    pub text: String,
    /// The accord that this replica goes by, as text.
    pub agreed: String,
}

/// As text, one line each: `is 100/s` for what a replica is configured with, in the order in which they came, then
/// `now NUMBER 50/s` for a change, and `for 100/s` for what it stands in the place of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accord {
    text: String,
    /// Until when it holds, unless it is heard again.
    claims: Vec<(String, Micros)>,
    change: Option<Change>,
}

/// A limit that was set at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// A later one has a higher one: about when it was set, by the store's clock.
    pub number: i64,
    pub text: String,
    /// What it stands in the place of.
    pub of: Vec<String>,
}

impl Claim {
    /// Of a replica that has heard of no other.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { name: name.into(), agreed: format!("is {text}"), text }
    }
}

impl Accord {
    /// From its text, which does not tell until when a claim holds.
    pub fn read(text: &str) -> Self {
        let mut accord = Self::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("is", claim)) => accord.claims.push((claim.to_owned(), 0)),
                Some(("now", change)) => {
                    accord.change = change.split_once(' ').and_then(|(number, text)| {
                        Some(Change { number: number.parse().ok()?, text: text.to_owned(), of: Vec::new() })
                    });
                }
                Some(("for", claim)) => {
                    if let Some(change) = &mut accord.change {
                        change.of.push(claim.to_owned());
                    }
                }
                _ => {}
            }
        }
        accord.text = accord.written();
        accord
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn claims(&self) -> impl Iterator<Item = &str> {
        self.claims.iter().map(|(text, _)| &**text)
    }

    pub fn change(&self) -> Option<&Change> {
        self.change.as_ref()
    }

    /// Whether a replica goes by it, and need not be heard again yet.
    pub(super) fn is_heard(&self, claim: &Claim, now: Micros) -> bool {
        let live = |(text, till): &(String, Micros)| {
            let soon = if *text == claim.text { GONE / 2 } else { 0 };
            *till > now + soon
        };
        self.text == claim.agreed && self.claims.iter().all(live)
    }

    /// A replica says what it was configured with; what nobody has said for long is forgotten, and a change that
    /// stands for nothing any more.
    pub(super) fn hear(&mut self, text: &str, now: Micros) {
        self.claims.retain(|(claim, till)| *till > now || claim == text);
        match self.claims.iter_mut().find(|(claim, _)| claim == text) {
            Some((_, till)) if *till > now + GONE / 2 => {}
            Some((_, till)) => *till = now + GONE,
            None => self.claims.push((text.to_owned(), now + GONE)),
        }
        let claims = &self.claims;
        self.change.take_if(|change| !claims.iter().any(|(claim, _)| change.of.contains(claim)));
        self.text = self.written();
    }

    /// The limit is set anew, in the place of all that was heard. With a number it is told again by a replica that
    /// knows it, in the place of its own claim, because the store has forgotten that.
    pub(super) fn set(&mut self, own: &str, text: &str, number: Option<i64>, now: Micros) {
        self.hear(own, now);
        let last = self.change.as_ref().map_or(0, |change| change.number);
        match (&mut self.change, number) {
            (Some(change), Some(number)) if number == last => {
                if !change.of.iter().any(|of| of == own) {
                    change.of.push(own.to_owned());
                }
            }
            (_, Some(number)) if number <= last => {}
            (change, number) => {
                let of = if number.is_some() { vec![own.to_owned()] } else { texts(&self.claims) };
                let number = number.unwrap_or(now.max(last + 1));
                *change = Some(Change { number, text: text.to_owned(), of });
            }
        }
        self.text = self.written();
    }

    fn written(&self) -> String {
        let mut lines: Vec<_> = self.claims().map(|claim| format!("is {claim}")).collect();
        if let Some(change) = &self.change {
            lines.push(format!("now {} {}", change.number, change.text));
            lines.extend(change.of.iter().map(|claim| format!("for {claim}")));
        }
        lines.join("\n")
    }
}

fn texts(claims: &[(String, Micros)]) -> Vec<String> {
    claims.iter().map(|(text, _)| text.clone()).collect()
}
