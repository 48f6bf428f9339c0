//! The names of keys, which stand in the names of states.

use super::shown;
use crate::error::ConfigError;

const LONGEST: usize = 64;

pub(super) fn check(name: &str) -> Result<(), ConfigError> {
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || b"_.-".contains(&letter);
    if (1..=LONGEST).contains(&name.len()) && name.bytes().all(fits) {
        return Ok(());
    }
    Err(ConfigError(format!(
        "the key {} of a scope is no name: use 1 to {LONGEST} letters, digits, '.', '-' or '_', e.g. \
         `.each(\"tenant\")`",
        shown(name)
    )))
}
