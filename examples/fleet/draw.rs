//! The report as text.

use std::fmt::{Error, Write};

use tollgate::Limit;

use crate::{report::Report, trip::Aftermath};

/// Columns up to the quota, and in all.
const QUOTA: usize = 50;
const WIDTH: usize = 75;
const ROWS: usize = 40;

pub fn text(report: &Report, limit: &Limit) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = table(&mut out, report)
        .and_then(|()| bars(&mut out, report, limit))
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

/// One row per window after the first arrival, the quota marked.
fn bars(out: &mut String, report: &Report, limit: &Limit) -> Result<(), Error> {
    let window = limit.window();
    writeln!(out, "arrivals in each {window:?}, the mark is the quota of {}", limit.max())?;
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
