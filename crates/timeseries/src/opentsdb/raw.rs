//! Rows as they were written, with values of any type.

use std::collections::HashMap;
use std::ops::ControlFlow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use model::{TimeRange, Timestamp};
use store::{Order, ReadOrder, TableColumns, TagMatcher};

use super::filter::matchers;
use super::query::at_most;
use super::run::no_other_tags;
use super::{QueryError, SubQuery, Tags, limits};
use crate::{SeriesRead, Source, Table, each_series};

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// The row does not have the field.
    Null,
    Integer(i64),
    /// A float. NaN is a value that a fill policy put in.
    Float(f64),
    /// A truth value.
    Bool(bool),
    Text(String),
}

impl Cell {
    /// The value as a number; NaN if it is none.
    pub(super) fn number(&self) -> f64 {
        match self {
            Self::Integer(value) => *value as f64,
            Self::Float(value) => *value,
            _ => f64::NAN,
        }
    }
}

/// Rows to read.
pub(super) struct RawRead<'a> {
    pub(super) table: &'a str,
    /// The keys of the fields.
    pub(super) fields: &'a [&'a str],
    /// Its filters select the series.
    pub(super) sub: &'a SubQuery,
    /// The first time, in milliseconds since 1970.
    pub(super) start: i64,
    /// The last time, in milliseconds since 1970.
    pub(super) end: i64,
}

/// Rows: times in milliseconds since 1970, and a cell for each field.
pub(super) type Rows = Vec<(i64, Vec<Cell>)>;

/// Visits the rows of each series that have one of the fields, by time.
pub(super) fn read_raw(
    read: &RawRead<'_>,
    source: &dyn Source,
    visit: &mut dyn FnMut(Tags, Rows) -> ControlFlow<()>,
) -> Result<(), QueryError> {
    let table = open(source, read.table)?;
    let mut wanted = matchers(&read.sub.filters);
    if read.sub.explicit_tags {
        wanted.extend(no_other_tags(table.columns(), read.sub));
    }
    let at = |millis: i64| Timestamp::from_millis(millis).unwrap_or(Timestamp::MAX);
    let range = TimeRange::new(at(read.start), at(read.end.saturating_add(1)));
    let columns = Columns::of(table.columns(), read.fields);
    let mut reading = Reading { columns: &columns, current: None, visit, over: Ok(()), ended: false };
    let read = columns.read(wanted, range, ReadOrder::SeriesThenTime);
    table.read(&read, &mut |batch| reading.batch(batch))?;
    if !reading.ended {
        let _ = reading.finish_series();
    }
    reading.over
}

fn open<'a>(source: &'a dyn Source, table: &str) -> Result<Box<dyn Table + 'a>, QueryError> {
    source.open(table)?.ok_or_else(|| QueryError::NoSuchMetric(table.to_owned()))
}

/// The columns of a read: those of the tags, and those of the wanted fields.
struct Columns {
    tags: Vec<String>,
    /// Indices into [`TableColumns::fields`].
    fields: Vec<usize>,
    /// For each wanted field, its columns among the fields: one for each type of its values.
    of_field: Vec<Vec<usize>>,
}

impl Columns {
    fn of(table: &TableColumns, wanted: &[&str]) -> Self {
        let (mut fields, mut of_field) = (Vec::new(), Vec::new());
        for key in wanted {
            let columns = table.fields.iter().enumerate().filter(|(_, field)| &*field.key == *key);
            let columns = columns.map(|(index, _)| {
                fields.push(index);
                fields.len() - 1
            });
            of_field.push(columns.collect());
        }
        Self { tags: table.tags.iter().map(|tag| tag.tag.to_string()).collect(), fields, of_field }
    }

    fn read(&self, matchers: Vec<TagMatcher>, range: TimeRange, order: ReadOrder) -> SeriesRead {
        SeriesRead { matchers, range, fields: self.fields.clone(), order }
    }

    fn times<'b>(&self, batch: &'b RecordBatch) -> &'b [i64] {
        batch.column(self.tags.len()).as_primitive::<TimestampMicrosecondType>().values()
    }

    /// The value of a field in a row.
    fn cell(&self, batch: &RecordBatch, field: usize, row: usize) -> Cell {
        let columns = self.of_field[field].iter().map(|column| batch.column(self.tags.len() + 1 + column));
        columns.map(|column| value(column, row)).find(|cell| *cell != Cell::Null).unwrap_or(Cell::Null)
    }

    fn tags_of(&self, values: &[Option<String>]) -> Tags {
        let named = self.tags.iter().cloned().zip(values.iter().cloned());
        let mut tags: Tags = named.filter_map(|(name, value)| Some((name, value?))).collect();
        tags.sort_unstable();
        tags
    }
}

fn value(column: &ArrayRef, row: usize) -> Cell {
    if column.is_null(row) {
        Cell::Null
    } else if let Some(integers) = column.as_primitive_opt::<Int64Type>() {
        Cell::Integer(integers.value(row))
    } else if let Some(floats) = column.as_primitive_opt::<Float64Type>() {
        Cell::Float(floats.value(row))
    } else if let Some(values) = column.as_boolean_opt() {
        Cell::Bool(values.value(row))
    } else {
        column.as_string_view_opt().map_or(Cell::Null, |texts| Cell::Text(texts.value(row).to_owned()))
    }
}

/// Collects the rows of one series after the other.
struct Reading<'a> {
    columns: &'a Columns,
    current: Option<(Vec<Option<String>>, Rows)>,
    visit: &'a mut dyn FnMut(Tags, Rows) -> ControlFlow<()>,
    over: Result<(), QueryError>,
    ended: bool,
}

impl Reading<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> ControlFlow<()> {
        let columns = self.columns;
        let times = columns.times(batch);
        each_series(batch, columns.tags.len(), |series, rows| {
            let same = self
                .current
                .as_ref()
                .is_some_and(|(current, _)| current.iter().map(Option::as_deref).eq(series.iter().copied()));
            if !same {
                self.finish_series()?;
                self.current =
                    Some((series.iter().map(|value| value.map(str::to_owned)).collect(), Vec::new()));
            }
            let Some((_, held)) = &mut self.current else { return ControlFlow::Continue(()) };
            for row in rows {
                let cells: Vec<Cell> =
                    (0..columns.of_field.len()).map(|field| columns.cell(batch, field, row)).collect();
                if cells.iter().any(|cell| *cell != Cell::Null) {
                    add(held, times[row].div_euclid(1000), cells);
                }
            }
            self.over = at_most(held.len() * columns.of_field.len(), "points", limits::POINTS_MAX);
            self.ended = self.over.is_err();
            if self.ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    fn finish_series(&mut self) -> ControlFlow<()> {
        let Some((series, rows)) = self.current.take().filter(|(_, rows)| !rows.is_empty()) else {
            return ControlFlow::Continue(());
        };
        let ended = (self.visit)(self.columns.tags_of(&series), rows);
        self.ended = ended.is_break();
        ended
    }
}

/// Adds a row; of the values of a millisecond the last ones count.
fn add(rows: &mut Rows, millis: i64, cells: Vec<Cell>) {
    match rows.last_mut() {
        Some((last, held)) if *last == millis => {
            for (held, cell) in held.iter_mut().zip(cells) {
                if cell != Cell::Null {
                    *held = cell;
                }
            }
        }
        _ => rows.push((millis, cells)),
    }
}

/// The last value of each field of a series, with its time.
type LastCells = Vec<Option<(i64, Cell)>>;

/// The last values of the fields of each series that satisfies the matchers, by the tags. Rows before `since` do not count.
pub(super) fn last_cells(
    table: &dyn Table,
    fields: &[&str],
    matchers: Vec<TagMatcher>,
    since: Option<i64>,
) -> Result<Vec<(Tags, LastCells)>, QueryError> {
    let since = since.and_then(Timestamp::from_millis).unwrap_or(Timestamp::MIN);
    let columns = Columns::of(table.columns(), fields);
    let read =
        columns.read(matchers, TimeRange::new(since, Timestamp::MAX), ReadOrder::LastRow(Order::Descending));
    // Rows of one series are neighbours only within a batch: the order of a read of last rows is not said.
    let mut newest = HashMap::<Vec<Option<String>>, LastCells>::new();
    let mut over = Ok(());
    table.read(&read, &mut |batch| {
        let times = columns.times(batch);
        let _ = each_series(batch, columns.tags.len(), |series, rows| {
            let key = series.iter().map(|value| value.map(str::to_owned)).collect();
            let held = newest.entry(key).or_insert_with(|| vec![None; fields.len()]);
            for row in rows {
                for (field, last) in held.iter_mut().enumerate() {
                    if last.as_ref().is_none_or(|(time, _)| *time < times[row]) {
                        match columns.cell(batch, field, row) {
                            Cell::Null => {}
                            cell => *last = Some((times[row], cell)),
                        }
                    }
                }
            }
            ControlFlow::Continue(())
        });
        over = at_most(newest.len(), "series", limits::SERIES_MAX);
        if over.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    over?;
    let with_values = newest.into_iter().filter(|(_, last)| last.iter().any(Option::is_some));
    let mut found: Vec<_> = with_values.map(|(series, last)| (columns.tags_of(&series), last)).collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}
