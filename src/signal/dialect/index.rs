//! Which headers a dialect reads, found in one look at each.

use super::written::Header;
use crate::signal::base::CACHES;

/// Most headers of an answer are none of these. A name's length and three of its letters tell that, nearly always.
#[derive(Debug)]
pub struct Index {
    /// A bit for each length that a name may have; the last is for all that are longer.
    lengths: u64,
    /// For each length the letters that a name of that length may have.
    letters: [u64; LENGTHS],
    exact: Vec<(Box<str>, usize)>,
    /// What stands before and behind the star.
    starred: Vec<(Box<str>, Box<str>, usize)>,
}

const LENGTHS: usize = 64;

fn letters(name: &[u8]) -> u64 {
    let letter = |at: usize| name.get(at).copied().unwrap_or_default();
    1 << ((letter(0) ^ letter(3).rotate_left(2) ^ letter(5).rotate_left(4)) & 63)
}

impl Index {
    /// The headers of a dialect in its order, and after them those of caches; names in lower case.
    pub fn of(headers: &[Header]) -> Self {
        let mut index = Self { lengths: 0, letters: [0; LENGTHS], exact: Vec::new(), starred: Vec::new() };
        let names = headers.iter().map(|header| header.header.as_str()).chain(CACHES);
        for (at, name) in names.enumerate() {
            match name.split_once('*') {
                None => {
                    index.letters[name.len().min(LENGTHS - 1)] |= letters(name.as_bytes());
                    index.exact.push((name.into(), at));
                }
                Some((before, behind)) => {
                    // A short beginning does not tell all letters.
                    let may = if before.len() > 5 { letters(before.as_bytes()) } else { u64::MAX };
                    let least = (before.len() + behind.len() + 1).min(LENGTHS - 1);
                    index.letters[least..].iter_mut().for_each(|bits| *bits |= may);
                    index.starred.push((before.into(), behind.into(), at));
                }
            }
        }
        let used = |length: &usize| index.letters[*length] != 0;
        index.lengths = (0..LENGTHS).filter(used).map(|length| 1 << length).sum();
        index
    }

    /// Which of the headers this is, and what the star stands for.
    #[inline]
    pub fn find<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let length = name.len().min(LENGTHS - 1);
        if self.lengths & 1 << length == 0 || self.letters[length] & letters(name.as_bytes()) == 0 {
            return None;
        }
        self.look(name)
    }

    /// A name without a star goes before those with one.
    fn look<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        if let Some((_, at)) = self.exact.iter().find(|(exact, _)| **exact == *name) {
            return Some((*at, ""));
        }
        self.starred.iter().find_map(|(before, behind, at)| {
            let star = name.strip_prefix(&**before)?.strip_suffix(&**behind)?;
            (!star.is_empty()).then_some((*at, star))
        })
    }
}
