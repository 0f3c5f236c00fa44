//! Reads the rows of a sensor: conditions, intervals, the newest rows, samples.
//!
//! The oldest row comes first, also when only the newest rows are wanted. Then the table is read twice, in one state: first
//! backwards and without values, to find the oldest wanted row, then forwards from that row. So memory does not grow with the
//! number of rows.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use hub::Order;
use hub::time_series::{ReadOrder, TagMatcher, TagPredicate};
use model::{DEVICE_TAG, FieldType, TimeRange, Timestamp};
use timeseries::{SeriesRead, Source, SourceError, Table};

use super::aggregate::{Aggregation, OpenInterval};
use super::condition::{Condition, Filter, Operand, split_time};
use super::sample::Sampler;
use super::sensor::{Field, Sensor};
use super::value::{FieldArrays, Value, ValueKind};

/// The rows of one sensor that a request reads.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    pub(super) sensor: Sensor,
    /// The fields, in the order of the answer.
    pub(super) fields: Vec<Column>,
    pub(super) conditions: Vec<Condition>,
    pub(super) aggregation: Option<Aggregation>,
    /// Most rows; the newest ones are taken.
    pub(super) newest: Option<u64>,
    /// The order of the answer.
    pub(super) order: Order,
    pub(super) sample: Option<Sample>,
    /// Only rows later than this time are read.
    pub(super) after: Option<Timestamp>,
}

/// A field of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) unit: String,
    /// How its values are stored.
    pub(super) kind: ValueKind,
}

/// How many of the rows are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// The fields of all sensors of the request.
    pub(super) fields: usize,
    pub(super) percentage: Option<u64>,
}

/// A row of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) micros: i64,
    /// The number of the interval, if the row is an aggregate.
    pub(super) interval: Option<i64>,
    /// A value for each of the selected fields.
    pub(super) values: &'a [Option<Value<'a>>],
}

/// Gets a row. `Break` ends the read.
pub(super) type Visit<'v> = dyn FnMut(Row<'_>) -> ControlFlow<()> + 'v;

impl Row<'_> {
    pub(super) fn millis(&self) -> i64 {
        self.micros.div_euclid(1_000)
    }
}

impl Selection {
    /// All fields and rows of a sensor, the oldest first.
    pub(super) fn all(sensor: Sensor) -> Self {
        let fields = sensor.fields().iter().map(Column::of).collect();
        Self {
            sensor,
            fields,
            conditions: Vec::new(),
            aggregation: None,
            newest: None,
            order: Order::Ascending,
            sample: None,
            after: None,
        }
    }

    /// Visits the rows.
    ///
    /// # Errors
    /// The store cannot read, or the engine ends the read.
    pub(super) fn read(&self, source: &dyn Source, visit: &mut Visit<'_>) -> Result<(), SourceError> {
        let Some(table) = source.open(self.sensor.table())? else { return Ok(()) };
        Reading::new(self, &*table).run(visit)
    }

    /// How the values of a field are written.
    pub(super) fn kind(&self, field: usize) -> ValueKind {
        let kind = self.fields[field].kind;
        self.aggregation.map_or(kind, |aggregation| aggregation.function.kind(kind))
    }
}

impl Column {
    pub(super) fn of(field: &Field) -> Self {
        Self { name: field.name.clone(), unit: field.unit.clone(), kind: field.kind }
    }
}

/// A read of a table at one moment.
struct Reading<'a> {
    selection: &'a Selection,
    table: &'a dyn Table,
    range: TimeRange,
    filter: Filter,
    /// For each field that is read, the selected ones first, its columns in the table.
    columns: Vec<Vec<usize>>,
}

/// The time of a row in microseconds, and its values.
type VisitValues<'v> = dyn FnMut(i64, &[Option<Value<'_>>]) -> ControlFlow<()> + 'v;

impl<'a> Reading<'a> {
    fn new(selection: &'a Selection, table: &'a dyn Table) -> Self {
        let (mut range, conditions) = split_time(selection.conditions.clone());
        if let Some(after) = selection.after {
            range.start = range.start.max(after.saturating_add_micros(1));
        }
        let mut names: Vec<String> = selection.fields.iter().map(|field| field.name.clone()).collect();
        for condition in &conditions {
            if let Operand::Field(name) = &condition.operand
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        let filter = Filter::new(&conditions, &names);
        let kind = |at: usize| selection.fields.get(at).map_or(ValueKind::Double, |field| field.kind);
        let columns = names.iter().enumerate().map(|(at, name)| columns_of(table, name, kind(at))).collect();
        Self { selection, table, range, filter, columns }
    }

    fn run(mut self, visit: &mut Visit<'_>) -> Result<(), SourceError> {
        let Selection { newest, order, sample, ref fields, .. } = *self.selection;
        let is_ascending = order == Order::Ascending;
        let mut sampler = None;
        if is_ascending && (newest.is_some() || sample.is_some()) {
            let Some((start, rows)) = self.oldest_of(newest.unwrap_or(u64::MAX))? else { return Ok(()) };
            self.range.start = self.range.start.max(Timestamp::from_micros(start));
            sampler = sample.and_then(|sample| Sampler::new(rows, sample.fields, sample.percentage));
        }
        let mut left = newest.unwrap_or(u64::MAX);
        if left == 0 {
            return Ok(());
        }
        let selected = fields.len();
        self.rows(order, true, &mut |row| {
            let is_taken = sampler.as_mut().is_none_or(Sampler::takes_next);
            if is_taken {
                visit(Row { values: &row.values[..selected], ..row })?;
            }
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }

    /// The time at which the newest `count` rows begin, and their number; `None` if there are none.
    fn oldest_of(&self, count: u64) -> Result<Option<(i64, u64)>, SourceError> {
        let (mut start, mut rows) = (None, 0);
        if count == 0 {
            return Ok(None);
        }
        let interval_ms = self.selection.aggregation.map_or(1, |aggregation| aggregation.interval_ms);
        self.rows(Order::Descending, false, &mut |row| {
            let begins = |interval: i64| interval.saturating_mul(interval_ms).saturating_mul(1_000);
            start = Some(row.interval.map_or(row.micros, begins));
            rows += 1;
            if rows == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(start.map(|start| (start, rows)))
    }

    /// Visits the rows that satisfy the conditions, or their intervals. Without `values` only the conditions have values.
    fn rows(&self, order: Order, values: bool, visit: &mut Visit<'_>) -> Result<(), SourceError> {
        match self.selection.aggregation {
            Some(aggregation) => self.intervals(aggregation, order, values, visit),
            None => {
                self.each(order, values, &mut |micros, values| visit(Row { micros, interval: None, values }))
            }
        }
    }

    fn intervals(
        &self,
        aggregation: Aggregation,
        order: Order,
        values: bool,
        visit: &mut Visit<'_>,
    ) -> Result<(), SourceError> {
        let mut open: Option<OpenInterval> = None;
        let mut ended = ControlFlow::Continue(());
        self.each(order, values, &mut |micros, values| {
            let millis = micros.div_euclid(1_000);
            let number = aggregation.interval(millis);
            if let Some(full) = open.take_if(|open| open.number != number) {
                ended = give(&full, visit);
                ended?;
            }
            let new = || OpenInterval::new(aggregation.function, number, values.len());
            open.get_or_insert_with(new).add(millis, values);
            ControlFlow::Continue(())
        })?;
        if let (Some(last), ControlFlow::Continue(())) = (open, ended) {
            // It is the last one anyway.
            let _ = give(&last, visit);
        }
        Ok(())
    }

    /// Visits the rows that satisfy the conditions.
    fn each(&self, order: Order, values: bool, visit: &mut VisitValues<'_>) -> Result<(), SourceError> {
        let wanted: &[Vec<usize>] = if values || !self.filter.is_empty() { &self.columns } else { &[] };
        let predicate = TagPredicate::Is(self.selection.sensor.device().to_owned());
        let read = SeriesRead {
            matchers: vec![TagMatcher { tag: DEVICE_TAG.to_owned(), predicate }],
            range: self.range,
            fields: wanted.iter().flatten().copied().collect(),
            order: match order {
                // The rows are of one series.
                Order::Ascending => ReadOrder::SeriesThenTime,
                Order::Descending => ReadOrder::Time(Order::Descending),
            },
        };
        let time_column = self.table.columns().tags.len();
        self.table.read(&read, &mut |batch| self.batch(batch, time_column, wanted, visit))
    }

    fn batch(
        &self,
        batch: &RecordBatch,
        time_column: usize,
        wanted: &[Vec<usize>],
        visit: &mut VisitValues<'_>,
    ) -> ControlFlow<()> {
        let mut next = time_column + 1;
        let mut arrays = Vec::with_capacity(wanted.len());
        for columns in wanted {
            arrays.push(FieldArrays::of(batch, next..next + columns.len()));
            next += columns.len();
        }
        let times = batch.column(time_column).as_primitive::<TimestampMicrosecondType>().values();
        let mut values = vec![None; arrays.len()];
        for (row, micros) in times.iter().enumerate() {
            for (value, array) in values.iter_mut().zip(&arrays) {
                *value = array.get(row);
            }
            if self.filter.passes(micros.div_euclid(1_000), &values) {
                visit(*micros, &values)?;
            }
        }
        ControlFlow::Continue(())
    }
}

fn give(interval: &OpenInterval, visit: &mut Visit<'_>) -> ControlFlow<()> {
    let values: Vec<_> = interval.values().collect();
    let micros = interval.millis.saturating_mul(1_000);
    visit(Row { micros, interval: Some(interval.number), values: &values })
}

/// The columns of a table with the values of a field: first those whose type the field has.
fn columns_of(table: &dyn Table, name: &str, kind: ValueKind) -> Vec<usize> {
    let fields = &table.columns().fields;
    let mut columns: Vec<usize> = (0..fields.len()).filter(|at| *fields[*at].key == *name).collect();
    let own = match kind {
        ValueKind::Integer => FieldType::I64,
        ValueKind::Double | ValueKind::Float => FieldType::F64,
        ValueKind::Text => FieldType::String,
    };
    columns.sort_by_key(|at| fields[*at].field_type != own);
    columns
}
