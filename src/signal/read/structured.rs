//! `RateLimit` and `RateLimit-Policy` (drafts 7 to 11 of the IETF): structured fields, joined by the policy's name.

use std::{borrow::Cow, time::Duration};

use http::HeaderValue;

use super::{
    drafts::Drafts,
    members::{Member, dictionary, list},
};
use crate::signal::{
    base::text,
    number::{Decimal, SECOND},
};

/// All lines of `RateLimit` are one field.
pub fn state<'a>(drafts: &mut Drafts<'a>, row: usize, group: &'a str, lines: &[(usize, &'a HeaderValue)]) {
    let [(_, one)] = lines else {
        let Some(field) = joined(lines) else { return };
        let members = list(&field, ["r", "t"]).unwrap_or_default();
        return put_states(drafts, row, group, members.into_iter().map(owned));
    };
    let Some(field) = text(one) else { return };
    match list(field, ["r", "t"]) {
        Some(members) => put_states(drafts, row, group, members.into_iter().map(named)),
        None => put_dictionary(drafts, row, group, &dictionary(field).unwrap_or_default()),
    }
}

fn put_states<'a>(
    drafts: &mut Drafts<'a>,
    row: usize,
    group: &'a str,
    members: impl Iterator<Item = Named<'a>>,
) {
    for (name, [remaining, reset]) in members {
        let Some(draft) = name.and_then(|name| drafts.at(group, name, 0)) else { continue };
        draft.remaining = remaining.map(|count| count as f64).or(draft.remaining);
        reset.into_iter().for_each(|reset| draft.reset(row, time(reset)));
    }
}

/// Draft 7: `limit=100, remaining=50, reset=5`.
fn put_dictionary<'a>(drafts: &mut Drafts<'a>, row: usize, group: &'a str, members: &[Member<'_>]) {
    const KEYS: [&str; 3] = ["limit", "remaining", "reset"];
    let ours = || members.iter().filter(|member| KEYS.contains(&member.key));
    if ours().next().is_none() || ours().any(|member| member.number.is_none()) {
        return;
    }
    let Some(draft) = drafts.at(group, "", 0) else { return };
    for member in ours() {
        let number = member.number.unwrap_or_default();
        match member.key {
            "limit" => draft.limit = Some(number as f64),
            "remaining" => draft.remaining = Some(number as f64),
            _ => draft.reset(row, time(number)),
        }
    }
}

/// All lines of `RateLimit-Policy`. Policies without a name (before draft 8) belong to no window.
pub fn policy<'a>(drafts: &mut Drafts<'a>, group: &'a str, lines: &[(usize, &'a HeaderValue)]) {
    if let [(_, one)] = lines {
        let members = text(one).and_then(|field| list(field, ["q", "w"])).unwrap_or_default();
        put_policies(drafts, group, members.into_iter().map(named));
    } else if let Some(field) = joined(lines) {
        let members = list(&field, ["q", "w"]).unwrap_or_default();
        put_policies(drafts, group, members.into_iter().map(owned));
    }
}

fn put_policies<'a>(drafts: &mut Drafts<'a>, group: &'a str, members: impl Iterator<Item = Named<'a>>) {
    for (name, [limit, length]) in members {
        let (Some(name), Some(limit)) = (name, limit) else { continue };
        let Some(draft) = drafts.at(group, name, 0) else { return };
        draft.limit = Some(limit as f64);
        draft.length = length.map(time);
    }
}

/// Fifteen digits of seconds are more than anybody can wait.
fn time(seconds: u64) -> Duration {
    Decimal::whole(seconds).wait(SECOND)
}

fn joined(lines: &[(usize, &HeaderValue)]) -> Option<String> {
    let lines: Option<Vec<_>> = lines.iter().map(|(_, line)| text(line)).collect();
    lines.map(|lines| lines.join(", "))
}

/// The name of a policy and of the partition that it is counted in, and its two numbers.
type Named<'a> = (Option<Cow<'a, str>>, [Option<u64>; 2]);

fn named(member: Member<'_>) -> Named<'_> {
    let name = match (member.name, member.partition) {
        (Some(name), Some(partition)) => {
            let hex: String = partition.iter().map(|byte| format!("{byte:02x}")).collect();
            Some(Cow::Owned(format!("{name}:{hex}")))
        }
        (name, _) => name,
    };
    (name, member.numbers)
}

/// The same of a field that is not kept.
fn owned<'a>(member: Member<'_>) -> Named<'a> {
    let (name, numbers) = named(member);
    (name.map(|name| Cow::Owned(name.into_owned())), numbers)
}
