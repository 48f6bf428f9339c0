//! The arrivals as a picture: above what the quota judges, below how evenly they came.

use std::path::Path;

use plotters::prelude::*;
use tollgate::Limit;

use crate::{
    Outcome,
    clock::{Nanos, nanos},
    upstream::Arrival,
};

const SIZE: (u32, u32) = (1000, 700);
/// Points across the picture; of what lies closer together the most is drawn, so that nothing over the quota
/// is smoothed away.
const POINTS: usize = 800;

pub fn draw(file: &Path, trace: &[Arrival], limit: &Limit) -> Outcome<()> {
    let (Some(first), Some(last)) = (trace.first(), trace.last()) else {
        return Err("nothing has arrived".into());
    };
    let (span, window) = ((last.at - first.at).max(1), nanos(limit.window()));
    let amount = |arrival: &Arrival| (arrival.at - first.at, arrival.price.of(limit.unit()));
    let arrivals: Vec<_> = trace.iter().map(amount).collect();
    let quota = limit.max() as f64;

    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let (upper, lower) = root.split_vertically(SIZE.1 / 2);
    let title = format!("arrivals in the last {:?} (red: the quota, {})", limit.window(), limit.max());
    panel(&upper, &title, limit.unit(), &rolling(&arrivals, window, span), quota, span)?;
    let bin = (window / 10).max(1);
    let title = format!("arrivals in each {:?} (red: a tenth of the quota)", limit.window() / 10);
    panel(&lower, &title, limit.unit(), &binned(&arrivals, bin), quota / 10.0, span)?;
    Ok(root.present()?)
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    unit: &str,
    line: &[(f64, f64)],
    quota: f64,
    span: Nanos,
) -> Outcome<()> {
    let seconds = span as f64 / 1e9;
    let top = line.iter().map(|(_, count)| *count).fold(quota, f64::max) * 1.1;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 27))
        .margin(16)
        .x_label_area_size(52)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..seconds, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 20))
        .axis_desc_style(("sans-serif", 21))
        .x_desc("seconds since the first arrival")
        .y_desc(unit)
        .x_label_formatter(&|second| format!("{}", (second * 100.0).round() / 100.0))
        .y_label_formatter(&|count| format!("{}", (count * 10.0).round() / 10.0))
        .draw()?;
    chart.draw_series(LineSeries::new(line.iter().copied(), BLUE.stroke_width(2)))?;
    chart.draw_series(LineSeries::new([(0.0, quota), (seconds, quota)], RED.stroke_width(2)))?;
    Ok(())
}

/// For each point the most that any window held which ended in its part of the picture.
fn rolling(arrivals: &[(Nanos, u64)], window: Nanos, span: Nanos) -> Vec<(f64, f64)> {
    let step = (span / POINTS as u64).max(1);
    let (mut first, mut next, mut sum) = (0, 0, 0);
    let mut line = Vec::with_capacity(POINTS);
    for from in (0..=span).step_by(step as usize) {
        let expire = |first: &mut usize, sum: &mut u64, now: Nanos| {
            while let Some((_, amount)) = arrivals.get(*first).filter(|(time, _)| time + window <= now) {
                *sum -= amount;
                *first += 1;
            }
        };
        expire(&mut first, &mut sum, from);
        let mut most = sum;
        while let Some((time, amount)) = arrivals.get(next).filter(|(time, _)| *time < from + step) {
            expire(&mut first, &mut sum, *time);
            next += 1;
            sum += amount;
            most = most.max(sum);
        }
        line.push((from as f64 / 1e9, most as f64));
    }
    line
}

/// A step for each bin.
fn binned(arrivals: &[(Nanos, u64)], bin: Nanos) -> Vec<(f64, f64)> {
    let mut counts = vec![0u64; arrivals.last().map_or(0, |(last, _)| (last / bin) as usize + 1)];
    for (time, amount) in arrivals {
        counts[(time / bin) as usize] += amount;
    }
    // The last bin is not over yet.
    counts.pop();
    let edge = |at: usize| at as f64 * bin as f64 / 1e9;
    let steps = counts.iter().enumerate();
    steps.flat_map(|(at, count)| [(edge(at), *count as f64), (edge(at + 1), *count as f64)]).collect()
}
