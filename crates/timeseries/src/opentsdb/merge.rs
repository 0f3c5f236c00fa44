//! Combines the lines of a group at the times of all of them.

use super::aggregate::{Absent, Aggregator};
use super::window::Window;
use super::{Line, QueryError, Values, limits};
use crate::Source;

/// The number of values after which a query asks whether it may continue.
const VALUES_PER_CHECK: usize = 100_000;

/// Work that a query may still do.
pub(super) struct Budget<'a> {
    combined: u64,
    source: &'a dyn Source,
    /// The values combined since the source said that the query may continue.
    unchecked: usize,
}

impl<'a> Budget<'a> {
    pub(super) fn new(source: &'a dyn Source) -> Self {
        Self { combined: limits::COMBINED_MAX, source, unchecked: 0 }
    }

    fn spend(&mut self, values: usize) -> Result<(), QueryError> {
        let left = self.combined.checked_sub(values as u64);
        self.combined = left.ok_or(QueryError::OverLimit {
            what: "values to combine at the times of all series",
            limit: limits::COMBINED_MAX,
        })?;
        self.unchecked += values;
        if self.unchecked >= VALUES_PER_CHECK {
            self.unchecked = 0;
            self.source.check()?;
        }
        Ok(())
    }
}

/// The combined line. A line takes part from its first to its last time; between its points it gives what the aggregator says.
/// Lines of rates (`rate`) take part from their first time too but are not shown there, and give the earlier rate between points.
pub(super) fn merge(
    lines: &[Line],
    aggregator: Aggregator,
    rate: bool,
    window: &Window,
    budget: &mut Budget<'_>,
) -> Result<Line, QueryError> {
    let integers: Option<Vec<&[i64]>> = lines
        .iter()
        .map(|line| match &line.values {
            Values::Integers(values) if !rate => Some(values.as_slice()),
            _ => None,
        })
        .collect();
    if let Some(values) = integers {
        let between = |absent, x, a, b| between_integers(absent, x, a, b);
        let mut merged = Merge::new(lines, values, rate, window, budget)?;
        let (times, values) = merged.run(between, |values| aggregator.integers(values), aggregator)?;
        return Ok(Line { times, values: Values::Integers(values) });
    }
    let floats: Vec<Vec<f64>> = lines.iter().map(floats).collect();
    let values = floats.iter().map(Vec::as_slice).collect();
    let between = |absent, x, a: (i64, f64), b| match rate {
        true => a.1,
        false => between_floats(absent, x, a, b),
    };
    let mut merged = Merge::new(lines, values, rate, window, budget)?;
    let (times, values) = merged.run(between, |values| aggregator.floats(values), aggregator)?;
    Ok(Line::floats(times, values))
}

fn floats(line: &Line) -> Vec<f64> {
    line.values.clone().into_floats()
}

fn between_integers(absent: Absent, x: i64, (x0, y0): (i64, i64), (x1, y1): (i64, i64)) -> i64 {
    match absent {
        Absent::Line => {
            let rise = (x - x0).wrapping_mul(y1.wrapping_sub(y0));
            y0.wrapping_add(rise.wrapping_div(x1 - x0))
        }
        Absent::Zero => 0,
        Absent::Largest => i64::MAX,
        Absent::Smallest => i64::MIN,
        Absent::Previous => y0,
    }
}

fn between_floats(absent: Absent, x: i64, (x0, y0): (i64, f64), (x1, y1): (i64, f64)) -> f64 {
    match absent {
        Absent::Line => y0 + (x - x0) as f64 * (y1 - y0) / (x1 - x0) as f64,
        Absent::Zero => 0.0,
        Absent::Largest => f64::MAX,
        Absent::Smallest => f64::MIN,
        Absent::Previous => y0,
    }
}

/// A position in each line.
struct Merge<'a, 'b, T> {
    lines: &'a [Line],
    values: Vec<&'a [T]>,
    /// For each line, the number of the next point.
    next: Vec<usize>,
    /// For each line, the first point that has begun or will be shown.
    first: Vec<usize>,
    window: &'a Window,
    budget: &'a mut Budget<'b>,
}

impl<'a, 'b, T: Copy> Merge<'a, 'b, T> {
    fn new(
        lines: &'a [Line],
        values: Vec<&'a [T]>,
        rate: bool,
        window: &'a Window,
        budget: &'a mut Budget<'b>,
    ) -> Result<Self, QueryError> {
        let first: Vec<usize> =
            lines.iter().map(|line| line.times.partition_point(|time| *time < window.read_start)).collect();
        // A line with one rate has only the one that is not shown.
        let next = first.iter().zip(lines).map(|(first, line)| match rate {
            true if first + 1 >= line.len() => line.len(),
            true => first + 1,
            false => *first,
        });
        let next = next.collect();
        Ok(Self { lines, values, next, first, window, budget })
    }

    fn run(
        &mut self,
        between: impl Fn(Absent, i64, (i64, T), (i64, T)) -> T,
        mut combine: impl FnMut(&mut Vec<T>) -> T,
        aggregator: Aggregator,
    ) -> Result<(Vec<i64>, Vec<T>), QueryError> {
        let (mut times, mut results, mut present) = (Vec::new(), Vec::new(), Vec::new());
        let mut ended: Vec<bool> =
            self.next.iter().zip(self.lines).map(|(next, line)| *next == line.len()).collect();
        while let Some(now) = self.next_time() {
            self.budget.spend(self.lines.len())?;
            let shown = (self.window.start..=self.window.end).contains(&now);
            present.clear();
            for (at, ended) in ended.iter_mut().enumerate() {
                if *ended {
                    continue;
                }
                let (line, values) = (&self.lines[at].times, self.values[at]);
                let next = self.next[at];
                match line.get(next) {
                    Some(time) if *time == now => {
                        present.push(values[next]);
                        self.next[at] += 1;
                    }
                    Some(time) if next > self.first[at] => {
                        let before = (line[next - 1], values[next - 1]);
                        present.push(between(aggregator.absent(), now, before, (*time, values[next])));
                    }
                    Some(_) => {}
                    None => *ended = true,
                }
            }
            if shown {
                times.push(now);
                results.push(combine(&mut present));
            }
        }
        Ok((times, results))
    }

    fn next_time(&self) -> Option<i64> {
        let times =
            self.lines.iter().zip(&self.next).filter_map(|(line, next)| line.times.get(*next).copied());
        times.min().filter(|time| *time <= self.window.read_end)
    }
}
