//! Reads the rows of an input of a statement: of a table, or of a subquery.

use std::ops::{ControlFlow, Range};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use model::{FieldType, TimeRange, Timestamp};
use store::{ReadOrder, TagMatcher, TagPredicate};

use super::ast::{DataType, Expr, Op};
use super::value::{Eval, Value};
use crate::{SeriesRead, Source, SourceError, Table, each_series};

/// A field or a tag to read, with the type that its values are to have.
pub(super) type Wanted = (String, DataType);

/// The data to read of an input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan<'a> {
    pub wanted: &'a [Wanted],
    pub condition: Option<&'a Expr>,
    /// First and last time, in nanoseconds.
    pub start: i64,
    pub end: i64,
    pub order: ReadOrder,
}

/// The value of a tag of a series; `None` if the series does not have it.
pub(super) type TagOf<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

/// Neighbouring rows of one series.
pub(super) struct Run<'a> {
    pub name: &'a str,
    pub tag: &'a TagOf<'a>,
    columns: &'a [Column<'a>],
    times: &'a dyn Fn(usize) -> i64,
    rows: Range<usize>,
    filter: &'a Filter<'a>,
}

impl Run<'_> {
    /// Visits the rows that satisfy the condition, with their times in nanoseconds.
    pub(super) fn each(&self, visit: &mut dyn FnMut(usize, i64) -> ControlFlow<()>) -> ControlFlow<()> {
        for row in self.rows.clone() {
            if self.filter.keeps_row(self, row) {
                visit(row, (self.times)(row))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// A value: `wanted` is an index into [`Scan::wanted`].
    pub(super) fn value(&self, wanted: usize, row: usize) -> Value {
        self.columns[wanted].value(row)
    }

    pub(super) fn has(&self, wanted: usize, row: usize) -> bool {
        self.columns[wanted].has(row)
    }
}

/// A column of a batch, as a statement sees it.
enum Column<'a> {
    Nothing,
    Tag(Option<&'a str>),
    /// A tag that a subquery is grouped by. InfluxDB gives its absence as an empty text, not as null.
    Grouped(&'a str),
    Floats(&'a Float64Array),
    Integers(&'a Int64Array),
    Texts(&'a StringViewArray),
    Booleans(&'a BooleanArray),
    Rows(&'a [InnerRow], usize),
    /// A column whose values get another type.
    Cast(Box<Column<'a>>, DataType),
}

impl Column<'_> {
    fn value(&self, row: usize) -> Value {
        match self {
            Self::Nothing => Value::Null,
            Self::Tag(value) => value.filter(|value| !value.is_empty()).map_or(Value::Null, Value::text),
            Self::Grouped(value) => Value::text(*value),
            Self::Floats(values) if values.is_valid(row) => Value::Num(values.value(row)),
            Self::Integers(values) if values.is_valid(row) => Value::Int(values.value(row)),
            Self::Texts(values) if values.is_valid(row) => Value::text(values.value(row)),
            Self::Booleans(values) if values.is_valid(row) => Value::Bool(values.value(row)),
            Self::Rows(rows, column) => rows[row].values[*column].clone(),
            Self::Cast(inner, kind) => inner.value(row).cast(*kind),
            _ => Value::Null,
        }
    }

    fn has(&self, row: usize) -> bool {
        match self {
            Self::Nothing => false,
            Self::Tag(value) => value.is_some(),
            Self::Grouped(_) => true,
            Self::Floats(values) => values.is_valid(row),
            Self::Integers(values) => values.is_valid(row),
            Self::Texts(values) => values.is_valid(row),
            Self::Booleans(values) => values.is_valid(row),
            Self::Rows(..) | Self::Cast(..) => !self.value(row).is_null(),
        }
    }
}

/// A row of a subquery.
#[derive(Debug, Clone)]
pub(super) struct InnerRow {
    pub time: i64,
    pub name: String,
    /// Values of the tags of the subquery, in the order of their names.
    pub tags: Vec<String>,
    pub values: Vec<Value>,
}

/// The parts of a condition: those that one look at a series decides, and those that look at each row.
pub(super) struct Filter<'a> {
    series: Vec<&'a Expr>,
    rows: Vec<&'a Expr>,
    wanted: &'a [Wanted],
}

impl<'a> Filter<'a> {
    pub(super) fn new(
        condition: Option<&'a Expr>,
        wanted: &'a [Wanted],
        is_field: &dyn Fn(&str) -> bool,
    ) -> Self {
        let mut parts = Vec::new();
        condition.into_iter().for_each(|condition| conjuncts(condition, &mut parts));
        let reads_field = |part: &Expr| {
            let mut found = false;
            part.walk(&mut |expr| {
                if let Expr::Ref(name, kind) = expr {
                    found |= *kind != DataType::Tag && is_field(name);
                }
            });
            found
        };
        let (rows, series) = parts.into_iter().partition(|part| reads_field(part));
        Self { series, rows, wanted }
    }

    /// Whether the rows of a series can satisfy the condition.
    pub(super) fn keeps_series(&self, tag: &TagOf<'_>) -> bool {
        let lookup = |name: &str, _: DataType| Value::text(tag(name).unwrap_or_default());
        let eval = Eval { lookup: &lookup, float_division: false };
        self.series.iter().all(|part| eval.holds(part))
    }

    fn keeps_row(&self, run: &Run<'_>, row: usize) -> bool {
        if self.rows.is_empty() {
            return true;
        }
        let lookup = |name: &str, kind: DataType| {
            let index = self.wanted.iter().position(|(own, own_kind)| own == name && *own_kind == kind);
            match index.map(|index| &run.columns[index]) {
                Some(Column::Tag(value)) => Value::text(value.unwrap_or_default()),
                Some(column) => column.value(row),
                None => Value::Null,
            }
        };
        let eval = Eval { lookup: &lookup, float_division: false };
        self.rows.iter().all(|part| eval.holds(part))
    }
}

/// The parts of a condition that all must hold.
fn conjuncts<'a>(condition: &'a Expr, out: &mut Vec<&'a Expr>) {
    match condition {
        Expr::Binary(Op::And, left, right) => {
            conjuncts(left, out);
            conjuncts(right, out);
        }
        Expr::Paren(inner) => conjuncts(inner, out),
        other => out.push(other),
    }
}

/// The statement of a condition about tags, as far as the index of the store can answer it. A tag that a series does not have is an empty
/// text in InfluxQL, and no text in the store, so only conditions that exclude the empty text pass.
pub(super) fn matchers(condition: Option<&Expr>, is_field: &dyn Fn(&str) -> bool) -> Vec<TagMatcher> {
    let mut parts = Vec::new();
    condition.into_iter().for_each(|condition| conjuncts(condition, &mut parts));
    let matcher = |part: &&Expr| {
        let Expr::Binary(op, left, right) = part else { return None };
        let Expr::Ref(tag, kind) = &**left else { return None };
        if *kind != DataType::Tag && is_field(tag) {
            return None;
        }
        let predicate = match (op, &**right) {
            (Op::Eq, Expr::Str(text)) if text.is_empty() => TagPredicate::Absent,
            (Op::Eq, Expr::Str(text)) => TagPredicate::Is(text.clone()),
            (Op::Neq, Expr::Str(text)) if text.is_empty() => TagPredicate::Present,
            (Op::Match, Expr::Regex(pattern)) if !pattern.0.is_match("") => {
                TagPredicate::Matches(pattern.0.clone())
            }
            (Op::NotMatch, Expr::Regex(pattern)) if pattern.0.is_match("") => {
                TagPredicate::MatchesNot(pattern.0.clone())
            }
            _ => return None,
        };
        Some(TagMatcher { tag: tag.as_str().into(), predicate })
    };
    parts.iter().filter_map(matcher).collect()
}

/// Whether a table has a field of a name.
pub(super) fn is_field(table: &dyn Table, name: &str) -> bool {
    table.columns().fields.iter().any(|field| &*field.key == name)
}

/// A time range of the store for a range of nanoseconds, both ends inside.
pub(super) fn time_range(start: i64, end: i64) -> TimeRange {
    let first = start.div_euclid(1_000) + i64::from(start.rem_euclid(1_000) > 0);
    TimeRange::new(Timestamp::from_micros(first), Timestamp::from_micros(end.div_euclid(1_000) + 1))
}

/// Where the values of a column of [`Scan::wanted`] come from in a table.
enum Origin {
    Nothing,
    Tag(usize),
    /// An index into the columns of a batch behind the tags and the time.
    Field(usize, FieldType, DataType),
}

/// Reads a table.
///
/// # Errors
/// The table cannot be read, or the query was stopped.
pub(super) fn scan_table(
    name: &str,
    table: &dyn Table,
    scan: Scan<'_>,
    visit: &mut dyn FnMut(&Run<'_>) -> ControlFlow<()>,
) -> Result<(), SourceError> {
    let columns = table.columns();
    let is_field = |name: &str| is_field(table, name);
    let filter = Filter::new(scan.condition, scan.wanted, &is_field);
    let mut fields = Vec::new();
    let origins: Vec<Origin> = scan.wanted.iter().map(|wanted| origin(table, wanted, &mut fields)).collect();
    let range = time_range(scan.start, scan.end);
    if fields.is_empty() || range.is_empty() {
        return Ok(());
    }
    let tags: Vec<&str> = columns.tags.iter().map(|tag| &*tag.tag).collect();
    let read = SeriesRead { matchers: matchers(scan.condition, &is_field), range, fields, order: scan.order };
    table.read(&read, &mut |batch| {
        let times = batch.column(tags.len()).as_primitive::<TimestampMicrosecondType>();
        let time = |row: usize| times.value(row).saturating_mul(1_000);
        each_series(batch, tags.len(), |values, rows| {
            let tag = |wanted: &str| tags.iter().position(|tag| *tag == wanted).and_then(|tag| values[tag]);
            if !filter.keeps_series(&tag) {
                return ControlFlow::Continue(());
            }
            let columns: Vec<Column<'_>> =
                origins.iter().map(|origin| column(batch, tags.len(), origin, values)).collect();
            visit(&Run { name, tag: &tag, columns: &columns, times: &time, rows, filter: &filter })
        })
    })
}

fn origin(table: &dyn Table, (name, kind): &Wanted, fields: &mut Vec<usize>) -> Origin {
    let columns = table.columns();
    let numeric = |field_type| matches!(field_type, FieldType::F64 | FieldType::I64);
    let fits = |field_type| match kind {
        DataType::Tag => false,
        DataType::Float | DataType::Integer | DataType::Unsigned => numeric(field_type),
        DataType::String => matches!(field_type, FieldType::String | FieldType::Json),
        DataType::Boolean => field_type == FieldType::Bool,
        _ => true,
    };
    let found = columns.fields.iter().position(|field| *field.key == **name && fits(field.field_type));
    if let Some(field) = found {
        let place = fields.iter().position(|own| *own == field).unwrap_or_else(|| {
            fields.push(field);
            fields.len() - 1
        });
        return Origin::Field(place, columns.fields[field].field_type, *kind);
    }
    let tag = columns.tags.iter().position(|tag| *tag.tag == **name);
    match tag {
        Some(tag) if matches!(kind, DataType::Tag | DataType::Unknown | DataType::String) => Origin::Tag(tag),
        _ => Origin::Nothing,
    }
}

fn column<'a>(
    batch: &'a RecordBatch,
    tags: usize,
    origin: &Origin,
    values: &[Option<&'a str>],
) -> Column<'a> {
    let (place, field_type, kind) = match origin {
        Origin::Nothing => return Column::Nothing,
        Origin::Tag(tag) => return Column::Tag(values[*tag]),
        Origin::Field(place, field_type, kind) => (*place, *field_type, *kind),
    };
    let array = batch.column(tags + 1 + place);
    let cast = |column| Column::Cast(Box::new(column), kind);
    match field_type {
        FieldType::F64 if kind == DataType::Integer => {
            cast(Column::Floats(array.as_primitive::<Float64Type>()))
        }
        FieldType::F64 => Column::Floats(array.as_primitive::<Float64Type>()),
        FieldType::I64 if kind == DataType::Float => {
            cast(Column::Integers(array.as_primitive::<Int64Type>()))
        }
        FieldType::I64 => Column::Integers(array.as_primitive::<Int64Type>()),
        FieldType::Bool => Column::Booleans(array.as_boolean()),
        FieldType::String | FieldType::Json => Column::Texts(array.as_string_view()),
    }
}

/// Rows of a subquery between two questions whether the statement may continue.
const ROWS_PER_CHECK: usize = 8 * 1024;

/// Reads the rows of a subquery, which are in their final order.
///
/// # Errors
/// The query was stopped.
pub(super) fn scan_rows(
    source: &dyn Source,
    columns: &[String],
    tags: &[String],
    rows: &[InnerRow],
    scan: Scan<'_>,
    visit: &mut dyn FnMut(&Run<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, SourceError> {
    let place = |name: &str| columns.iter().position(|column| column == name);
    let is_field = |name: &str| place(name).is_some();
    let filter = Filter::new(scan.condition, scan.wanted, &is_field);
    let time = |row: usize| rows[row].time;
    let mut begin = 0;
    while begin < rows.len() {
        source.check()?;
        let first = &rows[begin];
        let same = |row: &&InnerRow| row.name == first.name && row.tags == first.tags;
        let end = begin + rows[begin..].iter().take(ROWS_PER_CHECK).take_while(same).count();
        let grouped = |wanted: &str| {
            let index = tags.iter().position(|tag| tag == wanted)?;
            Some(first.tags[index].as_str())
        };
        let tag = |wanted: &str| grouped(wanted).filter(|value| !value.is_empty());
        if filter.keeps_series(&tag) {
            let own: Vec<Column<'_>> = scan
                .wanted
                .iter()
                .map(|(name, kind)| match place(name) {
                    Some(column) => Column::Cast(Box::new(Column::Rows(rows, column)), *kind),
                    None => grouped(name).map_or(Column::Nothing, Column::Grouped),
                })
                .collect();
            let run = Run {
                name: &first.name,
                tag: &tag,
                columns: &own,
                times: &time,
                rows: begin..end,
                filter: &filter,
            };
            if visit(&run).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        begin = end;
    }
    Ok(ControlFlow::Continue(()))
}
