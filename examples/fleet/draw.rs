//! The report as text.

use std::fmt::{Error, Write};

use tollgate::Limit;

use crate::{price::REQUESTS, report::Report, trip::Aftermath};

/// Columns up to the quota, and in all.
const QUOTA: usize = 50;
const WIDTH: usize = 75;
const ROWS: usize = 40;

pub fn text(report: &Report, limit: &Limit) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = table(&mut out, report)
        .and_then(|()| classes(&mut out, report))
        .and_then(|()| bars(&mut out, report, limit))
        .and_then(|()| limits(&mut out, report))
        .and_then(|()| sums(&mut out, report));
    out
}

fn table(out: &mut String, report: &Report) -> Result<(), Error> {
    writeln!(out, "\nreplica  permits   share  rejected     429    wait p50    wait p99")?;
    for part in &report.per_replica {
        let share = 100.0 * part.permits as f64 / report.permits.max(1) as f64;
        writeln!(
            out,
            "{:>7}  {:>7}  {share:>5.1} %  {:>8}  {:>6}  {:>7.0} ms  {:>7.0} ms",
            part.replica, part.permits, part.rejected, part.upstream_429, part.wait_p50_ms, part.wait_p99_ms,
        )?;
    }
    writeln!(
        out,
        "    all  {:>7}  100.0 %  {:>8}  {:>6}  {:>7.0} ms  {:>7.0} ms\n",
        report.permits, report.rejected, report.upstream_429, report.wait_p50_ms, report.wait_p99_ms,
    )
}

/// By priority, if there is more than one.
fn classes(out: &mut String, report: &Report) -> Result<(), Error> {
    if report.priorities.len() < 2 {
        return Ok(());
    }
    writeln!(
        out,
        "priority  permits     wait p50    wait p99    wait max  (in slots)               unserved"
    )?;
    for class in &report.priorities {
        writeln!(
            out,
            "{:>8}  {:>7}  {:>8.0} ms {:>8.0} ms {:>8.0} ms  ({:.1}, {:.1}, {:.1})  {:>6} ({:.0} ms)",
            class.priority,
            class.permits,
            class.wait_p50_ms,
            class.wait_p99_ms,
            class.wait_max_ms,
            class.wait_p50_slots,
            class.wait_p99_slots,
            class.wait_max_slots,
            class.unserved,
            class.unserved_max_ms,
        )?;
    }
    writeln!(out)
}

/// Each by itself, if there is more to be said than of one that counts requests.
fn limits(out: &mut String, report: &Report) -> Result<(), Error> {
    if report.limits.len() > 1 || report.limits.iter().any(|limit| limit.unit != REQUESTS) {
        writeln!(out, "limit                         most in any window, of     429     used")?;
        for limit in &report.limits {
            let (most, max) = (limit.most.unwrap_or(0), limit.max);
            let used = 100.0 * limit.used;
            writeln!(out, "{:<28} {most:>12} {max:>12}  {:>6}  {used:>5.1} %", limit.limit, limit.refused)?;
        }
        writeln!(out)?;
    }
    for unit in &report.unsettled {
        let (booked, real) = (unit.booked, unit.real);
        writeln!(
            out,
            "unsettled {} in flight     {} at most, {} with those on their way to and from the store; {booked} booked, {real} in truth",
            unit.unit, unit.in_flight, unit.bound
        )?;
    }
    match &report.in_flight {
        None => Ok(()),
        Some(calls) => writeln!(
            out,
            "calls in flight               {} at most, of {}, {} refused, {:.1} % used",
            calls.most,
            calls.max,
            calls.refused,
            100.0 * calls.used
        ),
    }
}

/// One row per window after the first arrival, the quota marked.
fn bars(out: &mut String, report: &Report, limit: &Limit) -> Result<(), Error> {
    let window = limit.window();
    let what = if limit.unit() == REQUESTS { "arrivals" } else { limit.unit() };
    writeln!(out, "{what} in each {window:?}, the mark is the quota of {}", limit.max())?;
    for (row, count) in report.windows.iter().take(ROWS).enumerate() {
        let filled = (*count as u128 * QUOTA as u128).div_ceil(u128::from(limit.max())) as usize;
        let column = |at: usize| match at {
            QUOTA => '|',
            _ if at < filled => '#',
            _ if at == WIDTH && filled > WIDTH => '>',
            _ => ' ',
        };
        let bar: String = (0..=WIDTH.min(filled.max(QUOTA))).map(column).collect();
        writeln!(out, "{:>7} s  {bar} {count}", (window * row as u32).as_secs_f64())?;
    }
    if let Some(most) = report.windows.iter().skip(ROWS).max() {
        writeln!(out, "{} more, at most {most} in each", report.windows.len() - ROWS)?;
    }
    writeln!(out)
}

fn sums(out: &mut String, report: &Report) -> Result<(), Error> {
    if let Some(most) = report.max_in_window {
        let granted = report.max_granted_in_window;
        writeln!(out, "most arrivals in any window   {most} ({granted} permits)")?;
    }
    let outside = report.upstream_429_outside_trip;
    match &report.trip {
        None => writeln!(out, "refused by the upstream       {}", report.upstream_429)?,
        Some(trip) => {
            writeln!(
                out,
                "refused by the upstream       {} ({outside} outside the trip)",
                report.upstream_429
            )?;
            aftermath(out, trip)?;
        }
    }
    if let Some(change) = &report.change {
        let (limit, most, used) = (&change.limit, change.most_after, 100.0 * change.used_after);
        writeln!(out, "a window after {limit} was set  {most} at most in any window, {used:.1} % used")?;
    }
    if report.redirects > 0 {
        writeln!(out, "redirects, arrivals there     {}, {}", report.redirects, report.landed)?;
    }
    writeln!(out, "quota used                    {:.1} %", 100.0 * report.utilization)?;
    writeln!(out, "fairness (Jain)               {:.4}", report.jain)?;
    let per_permit = report.redis_calls as f64 / report.permits.max(1) as f64;
    writeln!(out, "Redis calls                   {} ({per_permit:.2} per permit)", report.redis_calls)?;
    writeln!(out, "permits exchanged, being late {}", report.late)?;
    if report.store_errors + report.send_errors > 0 {
        writeln!(out, "errors of Redis, of sending   {}, {}", report.store_errors, report.send_errors)?;
    }
    if let Some(spread) = &report.spread {
        writeln!(
            out,
            "permits per window/40         {} to {}, mean {:.2}, off by {:.2} at most (after two windows)",
            spread.min, spread.max, spread.mean, spread.worst_deviation
        )?;
    }
    if let Some(ratio) = report.wait_ratio {
        writeln!(out, "wait p99 over a full queue's  {ratio:.2} (after two windows)")?;
    }
    Ok(())
}

fn aftermath(out: &mut String, trip: &Aftermath) -> Result<(), Error> {
    let ms = |time: Option<f64>| time.map_or("never".into(), |time| format!("{time:.1} ms"));
    let (stop, resumed) = (ms(trip.stop_ms), ms(trip.resumed_ms));
    writeln!(out, "trip: from 429 to last send   {stop}, {} sent after 60 ms", trip.during)?;
    writeln!(
        out,
        "trip: from its end to return  {resumed}, then {} in 200 ms (paced {:.1}), {} refused",
        trip.first_200_ms, trip.paced_200_ms, trip.refused_after
    )
}
