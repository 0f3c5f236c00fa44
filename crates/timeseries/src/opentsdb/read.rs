//! Reads the lines of series.

use std::ops::{ControlFlow, Range};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use store::{ReadOrder, TagMatcher};

use super::downsample::{Downsample, Downsampler};
use super::metric::{NumberColumns, Opened};
use super::query::at_most;
use super::window::Window;
use super::{Line, Number, QueryError, Tags, Values, limits};
use crate::{SeriesRead, each_series};

/// A series and its line.
#[derive(Debug)]
pub(super) struct SeriesLine {
    pub(super) tags: Tags,
    pub(super) line: Line,
}

/// Reads the series that satisfy the matchers and have points in the window, and downsamples them.
pub(super) fn read(
    metric: &Opened<'_>,
    matchers: &[TagMatcher],
    window: Window,
    downsample: Option<Downsample>,
    into: &mut Vec<SeriesLine>,
) -> Result<(), QueryError> {
    let held = into.iter().map(|series| series.line.len()).sum();
    let columns = metric.table.columns();
    let names = columns.tags.iter().map(|tag| tag.tag.to_string()).collect();
    let mut reading = Reading { window, downsample, names, current: None, held, into, error: None };
    let read = SeriesRead {
        matchers: matchers.to_vec(),
        range: window.range(),
        fields: metric.fields(),
        order: ReadOrder::SeriesThenTime,
    };
    metric.table.read(&read, &mut |batch| reading.batch(batch))?;
    let _ = reading.finish_series();
    reading.error.map_or(Ok(()), Err)
}

struct Reading<'a> {
    window: Window,
    downsample: Option<Downsample>,
    /// The names of the tags, in the order of the columns.
    names: Vec<String>,
    current: Option<(Vec<Option<String>>, Points)>,
    /// The number of points that wait in `into`.
    held: usize,
    into: &'a mut Vec<SeriesLine>,
    error: Option<QueryError>,
}

/// The points of the series that is being read.
enum Points {
    Raw(Line),
    Downsampled(Downsampler),
}

impl Reading<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> ControlFlow<()> {
        let tags = self.names.len();
        let times = batch.column(tags).as_primitive::<TimestampMicrosecondType>().values();
        let values = NumberColumns::of(batch, tags + 1);
        each_series(batch, tags, |series, rows| self.rows(series, times, &values, rows))
    }

    fn rows(
        &mut self,
        series: &[Option<&str>],
        times: &[i64],
        values: &NumberColumns<'_>,
        rows: Range<usize>,
    ) -> ControlFlow<()> {
        if values.are_absent(rows.clone()) {
            return ControlFlow::Continue(());
        }
        let same = self
            .current
            .as_ref()
            .is_some_and(|(current, _)| current.iter().map(Option::as_deref).eq(series.iter().copied()));
        if !same {
            self.finish_series()?;
            let points = match self.downsample {
                Some(downsample) => Points::Downsampled(Downsampler::new(downsample, self.window)),
                None => Points::Raw(Line { times: Vec::new(), values: Values::Integers(Vec::new()) }),
            };
            self.current = Some((series.iter().map(|value| value.map(str::to_owned)).collect(), points));
        }
        if let Some((_, points)) = &mut self.current {
            points.extend(times, values, rows);
            let held = self.held + points.held();
            if let Err(error) = at_most(held, "points", limits::POINTS_MAX) {
                self.error = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn finish_series(&mut self) -> ControlFlow<()> {
        let Some((values, points)) = self.current.take() else { return ControlFlow::Continue(()) };
        let named = self.names.iter().cloned().zip(values);
        let mut tags: Tags = named.filter_map(|(name, value)| Some((name, value?))).collect();
        tags.sort_unstable();
        let finished = points.finish().and_then(|line| {
            self.held += line.len();
            self.into.push(SeriesLine { tags, line });
            at_most(self.held, "points", limits::POINTS_MAX)?;
            at_most(self.into.len(), "series", limits::SERIES_MAX)
        });
        match finished {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl Points {
    fn held(&self) -> usize {
        match self {
            Self::Raw(line) => line.len(),
            Self::Downsampled(downsampler) => downsampler.held(),
        }
    }

    fn extend(&mut self, times: &[i64], values: &NumberColumns<'_>, rows: Range<usize>) {
        for row in rows {
            let millis = times[row].div_euclid(1000);
            match values.number(row) {
                Some(Number::Integer(value)) => self.integer(millis, value),
                Some(Number::Float(value)) => self.float(millis, value),
                None => {}
            }
        }
    }

    fn integer(&mut self, millis: i64, value: i64) {
        match self {
            Self::Raw(Line { times, values: Values::Integers(values) }) => add(times, values, millis, value),
            Self::Raw(_) => self.float(millis, value as f64),
            Self::Downsampled(downsampler) => downsampler.push(millis, value as f64),
        }
    }

    fn float(&mut self, millis: i64, value: f64) {
        match self {
            Self::Raw(Line { times, values: Values::Floats(values) }) => add(times, values, millis, value),
            Self::Raw(Line { times, values }) => {
                // The first fraction of a series makes all its values fractions.
                let mut floats = std::mem::replace(values, Values::Floats(Vec::new())).into_floats();
                add(times, &mut floats, millis, value);
                *values = Values::Floats(floats);
            }
            Self::Downsampled(downsampler) => downsampler.push(millis, value),
        }
    }

    fn finish(self) -> Result<Line, QueryError> {
        match self {
            Self::Raw(line) => Ok(line),
            Self::Downsampled(downsampler) => {
                downsampler.finish().map(|(times, values)| Line::floats(times, values))
            }
        }
    }
}

/// Adds a point; the last one of a millisecond counts.
fn add<T>(times: &mut Vec<i64>, values: &mut Vec<T>, millis: i64, value: T) {
    if times.last() == Some(&millis) {
        times.pop();
        values.pop();
    }
    times.push(millis);
    values.push(value);
}
