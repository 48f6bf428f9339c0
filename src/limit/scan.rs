//! A cursor over the text of a limit. White space before a piece is skipped; a piece is never split by it.

use super::error::excerpt;

pub(super) struct Scan<'a> {
    text: &'a str,
    rest: &'a str,
}

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str) -> Scan<'a> {
        Scan { text, rest: text.trim_start() }
    }

    pub(super) fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next letters, lower-cased, without taking them; empty if something else comes next.
    pub(super) fn peek_word(&self) -> String {
        self.rest[..self.length(|c| c.is_ascii_alphabetic())].to_ascii_lowercase()
    }

    /// Takes the next letters, lower-cased; empty if something else comes next.
    pub(super) fn word(&mut self) -> String {
        self.take(|c| c.is_ascii_alphabetic()).to_ascii_lowercase()
    }

    /// Takes the next letters if they are this word.
    pub(super) fn keyword(&mut self, word: &str) -> bool {
        let found = self.peek_word() == word;
        if found {
            self.word();
        }
        found
    }

    /// Takes the next piece if it is this word and nothing more.
    pub(super) fn plain(&mut self, word: &str) -> bool {
        let found = self.rest[..self.length(|c| !c.is_whitespace())].eq_ignore_ascii_case(word);
        if found {
            self.word();
        }
        found
    }

    /// Takes the next character if it is this one.
    pub(super) fn symbol(&mut self, symbol: char) -> bool {
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// Whether a digit comes next.
    pub(super) fn at_digit(&self) -> bool {
        self.rest.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether white space was skipped just now.
    pub(super) fn after_blank(&self) -> bool {
        let done = self.text.len() - self.rest.len();
        self.text[..done].ends_with(char::is_whitespace)
    }

    /// Takes everything up to the next slash or white space.
    pub(super) fn piece(&mut self) -> &'a str {
        self.take(|c| c != '/' && !c.is_whitespace())
    }

    /// Takes everything up to the next white space.
    pub(super) fn chunk(&mut self) -> &'a str {
        self.take(|c| !c.is_whitespace())
    }

    /// Takes digits and what people write between them.
    pub(super) fn digits(&mut self) -> &'a str {
        self.take(|c| c.is_ascii_digit() || matches!(c, '_' | '.' | ','))
    }

    /// Takes a whole number. One that overflows is [`u64::MAX`], which no range contains, so that the range
    /// is what the error talks about. `expected` is the message for something else.
    pub(super) fn number(&mut self, expected: &str) -> Result<u64, String> {
        if !self.at_digit() {
            let found = self.found();
            return Err(format!("{expected}; found {found} instead of a whole number"));
        }
        let text = self.digits();
        whole(text).ok_or_else(|| {
            let found = excerpt(text);
            format!("{expected}; found {found:?} instead of a whole number")
        })
    }

    /// What comes next, for a message.
    pub(super) fn found(&self) -> String {
        let chunk = &self.rest[..self.length(|c| !c.is_whitespace())];
        match chunk {
            "" => "the end".to_owned(),
            _ => format!("{:?}", excerpt(chunk)),
        }
    }

    fn length(&self, wanted: impl Fn(char) -> bool) -> usize {
        self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len())
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let (piece, rest) = self.rest.split_at(self.length(wanted));
        self.rest = rest.trim_start();
        piece
    }
}

/// Digits with single underscores between them.
fn whole(text: &str) -> Option<u64> {
    let groups_are_digits =
        text.split('_').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()));
    groups_are_digits.then(|| text.replace('_', "").parse().unwrap_or(u64::MAX))
}
