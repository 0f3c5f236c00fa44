//! Runs the SHOW statements that read tables.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use model::TimeRange;
use store::TagMatcher;

use super::answer::{Context, Error, Head, Visit};
use super::ast::{Expr, Keys, Listing, Op, Show};
use super::plan::{data_type, measurement_names};
use super::reduce::{Constants, TIME_MAX, TIME_MIN, Times, split_condition};
use super::scan::{Filter, matchers, time_range};
use super::value::Value;
use crate::{Source, Table, TagPairs};

/// Runs a SHOW statement for measurements, tag keys, tag values, field keys or series, or for how many there are. Everything else that SHOW lists, such as
/// databases, belongs to the caller and is refused here.
///
/// A condition on the time leaves out the tables that have no row in the range; it does not look at single series.
///
/// # Errors
/// The statement is wrong, exceeds a limit, or a table cannot be read.
pub fn show(
    statement: &Show,
    source: &dyn Source,
    context: &Context,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let constants = Constants { now: context.now, zone: None };
    let split = split_condition(statement.condition.as_ref(), &constants).map_err(Error::Statement)?;
    let (condition, times) = split;
    check_condition(condition.as_ref())?;
    let run = Showing { statement, source, condition, times, series_max: context.limits.series };
    match statement.listing {
        Listing::Measurements | Listing::MeasurementCardinality => run.measurements(visit),
        Listing::TagKeys | Listing::TagKeyCardinality => run.tag_keys(visit),
        Listing::TagValues | Listing::TagValuesCardinality => run.tag_values(visit),
        Listing::FieldKeys | Listing::FieldKeyCardinality => run.field_keys(visit),
        Listing::Series => run.series(visit),
        Listing::SeriesCardinality => run.series_counts(visit),
        _ => Err(Error::Statement("this SHOW statement is not supported".to_owned())),
    }
}

/// In a condition of SHOW MEASUREMENTS it is the name of the measurement.
const NAME: &str = "_name";

/// Tags are texts: they are equal or match, and have no order.
pub(super) fn check_condition(condition: Option<&Expr>) -> Result<(), Error> {
    let mut ordered = false;
    if let Some(condition) = condition {
        condition.walk(&mut |expr| {
            ordered |= matches!(expr, Expr::Binary(Op::Lt | Op::Lte | Op::Gt | Op::Gte, ..));
        });
    }
    match ordered {
        true => Err(Error::Statement("invalid tag comparison operator".to_owned())),
        false => Ok(()),
    }
}

/// A SHOW statement while it runs.
struct Showing<'a> {
    statement: &'a Show,
    source: &'a dyn Source,
    /// The condition without the time.
    condition: Option<Expr>,
    times: Times,
    series_max: usize,
}

impl<'a> Showing<'a> {
    fn measurements(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        if self.times != Times::default() {
            let message = "SHOW MEASUREMENTS doesn't support time in WHERE clause";
            return Err(Error::Statement(message.to_owned()));
        }
        let mut rows = Vec::new();
        for (name, table) in self.tables()? {
            let is_listed = match &self.condition {
                None => true,
                Some(condition) => self.concerns(condition, &name, &*table)?,
            };
            if is_listed {
                rows.push(vec![Value::text(name)]);
            }
        }
        let head = match self.statement.listing {
            Listing::Measurements => head("measurements", &["name"]),
            _ => {
                let count = rows.len() as i64;
                rows = if count > 0 || self.is_of_everything() { count_row(count) } else { Vec::new() };
                head("", &[self.total_column()])
            }
        };
        // The visitor has taken all that it wants when it breaks.
        let _ = self.piece(&head, rows, visit);
        Ok(())
    }

    /// Whether a cardinality is that of the whole database.
    fn is_of_everything(&self) -> bool {
        !self.statement.exact && self.statement.from.is_empty() && self.condition.is_none()
    }

    /// InfluxDB only estimates a number of the whole database, and says so.
    fn total_column(&self) -> &'static str {
        if self.is_of_everything() { "cardinality estimation" } else { "count" }
    }

    fn tag_keys(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        for (name, table) in self.tables()? {
            let keys = self.collect(&name, &*table, &mut |tags, found: &mut BTreeSet<String>| {
                found.extend(tags.iter().map(|(key, _)| (*key).to_owned()));
            })?;
            let rows = keys.into_iter().map(|key| vec![Value::text(key)]).collect();
            if self.list(&name, &["tagKey"], rows, visit).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn tag_values(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        for (name, table) in self.tables()? {
            let pairs =
                self.collect(&name, &*table, &mut |tags, found: &mut BTreeSet<(String, String)>| {
                    let wanted = tags.iter().filter(|(key, _)| self.wants(key));
                    found.extend(wanted.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
                })?;
            let rows =
                pairs.into_iter().map(|(key, value)| vec![Value::text(key), Value::text(value)]).collect();
            if self.list(&name, &["key", "value"], rows, visit).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn field_keys(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        for (name, table) in self.tables()? {
            let fields = table.columns().fields.iter();
            let fields: BTreeSet<(&str, &str)> =
                fields.map(|field| (&*field.key, data_type(field.field_type).name())).collect();
            let rows =
                fields.into_iter().map(|(key, kind)| vec![Value::text(key), Value::text(kind)]).collect();
            if self.list(&name, &["fieldKey", "fieldType"], rows, visit).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn series(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let mut rows = Vec::new();
        for (name, table) in self.tables()? {
            let keys = self.collect(&name, &*table, &mut |tags, found: &mut BTreeSet<String>| {
                found.insert(series_key(&name, tags));
            })?;
            rows.extend(keys.into_iter().map(|key| vec![Value::text(key)]));
            if rows.len() > self.series_max {
                return Err(self.too_many(&name));
            }
        }
        // The visitor has taken all that it wants when it breaks.
        let _ = self.piece(&head("", &["key"]), rows, visit);
        Ok(())
    }

    fn series_counts(&self, visit: &mut Visit<'_>) -> Result<(), Error> {
        let mut total = 0;
        for (name, table) in self.tables()? {
            let count = match &self.condition {
                None => i64::try_from(table.series_count(&[])?).unwrap_or(i64::MAX),
                Some(_) => {
                    let mut count = 0;
                    self.each_series(&*table, &mut |_| {
                        count += 1;
                        ControlFlow::Continue(())
                    })?;
                    count
                }
            };
            if self.is_of_everything() {
                total += count;
            } else if count > 0 && self.piece(&head(&name, &["count"]), count_row(count), visit).is_break() {
                return Ok(());
            }
        }
        if self.is_of_everything() {
            // The visitor has taken all that it wants when it breaks.
            let _ = self.piece(&head("", &[self.total_column()]), count_row(total), visit);
        }
        Ok(())
    }

    /// The tables of FROM, or all, that have rows in the range of the statement.
    fn tables(&self) -> Result<BTreeMap<String, Box<dyn Table + 'a>>, Error> {
        let mut names = Vec::new();
        for measurement in &self.statement.from {
            names.extend(measurement_names(self.source, measurement)?);
        }
        if self.statement.from.is_empty() {
            names = self.source.tables()?;
        }
        let mut tables = BTreeMap::new();
        for name in names {
            if let Some(table) = self.source.open(&name)?
                && self.in_range(table.time_range())
            {
                tables.insert(name, table);
            }
        }
        Ok(tables)
    }

    fn in_range(&self, rows: Option<TimeRange>) -> bool {
        let wanted = time_range(self.times.min.unwrap_or(TIME_MIN), self.times.max.unwrap_or(TIME_MAX));
        self.times == Times::default() || rows.is_some_and(|rows| rows.overlaps(&wanted))
    }

    /// Whether a measurement satisfies a condition of SHOW MEASUREMENTS. A comparison is about all series together: one of them has the
    /// tag with such a value, or, for the negations, the measurement has the tag and no series has such a value.
    fn concerns(&self, condition: &Expr, name: &str, table: &dyn Table) -> Result<bool, Error> {
        let (op, left, right) = match condition {
            Expr::Paren(inner) => return self.concerns(inner, name, table),
            Expr::Binary(Op::And, left, right) => {
                return Ok(self.concerns(left, name, table)? && self.concerns(right, name, table)?);
            }
            Expr::Binary(Op::Or, left, right) => {
                return Ok(self.concerns(left, name, table)? || self.concerns(right, name, table)?);
            }
            Expr::Binary(op, left, right) => (op, left, right),
            _ => return Ok(false),
        };
        let Expr::Ref(tag, _) = &**left else { return Ok(false) };
        let is_such = |value: &str| match &**right {
            Expr::Str(text) => value == text,
            Expr::Regex(pattern) => pattern.0.is_match(value),
            _ => false,
        };
        let is_negation = matches!(op, Op::Neq | Op::NotMatch);
        if tag == NAME {
            return Ok(is_such(name) != is_negation);
        }
        let (mut has_tag, mut has_such) = (false, false);
        table.series(&[], &mut |tags| {
            let value = tags.iter().find(|(key, _)| key == tag).map(|(_, value)| *value);
            has_tag |= value.is_some();
            has_such |= value.is_some_and(is_such);
            if has_such { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(has_tag && has_such != is_negation)
    }

    /// What `add` takes from the tags of all series of a table that satisfy the condition.
    fn collect<T>(
        &self,
        name: &str,
        table: &dyn Table,
        add: &mut dyn FnMut(&TagPairs<'_, '_>, &mut BTreeSet<T>),
    ) -> Result<BTreeSet<T>, Error> {
        let mut found = BTreeSet::new();
        self.each_series(table, &mut |tags| {
            add(tags, &mut found);
            match found.len() > self.series_max {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        match found.len() > self.series_max {
            true => Err(self.too_many(name)),
            false => Ok(found),
        }
    }

    fn each_series(
        &self,
        table: &dyn Table,
        visit: &mut dyn FnMut(&TagPairs<'_, '_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        // Names in the condition are those of tags, even where a field has the name, too.
        let is_field = |_: &str| false;
        let condition = self.condition.as_ref();
        let filter = Filter::new(condition, &[], &is_field);
        let matchers: Vec<TagMatcher> = matchers(condition, &is_field);
        table.series(&matchers, &mut |tags| {
            let tag = |wanted: &str| tags.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
            match filter.keeps_series(&tag) {
                true => visit(tags),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ok(())
    }

    fn too_many(&self, name: &str) -> Error {
        let most = self.series_max;
        Error::Statement(format!(
            "more than {most} entries to list, in measurement {name}: narrow the statement"
        ))
    }

    fn wants(&self, key: &str) -> bool {
        match &self.statement.keys {
            None => true,
            Some(Keys::Is(own)) => own == key,
            Some(Keys::IsNot(own)) => own != key,
            Some(Keys::OneOf(own)) => own.iter().any(|own| own == key),
            Some(Keys::Matches(pattern)) => pattern.0.is_match(key),
            Some(Keys::MatchesNot(pattern)) => !pattern.0.is_match(key),
        }
    }

    /// Gives the rows of a measurement, or their number if the statement asks for that.
    fn list(
        &self,
        name: &str,
        columns: &[&str],
        rows: Vec<Vec<Value>>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        match self.statement.listing {
            Listing::TagKeys | Listing::TagValues | Listing::FieldKeys => {
                self.piece(&head(name, columns), rows, visit)
            }
            _ if rows.is_empty() => ControlFlow::Continue(()),
            _ => self.piece(&head(name, &["count"]), count_row(rows.len() as i64), visit),
        }
    }

    /// Gives the rows of one head that LIMIT and OFFSET leave.
    fn piece(&self, head: &Head, rows: Vec<Vec<Value>>, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let limit = if self.statement.limit == 0 { usize::MAX } else { self.statement.limit };
        rows.into_iter().skip(self.statement.offset).take(limit).try_for_each(|row| visit(head, row))
    }
}

/// The only row of a number.
fn count_row(count: i64) -> Vec<Vec<Value>> {
    vec![vec![Value::Int(count)]]
}

fn head(name: &str, columns: &[&str]) -> Head {
    Head {
        name: name.to_owned(),
        tags: Vec::new(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        timed: false,
        zone: None,
    }
}

/// A series as line protocol writes it.
fn series_key(name: &str, tags: &[(&str, &str)]) -> String {
    let mut key = escaped(name, &[',', ' ']);
    for (tag, value) in tags {
        key.push(',');
        key.push_str(&escaped(tag, &[',', '=', ' ']));
        key.push('=');
        key.push_str(&escaped(value, &[',', '=', ' ']));
    }
    key
}

fn escaped(text: &str, special: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for next in text.chars() {
        if special.contains(&next) {
            out.push('\\');
        }
        out.push(next);
    }
    out
}
