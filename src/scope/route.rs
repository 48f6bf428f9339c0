//! One route: a method and a pattern of the path. What no request could match is refused, since a limit in which
//! nothing counts would limit nothing.

use matchit::{InsertError, Router};

use super::shown;
use crate::error::ConfigError;

const LONGEST: usize = 512;
/// More of them than this, and the router panics.
const PARAMS: usize = 25;
const CATCH_ALL: &str = "use {*rest} only as the last segment, and alone in it";

/// A router for one pattern: of several it would name only the best that matches, and refuses some side by side.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// `None`: any.
    method: Option<Box<str>>,
    path: Router<()>,
}

impl Route {
    pub(super) fn parse(text: &str) -> Result<Self, ConfigError> {
        let parsed = if text.len() > LONGEST {
            Err(format!("it is longer than {LONGEST} bytes: use {{*rest}} for a part of it"))
        } else {
            Self::read(text)
        };
        parsed.map_err(|problem| ConfigError(format!("the route {} of a scope: {problem}", shown(text))))
    }

    fn read(text: &str) -> Result<Self, String> {
        let (method, pattern) = match text.split_once(' ') {
            Some((method, pattern)) if !text.starts_with('/') => (Some(method), pattern),
            _ => (None, text),
        };
        if let Some(method) = method {
            check_method(method)?;
        }
        if !pattern.starts_with('/') {
            let example = r#"e.g. "POST /v1/search/{index}" or "/v1/{*rest}""#;
            return Err(format!("write a method, one space and a path that begins with '/', {example}"));
        }
        if pattern.matches('{').count() > PARAMS {
            return Err(format!("it has more than {PARAMS} names in braces: use {{*rest}} for the rest"));
        }
        pattern[1..].split('/').try_for_each(check_segment)?;
        let mut path = Router::new();
        path.insert(pattern, ()).map_err(|error| match error {
            InsertError::InvalidParamSegment => "use one name in braces for each segment".to_owned(),
            InsertError::InvalidCatchAll => CATCH_ALL.to_owned(),
            other => other.to_string(),
        })?;
        Ok(Self { method: method.map(Into::into), path })
    }

    pub(super) fn matches(&self, method: &str, path: &str) -> bool {
        self.method.as_deref().is_none_or(|own| own == method) && self.path.at(path).is_ok()
    }
}

fn check_method(method: &str) -> Result<(), String> {
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || b"_-".contains(&letter);
    if method.is_empty() || !method.bytes().all(fits) {
        return Err(format!("{} is no method: write e.g. GET, or nothing for any", shown(method)));
    }
    let upper = method.to_ascii_uppercase();
    if upper == method { Ok(()) } else { Err(format!("write the method as {upper}")) }
}

/// Segments that a URL could have, and names in braces.
fn check_segment(segment: &str) -> Result<(), String> {
    let told = shown(segment);
    if segment.starts_with([':', '*']) {
        return Err(format!(
            "{told} would match itself only: write {{name}} for a segment, {{*rest}} for the rest"
        ));
    }
    if [".", ".."].contains(&&*segment.to_ascii_lowercase().replace("%2e", ".")) {
        return Err(format!("no URL has a segment {told}: leave it out"));
    }
    let mut rest = segment;
    while let Some((literal, tail)) = rest.split_once('{') {
        check_literal(literal)?;
        let (name, tail) = tail.split_once('}').ok_or_else(|| format!("in {told}, close the brace"))?;
        // The router takes it, and does not document what it means.
        if name.starts_with('*') && !segment.starts_with("{*") {
            return Err(CATCH_ALL.to_owned());
        }
        let name = name.strip_prefix('*').unwrap_or(name);
        if name.is_empty() || !name.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_') {
            return Err(format!("in {told}, use ASCII letters, digits and '_' between braces"));
        }
        rest = tail;
    }
    check_literal(rest)
}

fn check_literal(literal: &str) -> Result<(), String> {
    let in_urls = |letter: &char| letter.is_ascii_graphic() && !"\"#<>?\\`{}".contains(*letter);
    match literal.chars().find(|letter| !in_urls(letter)) {
        None => Ok(()),
        Some('?' | '#') => Err("only the path is compared: leave out the query and the fragment".to_owned()),
        Some('}') => Err("a brace is closed that is not open".to_owned()),
        Some(letter) => {
            Err(format!("no path of a URL has {letter:?}: write it percent-encoded, as the URL has it"))
        }
    }
}
