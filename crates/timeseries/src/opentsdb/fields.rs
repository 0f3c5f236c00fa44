//! HiTSDB's queries of several fields: one table for each group, with a column for each field.
//!
//! Fields that are only read can have any type. Fields that are combined are numbers; each is a query of its own, and their lines become
//! the columns of one table.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use store::TableColumns;

use super::group::common_tags;
use super::last::is;
use super::metric::is_number;
use super::query::at_most;
use super::raw::{Cell, RawRead, last_cells, read_raw};
use super::run::{exactly, of_tsuids, run};
use super::{
    Answer, Line, Metric, PointLimits, Query, QueryError, Selection, SubQuery, Tags, Values, limits,
};
use crate::Source;

/// The data that a query computes from the fields of one table.
#[derive(Debug, Clone)]
pub struct FieldsSub {
    pub table: String,
    /// The fields. One named `*` stands for all fields of the table.
    pub fields: Vec<FieldSub>,
    /// The rows that are shown. Its condition does not count.
    pub rows: PointLimits,
}

/// The data that a query computes from one field.
#[derive(Debug, Clone)]
pub struct FieldSub {
    /// The field, or `*`.
    pub field: String,
    /// The name of the column, if it is not that of the field.
    pub alias: Option<String>,
    /// The computation; it selects the field of the table. All fields of a table have the same filters.
    pub sub: SubQuery,
    /// The values that are shown.
    pub values: PointLimits,
}

/// A table of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldsAnswer {
    /// The number of the sub query.
    pub query: usize,
    /// The table that was read.
    pub metric: String,
    /// The tags that no two series of the group have with different values.
    pub tags: Tags,
    /// The names of the other tags, sorted.
    pub aggregate_tags: Vec<String>,
    /// The names of the fields.
    pub columns: Vec<String>,
    /// Times in milliseconds since 1970, and a value for each column.
    pub rows: Vec<(i64, Vec<Cell>)>,
}

/// Runs a query of fields and visits its tables until the visitor returns `Break`. `times` has the times and the zone; its own sub
/// queries do not count.
///
/// # Errors
/// The query is wrong, a table or a field does not exist, the query costs more than [`limits`] allow, or a table cannot be read.
pub fn run_fields(
    times: &Query,
    subs: &[FieldsSub],
    source: &dyn Source,
    visit: &mut dyn FnMut(FieldsAnswer) -> ControlFlow<()>,
) -> Result<(), QueryError> {
    if subs.is_empty() {
        return Err(QueryError::invalid("Missing queries"));
    }
    at_most(subs.len(), "sub queries", limits::SUB_QUERIES_MAX)?;
    let subs: Vec<FieldsSub> =
        subs.iter().map(|sub| with_all_fields(sub, source)).collect::<Result<_, _>>()?;
    for (number, sub) in subs.iter().enumerate() {
        let only_read = sub.fields.iter().filter(|field| is_only_read(&field.sub)).count();
        let ended = match only_read {
            0 => combined(times, number, sub, source, visit)?,
            count if count == sub.fields.len() => raw(times, number, sub, source, visit)?,
            _ => {
                return Err(QueryError::invalid(
                    "The aggregator none without a downsampling and a rate holds for all fields of a sub query, or for none of them",
                ));
            }
        };
        if ended.is_break() {
            break;
        }
    }
    Ok(())
}

/// The last values of fields of the series that have the tags, or that the selection names: for each series the rows that have the last
/// value of a field, the newest one first. Rows before `since` (milliseconds since 1970) do not count. `number` is that of the sub query.
///
/// # Errors
/// The table or a field does not exist, there are too many series, or the table cannot be read.
pub fn last_fields(
    number: usize,
    selection: &Selection,
    fields: &[String],
    tags: &[(String, String)],
    since: Option<i64>,
    source: &dyn Source,
) -> Result<Vec<FieldsAnswer>, QueryError> {
    let (metric, named) = match selection {
        Selection::Metric(metric) => (metric.name().to_owned(), None),
        Selection::Tsuids(tsuids) => {
            at_most(tsuids.len(), "TSUIDs", limits::TSUIDS_MAX)?;
            let (metric, named) = of_tsuids(tsuids)?;
            (metric.name().to_owned(), Some(named))
        }
    };
    let table = source.open(&metric)?.ok_or_else(|| QueryError::NoSuchMetric(metric.clone()))?;
    let mut wanted: Vec<&str> = Vec::new();
    for field in fields {
        match field.as_str() {
            "*" => wanted.extend(keys(table.columns(), false)),
            name => {
                check_field(&metric, name, table.columns())?;
                wanted.push(name);
            }
        }
    }
    if wanted.is_empty() {
        return Err(QueryError::invalid("Missing fields, provide at least one"));
    }
    at_most(wanted.len(), "fields", limits::FIELDS_MAX)?;
    let selections = match named {
        None => vec![tags.iter().map(|(name, value)| is(name, value)).collect()],
        Some(series) => series.iter().map(|tags| exactly(table.columns(), tags)).collect(),
    };
    let mut answers = Vec::new();
    for matchers in selections {
        for (tags, last) in last_cells(table.as_ref(), &wanted, matchers, since)? {
            let mut rows: BTreeMap<i64, Vec<Cell>> = BTreeMap::new();
            for (column, cell) in last.into_iter().enumerate() {
                if let Some((micros, cell)) = cell {
                    let row = rows.entry(micros.div_euclid(1000));
                    row.or_insert_with(|| vec![Cell::Null; wanted.len()])[column] = cell;
                }
            }
            answers.push(FieldsAnswer {
                query: number,
                metric: metric.clone(),
                tags,
                aggregate_tags: Vec::new(),
                columns: wanted.iter().map(|field| (*field).to_owned()).collect(),
                rows: rows.into_iter().rev().collect(),
            });
        }
    }
    Ok(answers)
}

/// Whether the values of the field are shown as they were written.
fn is_only_read(sub: &SubQuery) -> bool {
    sub.aggregator == "none" && sub.downsample.as_ref().is_none_or(String::is_empty) && sub.rate.is_none()
}

/// The sub query with the fields of the table in place of `*`.
fn with_all_fields(sub: &FieldsSub, source: &dyn Source) -> Result<FieldsSub, QueryError> {
    if sub.table.is_empty() {
        return Err(QueryError::invalid("Missing the metric"));
    }
    let table = source.open(&sub.table)?.ok_or_else(|| QueryError::NoSuchMetric(sub.table.clone()))?;
    let mut fields = Vec::new();
    for field in &sub.fields {
        match field.field.as_str() {
            "*" => {
                fields.extend(keys(table.columns(), !is_only_read(&field.sub)).map(|key| of_key(field, key)))
            }
            name => {
                check_field(&sub.table, name, table.columns())?;
                fields.push(field.clone());
            }
        }
    }
    if fields.is_empty() {
        return Err(QueryError::invalid("Missing fields, provide at least one"));
    }
    at_most(fields.len(), "fields", limits::FIELDS_MAX)?;
    Ok(FieldsSub { fields, ..sub.clone() })
}

fn keys(columns: &TableColumns, only_numbers: bool) -> impl Iterator<Item = &str> {
    let wanted = columns.fields.iter().filter(move |field| !only_numbers || is_number(field.field_type));
    let keys: BTreeSet<&str> = wanted.map(|field| &*field.key).collect();
    keys.into_iter()
}

fn of_key(all: &FieldSub, key: &str) -> FieldSub {
    let mut field = FieldSub { field: key.to_owned(), alias: None, ..all.clone() };
    if let Selection::Metric(Metric::Field { field, .. }) = &mut field.sub.selection {
        key.clone_into(field);
    }
    field
}

fn check_field(table: &str, field: &str, columns: &TableColumns) -> Result<(), QueryError> {
    if columns.fields.iter().any(|known| &*known.key == field) {
        return Ok(());
    }
    let known: Vec<&str> = keys(columns, false).take(10).collect();
    Err(QueryError::Invalid(format!(
        "Metric '{table}' has no field '{field}'. Its fields: {}",
        known.join(", ")
    )))
}

fn names(sub: &FieldsSub) -> Vec<String> {
    sub.fields.iter().map(|field| field.alias.clone().unwrap_or_else(|| field.field.clone())).collect()
}

/// The rows of each series as they were written.
fn raw(
    times: &Query,
    number: usize,
    sub: &FieldsSub,
    source: &dyn Source,
    visit: &mut dyn FnMut(FieldsAnswer) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, QueryError> {
    Query { queries: vec![sub.fields[0].sub.clone()], ..times.clone() }.check()?;
    let fields: Vec<&str> = sub.fields.iter().map(|field| field.field.as_str()).collect();
    let read = RawRead {
        table: &sub.table,
        fields: &fields,
        sub: &sub.fields[0].sub,
        start: times.start,
        end: times.end,
    };
    let mut ended = ControlFlow::Continue(());
    read_raw(&read, source, &mut |tags, mut rows| {
        for (_, cells) in &mut rows {
            for (cell, field) in cells.iter_mut().zip(&sub.fields) {
                if !field.values.shows(cell.number()) {
                    *cell = Cell::Null;
                }
            }
        }
        ended = show(number, sub, vec![tags], rows, visit);
        ended
    })?;
    Ok(ended)
}

/// The tables whose columns are the answers to one query for each field.
fn combined(
    times: &Query,
    number: usize,
    sub: &FieldsSub,
    source: &dyn Source,
    visit: &mut dyn FnMut(FieldsAnswer) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, QueryError> {
    let mut groups: BTreeMap<Vec<Option<String>>, Group> = BTreeMap::new();
    let mut held = 0;
    for (column, field) in sub.fields.iter().enumerate() {
        let query = Query { queries: vec![field.sub.clone()], ..times.clone() };
        let mut over = Ok(());
        run(&query, source, &mut |mut answer| {
            field.values.apply(&mut answer.line);
            held += answer.line.len();
            over = at_most(held, "points", limits::POINTS_MAX);
            let group = groups.entry(key(&field.sub, &answer)).or_default();
            group.series.extend(answer.series);
            group.lines.resize(column, None);
            group.lines.push(Some(answer.line));
            if over.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        over?;
    }
    for group in groups.into_values() {
        let series = group.series.into_iter().collect();
        let rows = rows_of(group.lines, sub.fields.len());
        if show(number, sub, series, rows, visit).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// The common parts of the answers for the fields of one group.
#[derive(Default)]
struct Group {
    series: BTreeSet<Tags>,
    lines: Vec<Option<Line>>,
}

/// The values of the tags that group; the values of all tags where each series is a group.
fn key(sub: &SubQuery, answer: &Answer) -> Vec<Option<String>> {
    let Some(series) = answer.series.first() else { return Vec::new() };
    if sub.aggregator == "none" {
        return series.iter().flat_map(|(name, value)| [Some(name.clone()), Some(value.clone())]).collect();
    }
    let mut by: Vec<&str> =
        sub.filters.iter().filter(|filter| filter.group_by).map(|filter| filter.tag.as_str()).collect();
    by.sort_unstable();
    by.dedup();
    let value = |tag: &&str| series.iter().find(|(name, _)| name == tag).map(|(_, value)| value.clone());
    by.iter().map(value).collect()
}

fn rows_of(lines: Vec<Option<Line>>, columns: usize) -> Vec<(i64, Vec<Cell>)> {
    let mut rows: BTreeMap<i64, Vec<Cell>> = BTreeMap::new();
    for (column, line) in lines.into_iter().enumerate() {
        let Some(line) = line else { continue };
        for (at, millis) in line.times.iter().enumerate() {
            let row = rows.entry(*millis).or_insert_with(|| vec![Cell::Null; columns]);
            row[column] = match &line.values {
                Values::Integers(values) => Cell::Integer(values[at]),
                Values::Floats(values) => Cell::Float(values[at]),
            };
        }
    }
    rows.into_iter().collect()
}

/// Visits a table if it has rows.
fn show(
    number: usize,
    sub: &FieldsSub,
    series: Vec<Tags>,
    mut rows: Vec<(i64, Vec<Cell>)>,
    visit: &mut dyn FnMut(FieldsAnswer) -> ControlFlow<()>,
) -> ControlFlow<()> {
    rows.retain(|(_, cells)| cells.iter().any(|cell| *cell != Cell::Null));
    let page = sub.rows.page(rows.len());
    rows.truncate(page.end);
    rows.drain(..page.start);
    if rows.is_empty() {
        return ControlFlow::Continue(());
    }
    let (tags, aggregate_tags) = common_tags(&series);
    let metric = sub.table.clone();
    visit(FieldsAnswer { query: number, metric, tags, aggregate_tags, columns: names(sub), rows })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{Batch, Namespace, SeriesKey, Timestamp, ValueRef};
    use store::{Durability, MemoryStore, Writer};

    use super::*;
    use crate::opentsdb::{Filter, Tz};
    use crate::{Access, StoreSource};

    fn source() -> StoreSource {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        let mut add = |car: &str, second: i64, fields: &[(&str, ValueRef<'_>)]| {
            let series =
                store.series(&SeriesKey::new("car", &[("car", car), ("fleet", "x")]).unwrap()).unwrap();
            let mut row = batch.builder();
            for (field, value) in fields {
                row.field(field, *value);
            }
            row.row(series, Timestamp::from_micros(second * 1_000_000));
            row.finish();
        };
        add(
            "a",
            10,
            &[("speed", ValueRef::F64(1.5)), ("gear", ValueRef::I64(1)), ("note", ValueRef::String("go"))],
        );
        add("a", 20, &[("speed", ValueRef::F64(2.5)), ("on", ValueRef::Bool(true))]);
        add("b", 10, &[("speed", ValueRef::F64(10.0)), ("gear", ValueRef::I64(5))]);
        store.append(&batch, Durability::Memory).unwrap();
        StoreSource::new(Arc::new(store), Namespace::DEFAULT, Arc::new(|_| Access::Everything))
    }

    fn field(name: &str, aggregator: &str, filters: &[Filter]) -> FieldSub {
        let sub = SubQuery {
            aggregator: aggregator.to_owned(),
            selection: Selection::Metric(Metric::Field { table: "car".into(), field: name.into() }),
            downsample: None,
            rate: None,
            filters: filters.to_vec(),
            explicit_tags: false,
        };
        FieldSub { field: name.into(), alias: None, sub, values: PointLimits::default() }
    }

    fn tables(fields: Vec<FieldSub>, rows: PointLimits) -> Result<Vec<String>, QueryError> {
        let times = Query { start: 0, end: 60_000, zone: Tz::UTC, use_calendar: false, queries: Vec::new() };
        let sub = FieldsSub { table: "car".into(), fields, rows };
        let mut tables = Vec::new();
        run_fields(&times, &[sub], &source(), &mut |answer| {
            tables.push(shown(&answer));
            ControlFlow::Continue(())
        })?;
        tables.sort();
        Ok(tables)
    }

    fn shown(answer: &FieldsAnswer) -> String {
        let tags: Vec<_> = answer.tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let rows: Vec<String> = answer
            .rows
            .iter()
            .map(|(millis, cells)| {
                let cells: Vec<String> = cells
                    .iter()
                    .map(|cell| match cell {
                        Cell::Null => "-".to_owned(),
                        Cell::Integer(value) => value.to_string(),
                        Cell::Float(value) => format!("{value:?}"),
                        Cell::Bool(value) => value.to_string(),
                        Cell::Text(text) => text.clone(),
                    })
                    .collect();
                format!("{} {}", millis / 1000, cells.join(" "))
            })
            .collect();
        format!(
            "{}[{}] {}: {}",
            tags.join(","),
            answer.aggregate_tags.join(","),
            answer.columns.join(","),
            rows.join("; ")
        )
    }

    #[test]
    fn none_gives_rows_as_they_were_written() {
        assert_eq!(
            tables(vec![field("*", "none", &[])], PointLimits::default()).unwrap(),
            [
                "car=a,fleet=x[] gear,note,on,speed: 10 1 go - 1.5; 20 - - true 2.5",
                "car=b,fleet=x[] gear,note,on,speed: 10 5 - - 10.0",
            ]
        );
        let gear = FieldSub { alias: Some("g".into()), ..field("gear", "none", &[]) };
        assert_eq!(
            tables(vec![gear, field("note", "none", &[])], PointLimits::default()).unwrap(),
            ["car=a,fleet=x[] g,note: 10 1 go", "car=b,fleet=x[] g,note: 10 5 -"]
        );
    }

    #[test]
    fn fields_are_combined_by_group_and_become_columns() {
        assert_eq!(
            tables(vec![field("speed", "sum", &[]), field("gear", "max", &[])], PointLimits::default())
                .unwrap(),
            ["fleet=x[car] speed,gear: 10 11.5 5; 20 2.5 -"]
        );
        let by_car = [Filter::of_tag("car", "*", true).unwrap()];
        let fields = vec![field("speed", "sum", &by_car), field("gear", "sum", &by_car)];
        assert_eq!(
            tables(fields, PointLimits::default()).unwrap(),
            ["car=a,fleet=x[] speed,gear: 10 1.5 1; 20 2.5 -", "car=b,fleet=x[] speed,gear: 10 10.0 5"]
        );
        assert_eq!(
            tables(vec![field("*", "min", &[])], PointLimits::default()).unwrap(),
            ["fleet=x[car] gear,speed: 10 1 1.5; 20 - 2.5"]
        );
    }

    #[test]
    fn rows_have_a_page_and_values_a_condition() {
        let page = PointLimits::new(None, Some(1), Some(1)).unwrap();
        assert_eq!(
            tables(vec![field("speed", "none", &[])], page).unwrap(),
            ["car=a,fleet=x[] speed: 20 2.5"]
        );
        let large = |aggregator| FieldSub {
            values: PointLimits::new(Some(">2"), None, None).unwrap(),
            ..field("speed", aggregator, &[])
        };
        let gear = |aggregator| field("gear", aggregator, &[]);
        assert_eq!(
            tables(vec![large("none"), gear("none")], PointLimits::default()).unwrap(),
            ["car=a,fleet=x[] speed,gear: 10 - 1; 20 2.5 -", "car=b,fleet=x[] speed,gear: 10 10.0 5"]
        );
        assert_eq!(
            tables(vec![large("sum"), gear("sum")], PointLimits::default()).unwrap(),
            ["fleet=x[car] speed,gear: 10 11.5 6; 20 2.5 -"]
        );
    }

    #[test]
    fn a_wrong_query_of_fields_says_what_is_wrong() {
        let error = |fields| tables(fields, PointLimits::default()).unwrap_err().to_string();
        assert!(error(vec![]).contains("Missing fields"));
        assert!(error(vec![field("colour", "none", &[])]).contains("Its fields: gear, note, on, speed"));
        assert!(error(vec![field("note", "sum", &[])]).contains("has no numbers in the field 'note'"));
        assert!(error(vec![field("gear", "sum", &[]), field("note", "none", &[])]).contains("none"));
    }

    #[test]
    fn the_last_values_of_fields_are_rows_from_the_newest_one_on() {
        let last = |selection: &Selection, fields: &[&str], tags: &[(&str, &str)], since| {
            let owned: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
            let tags: Vec<_> = tags.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            let found = last_fields(0, selection, &owned, &tags, since, &source());
            found.unwrap().iter().map(shown).collect::<Vec<_>>()
        };
        let car = Selection::Metric(Metric::Name("car".into()));
        assert_eq!(
            last(&car, &["speed", "gear", "note"], &[], None),
            [
                "car=a,fleet=x[] speed,gear,note: 20 2.5 - -; 10 - 1 go",
                "car=b,fleet=x[] speed,gear,note: 10 10.0 5 -"
            ]
        );
        assert_eq!(
            last(&car, &["*"], &[("car", "b")], None),
            ["car=b,fleet=x[] gear,note,on,speed: 10 5 - - 10.0"]
        );
        assert_eq!(last(&car, &["on"], &[], Some(15_000)), ["car=a,fleet=x[] on: 20 true"]);
        let tags = vec![("car".to_owned(), "b".to_owned()), ("fleet".to_owned(), "x".to_owned())];
        let named = Selection::Tsuids(vec![crate::opentsdb::tsuid("car", &tags)]);
        assert_eq!(last(&named, &["gear"], &[], None), ["car=b,fleet=x[] gear: 10 5"]);
    }
}
