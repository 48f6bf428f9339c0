//! From what is written to what can be used, or an error that names what is wrong.

use std::{collections::BTreeSet, time::Duration};

use http::HeaderName;

use super::{
    Index, Rules,
    written::{Answer, Facts, Header, Means, Verdict, Written},
};
use crate::{Limit, LimitKind, signal::form::Form};

/// A pause of more than a month is believed of nobody.
const LONGEST_S: u32 = 31 * 24 * 60 * 60;

/// What is documented about a window.
#[derive(Debug)]
pub struct Window {
    pub limit: Option<f64>,
    /// Knows its resets.
    pub per: Option<Limit>,
}

pub fn rules(written: Written) -> Result<Rules, String> {
    let Written { answers, headers, windows, lengths, body, floor_s, longest_sleep_s, .. } = written;
    for answer in &answers {
        check_answer(answer)?;
        if let Some(window) = answer.window.as_ref().filter(|window| !windows.contains_key(*window)) {
            return Err(format!("an answer names the window {window:?}, which is not among `windows`"));
        }
    }
    for (name, seconds) in [("floor_s", floor_s), ("longest_sleep_s", longest_sleep_s)] {
        if let Some(seconds) = seconds.filter(|seconds| *seconds > LONGEST_S) {
            return Err(format!("{name} is {seconds}, more than 31 days ({LONGEST_S})"));
        }
    }
    let pointers = body.waits.iter().map(|wait| &wait.at);
    let bucket = body.bucket.iter().flat_map(|b| [&b.limit, &b.remaining, &b.per_second, &b.cost]);
    let said = answers.iter().filter_map(|answer| answer.body.as_ref()).flat_map(|body| &body.at);
    if let Some(bad) = pointers.chain(bucket).chain(said).find(|pointer| !pointer.starts_with('/')) {
        return Err(format!("{bad:?} is no pointer into JSON: it begins with \"/\", e.g. \"/error/code\""));
    }
    let headers = with_base(headers.into_iter().map(check_header).collect::<Result<_, _>>()?)?;
    let windows = windows.into_iter().map(|(name, facts)| Ok((name.clone(), window(&name, facts)?)));
    let seconds = |seconds: u32| Duration::from_secs(seconds.into());
    let answers: Vec<_> = answers.into_iter().chain(base_answers()).collect();
    let mut statuses = [[0; 16]; 2];
    for answer in &answers {
        for status in &answer.status {
            let bit = 1 << (status % 64);
            statuses[1][usize::from(status / 64)] |= bit;
            statuses[0][usize::from(status / 64)] |= if answer.body.is_none() { bit } else { 0 };
        }
    }
    Ok(Rules {
        index: Index::of(&headers),
        answers,
        statuses,
        headers,
        windows: windows.collect::<Result<_, String>>()?,
        lengths,
        body,
        floor: floor_s.map(seconds),
        longest_sleep: longest_sleep_s.map(seconds),
    })
}

/// What holds for every provider that does not say otherwise (RFC 6585, RFC 9110).
fn base_answers() -> [Answer; 2] {
    let rate =
        |status, hinted| Answer { status: vec![status], means: Verdict::Rate, hinted, ..Answer::default() };
    [rate(429, false), rate(503, true)]
}

/// The finer ones first: they are the same wait, without its rounding.
fn with_base(mut headers: Vec<Header>) -> Result<Vec<Header>, String> {
    let mut names = BTreeSet::new();
    if let Some(twice) = headers.iter().find(|header| !names.insert(header.header.clone())) {
        return Err(format!("the header {:?} is there twice", twice.header));
    }
    for (name, form) in [
        ("retry-after-ms", Form::Milliseconds),
        ("x-ms-retry-after-ms", Form::Milliseconds),
        ("retry-after", Form::SecondsOrDate),
    ] {
        if !names.contains(name) {
            let (header, means) = (name.to_owned(), Means::Wait);
            headers.push(Header { header, means, form, window: None, windows: Vec::new() });
        }
    }
    Ok(headers)
}

fn check_answer(answer: &Answer) -> Result<(), String> {
    if let Some(status) = answer.status.iter().find(|status| !(100..1000).contains(*status)) {
        return Err(format!("{status} is no status: they go from 100 to 999"));
    }
    if answer.status.is_empty() {
        return Err("an answer names no status".to_owned());
    }
    if let Some(body) = answer.body.as_ref().filter(|body| body.is.is_empty() && body.contains.is_empty()) {
        return Err(format!(
            "an answer wants a body, but not what it says: add `is` or `contains` to {:?}",
            body.at
        ));
    }
    match &answer.header {
        Some(says) if HeaderName::from_bytes(says.name.as_bytes()).is_err() => {
            Err(format!("{:?} is no name of a header", says.name))
        }
        _ => Ok(()),
    }
}

fn check_header(header: Header) -> Result<Header, String> {
    let name = header.header.to_ascii_lowercase();
    let plain = name.replacen('*', "", 1);
    if HeaderName::from_bytes(plain.as_bytes()).is_err() || plain.contains('*') {
        return Err(format!("{name:?} is no name of a header, with one \"*\" at most"));
    }
    Ok(Header { header: name, ..header })
}

fn window(name: &str, facts: Facts) -> Result<Window, String> {
    let per = facts.per.map(|per| {
        let limit = format!("1/{per}").parse::<Limit>().map_err(|error| error.to_string())?;
        match limit.kind() {
            LimitKind::Aligned | LimitKind::Calendar => Ok(limit),
            _ => Err(r#"use e.g. "15min aligned" or "day resets 00:00 UTC""#.to_owned()),
        }
    });
    let per = match per {
        // Without time zones this window's end cannot be told; all else can.
        Some(Err(_)) if jiff::tz::db().is_definitively_empty() => None,
        Some(Err(error)) => return Err(format!("the window {name:?} is per what? {error}")),
        Some(Ok(limit)) => Some(limit),
        None => None,
    };
    Ok(Window { limit: facts.limit.map(f64::from), per })
}
