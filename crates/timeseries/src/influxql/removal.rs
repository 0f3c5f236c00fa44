//! The removals of DELETE and DROP SERIES.

use std::ops::ControlFlow;

use model::TimeRange;
use store::{SeriesSet, StoreError, TableSnapshot};

use super::answer::Error;
use super::ast::{DataType, Expr, Measurement};
use super::reduce::{Constants, TIME_MAX, TIME_MIN, Times, split_condition};
use super::scan::{Filter, matchers, time_range};
use super::show::check_condition;

/// The data that a statement removes: rows in a time range, or whole series.
#[derive(Debug, Clone)]
pub struct Removal {
    from: Vec<Measurement>,
    /// The condition without the time.
    condition: Option<Expr>,
    /// The times of the rows; `None` removes the series.
    range: Option<TimeRange>,
}

impl Removal {
    /// The removals of DELETE. `now` is in nanoseconds since the epoch.
    ///
    /// # Errors
    /// The condition is wrong, in the words of InfluxDB.
    pub fn of_rows(from: Vec<Measurement>, condition: Option<&Expr>, now: i64) -> Result<Self, Error> {
        let (condition, times) = parts(condition, now)?;
        let range = time_range(times.min.unwrap_or(TIME_MIN), times.max.unwrap_or(TIME_MAX));
        Ok(Self { from, condition, range: Some(range) })
    }

    /// The removals of DROP SERIES.
    ///
    /// # Errors
    /// As [`of_rows`](Self::of_rows); or the condition has a time.
    pub fn of_series(from: Vec<Measurement>, condition: Option<&Expr>, now: i64) -> Result<Self, Error> {
        let (condition, times) = parts(condition, now)?;
        match times == Times::default() {
            true => Ok(Self { from, condition, range: None }),
            false => Err(Error::Statement("DROP SERIES doesn't support time in WHERE clause".to_owned())),
        }
    }

    /// The times of the rows that are removed; `None` if whole series are.
    pub fn range(&self) -> Option<TimeRange> {
        self.range
    }

    /// Whether the statement concerns a measurement: without FROM it concerns all.
    pub fn concerns(&self, measurement: &str) -> bool {
        let mut patterns = self.from.iter().filter_map(|from| from.pattern.as_ref());
        self.from.is_empty()
            || self.names(measurement)
            || patterns.any(|pattern| pattern.0.is_match(measurement))
    }

    /// Whether the statement names a measurement, and not only a pattern or none.
    pub fn names(&self, measurement: &str) -> bool {
        self.from.iter().any(|from| from.pattern.is_none() && from.name == measurement)
    }

    /// The series of a table that the statement concerns.
    ///
    /// # Errors
    /// The condition is about a field, or the table cannot be read.
    pub fn series(&self, table: &dyn TableSnapshot) -> Result<SeriesSet, Error> {
        let condition = self.condition.as_ref();
        let columns = table.columns();
        let is_tag = |name: &str| columns.tags.iter().any(|tag| &*tag.tag == name);
        let is_field = |name: &str| !is_tag(name) && columns.fields.iter().any(|field| &*field.key == name);
        if reads(condition, &is_field) {
            let message = "fields not supported in WHERE clause during deletion";
            return Err(Error::Statement(message.to_owned()));
        }
        let none = |_: &str| false;
        let (filter, mut found) = (Filter::new(condition, &[], &none), SeriesSet::new());
        let unread = |error: StoreError| Error::Source(error.into());
        let candidates = table.select(&matchers(condition, &none)).map_err(unread)?;
        let mut visit = |number: u32, tags: &[(&str, &str)]| {
            let tag = |wanted: &str| tags.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
            if filter.keeps_series(&tag) {
                found.insert(number);
            }
            ControlFlow::Continue(())
        };
        table.each_series(Some(&candidates), &mut visit).map_err(unread)?;
        Ok(found)
    }
}

fn parts(condition: Option<&Expr>, now: i64) -> Result<(Option<Expr>, Times), Error> {
    let constants = Constants { now, zone: None };
    let (condition, times) = split_condition(condition, &constants).map_err(Error::Statement)?;
    check_condition(condition.as_ref())?;
    Ok((condition, times))
}

fn reads(condition: Option<&Expr>, is_field: &dyn Fn(&str) -> bool) -> bool {
    let mut found = false;
    if let Some(condition) = condition {
        condition.walk(&mut |expr| {
            if let Expr::Ref(name, kind) = expr {
                found |= *kind != DataType::Tag && is_field(name);
            }
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use model::{Batch, Namespace, SeriesKey, TableName, Timestamp, ValueRef};
    use store::{Durability, MemoryStore, Reader, Writer};

    use super::super::{ast::Statement, parse};
    use super::*;

    fn removal(query: &str) -> Result<Removal, String> {
        let now = 1_000_000_000_000;
        let removal = match parse(query, &HashMap::new()).unwrap().remove(0) {
            Statement::Delete { from, condition } => Removal::of_rows(from, condition.as_ref(), now),
            Statement::DropSeries { from, condition } => Removal::of_series(from, condition.as_ref(), now),
            other => panic!("{other:?}"),
        };
        removal.map_err(|error| error.to_string())
    }

    /// The hosts of the series that a statement concerns.
    fn hosts(query: &str) -> Result<String, String> {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        for (host, zone) in [("a", "x"), ("b", "x"), ("c", "y")] {
            let key = SeriesKey::new("cpu", &[("host", host), ("zone", zone)]).unwrap();
            let mut row = batch.builder();
            row.field("usage", ValueRef::F64(1.0));
            row.row(store.series(&key).unwrap(), Timestamp::from_micros(1));
            row.finish();
        }
        store.append(&batch, Durability::Memory).unwrap();
        let table = store.snapshot(&TableName::new(&Namespace::DEFAULT, "cpu").unwrap()).unwrap().unwrap();
        let series = removal(query)?.series(&*table).map_err(|error| error.to_string())?;
        let mut hosts = String::new();
        let mut visit = |_: u32, tags: &[(&str, &str)]| {
            hosts.push_str(tags[0].1);
            ControlFlow::Continue(())
        };
        table.each_series(Some(&series), &mut visit).unwrap();
        Ok(hosts)
    }

    #[test]
    fn conditions_on_tags_choose_series() {
        for (query, expected) in [
            ("DELETE FROM cpu", "abc"),
            ("DELETE FROM cpu WHERE host = 'a' OR zone = 'y'", "ac"),
            ("DELETE FROM cpu WHERE zone != 'x' AND time < 5", "c"),
            ("DELETE WHERE host =~ /[ab]/", "ab"),
            ("DELETE FROM cpu WHERE nosuch = 'a'", ""),
            ("DROP SERIES FROM cpu WHERE host = 'b'", "b"),
        ] {
            assert_eq!(hosts(query), Ok(expected.to_owned()), "{query}");
        }
    }

    #[test]
    fn what_no_deletion_can_mean_is_refused() {
        for (query, expected) in [
            ("DELETE FROM cpu WHERE usage > 3", "invalid tag comparison operator"),
            ("DELETE FROM cpu WHERE usage = 1", "fields not supported in WHERE clause during deletion"),
            ("DROP SERIES FROM cpu WHERE time > 0", "DROP SERIES doesn't support time in WHERE clause"),
        ] {
            assert_eq!(hosts(query), Err(expected.to_owned()), "{query}");
        }
    }

    #[test]
    fn a_time_bounds_the_rows_and_names_bound_the_measurements() {
        let bounded = removal("DELETE FROM cpu, /^d/ WHERE time >= 2000 AND time < now()").unwrap();
        let range = bounded.range().unwrap();
        assert_eq!((range.start.micros(), range.end.micros()), (2, 1_000_000_000));
        assert!(bounded.concerns("cpu") && bounded.concerns("disk") && !bounded.concerns("mem"));
        assert!(bounded.names("cpu") && !bounded.names("disk"));
        assert!(removal("DELETE WHERE time < 5").unwrap().concerns("any"));
        assert_eq!(removal("DROP SERIES FROM cpu").unwrap().range(), None);
    }
}
