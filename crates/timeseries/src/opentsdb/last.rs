//! The last points of series.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use model::{TimeRange, Timestamp};
use store::{Order, ReadOrder, TagMatcher, TagPredicate};

use super::metric::NumberColumns;
use super::query::at_most;
use super::run::{exactly, of_tsuids};
use super::{Metric, Number, QueryError, Selection, Tags, limits};
use crate::{SeriesRead, Source, each_series};

/// The last point of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct LastPoint {
    pub metric: String,
    pub tags: Tags,
    /// The time, in milliseconds since 1970.
    pub millis: i64,
    pub value: Number,
}

/// The last points of series: of all that have the tags, or of those that the selection names. Points before `since`
/// (milliseconds since 1970) do not count.
///
/// # Errors
/// The metric does not exist, there are too many series, or the table cannot be read.
pub fn last_points(
    source: &dyn Source,
    selection: &Selection,
    tags: &[(String, String)],
    since: Option<i64>,
) -> Result<Vec<LastPoint>, QueryError> {
    let (metric, named) = match selection {
        Selection::Metric(metric) => (metric.clone(), None),
        Selection::Tsuids(tsuids) => {
            at_most(tsuids.len(), "TSUIDs", limits::TSUIDS_MAX)?;
            let (metric, named) = of_tsuids(tsuids)?;
            (metric, Some(named))
        }
    };
    let mut reading = Reading { source, metric, since, points: Vec::new() };
    match named {
        None => reading.read(|_| tags.iter().map(|(name, value)| is(name, value)).collect())?,
        Some(series) => {
            for tags in series {
                reading.read(|metric| exactly(metric.table.columns(), &tags))?;
            }
        }
    }
    reading.points.sort_by(|a, b| a.tags.cmp(&b.tags));
    Ok(reading.points)
}

/// The condition that a tag has a value; `*` is any.
pub(super) fn is(name: &str, value: &str) -> TagMatcher {
    let predicate = match value {
        "*" => TagPredicate::Present,
        value => TagPredicate::Is(value.to_owned()),
    };
    TagMatcher { tag: name.to_owned(), predicate }
}

struct Reading<'a> {
    source: &'a dyn Source,
    metric: Metric,
    since: Option<i64>,
    points: Vec<LastPoint>,
}

impl Reading<'_> {
    fn read(
        &mut self,
        matchers: impl FnOnce(&super::metric::Opened<'_>) -> Vec<TagMatcher>,
    ) -> Result<(), QueryError> {
        let opened = self.metric.open(self.source)?;
        let names: Vec<String> = opened.table.columns().tags.iter().map(|tag| tag.tag.to_string()).collect();
        let since = self.since.and_then(Timestamp::from_millis).unwrap_or(Timestamp::MIN);
        let read = SeriesRead {
            matchers: matchers(&opened),
            range: TimeRange::new(since, Timestamp::MAX),
            fields: opened.fields(),
            order: ReadOrder::LastRow(Order::Descending),
        };
        let mut result = Ok(());
        // Rows of one series are neighbours only within a batch: the order of a read of last rows is not said.
        let mut newest = std::collections::HashMap::<Vec<Option<String>>, (i64, Number)>::new();
        opened.table.read(&read, &mut |batch| {
            collect(batch, names.len(), &mut newest);
            result = at_most(self.points.len() + newest.len(), "series", limits::SERIES_MAX);
            if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        result?;
        for (values, (micros, value)) in newest {
            let named = names.iter().cloned().zip(values);
            let mut tags: Tags = named.filter_map(|(name, value)| Some((name, value?))).collect();
            tags.sort_unstable();
            let metric = self.metric.name().to_owned();
            self.points.push(LastPoint { metric, tags, millis: micros.div_euclid(1000), value });
        }
        Ok(())
    }
}

fn collect(
    batch: &RecordBatch,
    tags: usize,
    newest: &mut std::collections::HashMap<Vec<Option<String>>, (i64, Number)>,
) {
    let times = batch.column(tags).as_primitive::<TimestampMicrosecondType>().values();
    let values = NumberColumns::of(batch, tags + 1);
    let _ = each_series(batch, tags, |series, rows| {
        let numbers = rows.filter_map(|row| Some((times[row], values.number(row)?)));
        if let Some(last) = numbers.max_by_key(|(time, _)| *time) {
            let key: Vec<Option<String>> = series.iter().map(|value| value.map(str::to_owned)).collect();
            let point = newest.entry(key).or_insert(last);
            if point.0 < last.0 {
                *point = last;
            }
        }
        ControlFlow::Continue(())
    });
}
