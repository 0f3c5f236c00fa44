//! The tables of one namespace of a store, as far as a query may see them.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use model::limits::EXPORT_BATCH_ROWS;
use model::{Namespace, TableName, TimeRange};
use store::{SeriesSet, Store, TableColumns, TableRead, TableSnapshot, TagMatcher};

use crate::{SeriesRead, Source, SourceError, Table};

/// What a query may read of a table.
#[derive(Debug, Clone)]
pub enum Access {
    /// Nothing: the table does not exist for the query.
    Nothing,
    /// The whole table.
    Everything,
    /// The series that satisfy all matchers.
    Series(Vec<TagMatcher>),
}

/// Returns, for the name of a table, what the query may read of it.
pub type AccessRule = dyn Fn(&str) -> Access + Send + Sync;

/// The caller's side of a query that runs.
pub trait Supervisor: Send + Sync {
    /// Returns whether the query may continue.
    ///
    /// # Errors
    /// The reason why it must end.
    fn check(&self) -> Result<(), String>;

    /// Calls `read`, which reads rows. What the store keeps of them, such as its caches, is not memory of the query.
    fn during_read(&self, read: &mut dyn FnMut());
}

/// Lets every query run to its end.
struct Unlimited;

impl Supervisor for Unlimited {
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn during_read(&self, read: &mut dyn FnMut()) {
        read();
    }
}

/// The number of series, or of values, that a listing visits between two checks.
const VISITS_PER_CHECK: usize = 1024;

/// The tables of one namespace of a store.
pub struct StoreSource {
    store: Arc<dyn Store>,
    namespace: Namespace,
    access: Arc<AccessRule>,
    supervisor: Arc<dyn Supervisor>,
}

impl fmt::Debug for StoreSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSource").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl StoreSource {
    /// The tables of a namespace, as far as `access` allows. A query of them never needs to end.
    pub fn new(store: Arc<dyn Store>, namespace: Namespace, access: Arc<AccessRule>) -> Self {
        Self { store, namespace, access, supervisor: Arc::new(Unlimited) }
    }

    /// Asks a supervisor between batches, and now and then between series, whether the query may continue.
    #[must_use]
    pub fn supervised_by(self, supervisor: Arc<dyn Supervisor>) -> Self {
        Self { supervisor, ..self }
    }
}

impl Source for StoreSource {
    fn tables(&self) -> Result<Vec<String>, SourceError> {
        self.check()?;
        let tables = self.store.tables()?;
        let own = tables.iter().filter(|status| status.table.is_in(&self.namespace));
        let names = own.map(|status| status.table.name().to_owned());
        Ok(names.filter(|name| !matches!((self.access)(name), Access::Nothing)).collect())
    }

    fn open(&self, table: &str) -> Result<Option<Box<dyn Table + '_>>, SourceError> {
        self.check()?;
        let own = match (self.access)(table) {
            Access::Nothing => return Ok(None),
            Access::Everything => Vec::new(),
            Access::Series(matchers) => matchers,
        };
        // A text that cannot be the name of a table names none.
        let Ok(name) = TableName::new(&self.namespace, table) else { return Ok(None) };
        let snapshot = self.store.snapshot(&name)?;
        Ok(snapshot.map(|snapshot| Box::new(StoreTable { snapshot, own, source: self }) as Box<dyn Table>))
    }

    fn check(&self) -> Result<(), SourceError> {
        self.supervisor.check().map_err(SourceError::Stopped)
    }
}

/// A snapshot of a table, and the matchers that every read of it has.
struct StoreTable<'a> {
    snapshot: Arc<dyn TableSnapshot>,
    own: Vec<TagMatcher>,
    source: &'a StoreSource,
}

impl StoreTable<'_> {
    /// The series that satisfy the matchers and that the query may see; `None` for all series of the table.
    fn select(&self, wanted: &[TagMatcher]) -> Result<Option<SeriesSet>, SourceError> {
        self.source.check()?;
        let matchers: Vec<TagMatcher> = wanted.iter().chain(&self.own).cloned().collect();
        match matchers.is_empty() {
            true => Ok(None),
            false => Ok(Some(self.snapshot.select(&matchers)?)),
        }
    }
}

/// Counts the visits of a listing, and asks now and then whether the query may continue.
struct Visits<'a> {
    source: &'a StoreSource,
    count: usize,
    stopped: Result<(), SourceError>,
}

impl<'a> Visits<'a> {
    fn of(source: &'a StoreSource) -> Self {
        Self { source, count: 0, stopped: Ok(()) }
    }

    fn next(&mut self) -> ControlFlow<()> {
        self.count += 1;
        if self.count.is_multiple_of(VISITS_PER_CHECK) {
            self.stopped = self.source.check();
        }
        match self.stopped {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

impl Table for StoreTable<'_> {
    fn columns(&self) -> &TableColumns {
        self.snapshot.columns()
    }

    fn time_range(&self) -> Option<TimeRange> {
        self.snapshot.time_range()
    }

    fn series(
        &self,
        matchers: &[TagMatcher],
        visit: &mut dyn FnMut(&[(&str, &str)]) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let series = self.select(matchers)?;
        let mut visits = Visits::of(self.source);
        self.snapshot.each_series(series.as_ref(), &mut |_, tags| {
            visits.next()?;
            visit(tags)
        })?;
        visits.stopped
    }

    fn tag_values(
        &self,
        tag: &str,
        matchers: &[TagMatcher],
        visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let series = self.select(matchers)?;
        let mut visits = Visits::of(self.source);
        self.snapshot.tag_values(tag, series.as_ref(), &mut |value| {
            visits.next()?;
            visit(value)
        })?;
        visits.stopped
    }

    fn series_count(&self, matchers: &[TagMatcher]) -> Result<u64, SourceError> {
        match self.select(matchers)? {
            Some(series) => Ok(series.len()),
            None => Ok(self.snapshot.select(&[])?.len()),
        }
    }

    fn read(
        &self,
        read: &SeriesRead,
        visit: &mut dyn FnMut(&RecordBatch) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let series = self.select(&read.matchers)?;
        let tags_and_time = self.columns().tags.len() + 1;
        let readers = self.snapshot.read(&TableRead {
            columns: (0..tags_and_time)
                .chain(read.fields.iter().map(|field| tags_and_time + field))
                .collect(),
            series,
            range: read.range,
            order: read.order,
            limit: None,
            batch_rows: EXPORT_BATCH_ROWS,
            readers_max: 1,
            tag_runs: true,
        })?;
        for mut reader in readers {
            loop {
                self.source.check()?;
                let mut next = Ok(None);
                self.source.supervisor.during_read(&mut || next = reader.next());
                let Some(batch) = next? else { break };
                if visit(&batch).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use model::{Batch, SeriesKey, Timestamp, ValueRef};
    use store::{Durability, MemoryStore, ReadOrder, TagPredicate, Writer};

    use super::*;
    use crate::each_series;

    fn store() -> Arc<MemoryStore> {
        let store = MemoryStore::new();
        let mut batch = Batch::new();
        for (host, zone) in [("a", Some("x")), ("b", None), ("c", Some("x"))] {
            let mut tags = vec![("host", host)];
            tags.extend(zone.map(|zone| ("zone", zone)));
            let series = store.series(&SeriesKey::new("cpu", &tags).unwrap()).unwrap();
            for second in 0..3 {
                let mut row = batch.builder();
                row.field("value", ValueRef::F64(f64::from(second)));
                row.row(series, Timestamp::from_micros(i64::from(second) * 1_000_000));
                row.finish();
            }
        }
        store.append(&batch, Durability::Memory).unwrap();
        Arc::new(store)
    }

    fn source(access: Access) -> StoreSource {
        StoreSource::new(store(), Namespace::DEFAULT, Arc::new(move |_| access.clone()))
    }

    fn in_zone_x() -> TagMatcher {
        TagMatcher { tag: "zone".into(), predicate: TagPredicate::Is("x".into()) }
    }

    fn series(source: &StoreSource, matchers: &[TagMatcher]) -> Vec<String> {
        let table = source.open("cpu").unwrap().unwrap();
        let mut found = Vec::new();
        let mut visit = |tags: &[(&str, &str)]| {
            found.push(format!("{tags:?}"));
            ControlFlow::Continue(())
        };
        table.series(matchers, &mut visit).unwrap();
        found
    }

    #[test]
    fn a_table_gives_its_series_and_their_rows_by_time() {
        let source = source(Access::Everything);
        assert_eq!(source.tables().unwrap(), ["cpu"]);
        let all =
            [r#"[("host", "a"), ("zone", "x")]"#, r#"[("host", "b")]"#, r#"[("host", "c"), ("zone", "x")]"#];
        assert_eq!(series(&source, &[]), all);
        assert_eq!(series(&source, &[in_zone_x()]), [all[0], all[2]]);

        let table = source.open("cpu").unwrap().unwrap();
        let read = SeriesRead {
            matchers: vec![in_zone_x()],
            range: TimeRange::ALL,
            fields: vec![0],
            order: ReadOrder::SeriesThenTime,
        };
        let mut rows = Vec::new();
        let mut visit = |batch: &RecordBatch| {
            let values = batch.column(3).as_primitive::<Float64Type>();
            each_series(batch, 2, |tags, run| {
                let host = tags[0].unwrap().to_owned();
                rows.extend(run.map(|row| (host.clone(), values.value(row))));
                ControlFlow::Continue(())
            })
        };
        table.read(&read, &mut visit).unwrap();
        let expected =
            ["a", "c"].iter().flat_map(|host| [0.0, 1.0, 2.0].map(|value| ((*host).to_owned(), value)));
        assert!(rows.into_iter().eq(expected));
    }

    #[test]
    fn what_a_query_may_not_see_does_not_exist() {
        let nothing = source(Access::Nothing);
        assert!(nothing.tables().unwrap().is_empty());
        assert!(nothing.open("cpu").unwrap().is_none());
        let some = source(Access::Series(vec![in_zone_x()]));
        assert_eq!(series(&some, &[]).len(), 2);
        let everything = source(Access::Everything);
        assert!(everything.open("other").unwrap().is_none());
        assert!(everything.open("").unwrap().is_none());
    }

    #[test]
    fn values_of_a_tag_and_counts_are_those_of_the_series_that_match() {
        let values = |source: &StoreSource, tag: &str, matchers: &[TagMatcher]| {
            let table = source.open("cpu").unwrap().unwrap();
            let mut found = Vec::new();
            let mut visit = |value: &str| {
                found.push(value.to_owned());
                ControlFlow::Continue(())
            };
            table.tag_values(tag, matchers, &mut visit).unwrap();
            found.sort();
            (found, table.series_count(matchers).unwrap())
        };
        let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let everything = source(Access::Everything);
        assert_eq!(values(&everything, "host", &[]), (owned(&["a", "b", "c"]), 3));
        assert_eq!(values(&everything, "zone", &[]), (owned(&["x"]), 3));
        assert_eq!(values(&everything, "host", &[in_zone_x()]), (owned(&["a", "c"]), 2));
        let some = source(Access::Series(vec![in_zone_x()]));
        assert_eq!(values(&some, "host", &[]), (owned(&["a", "c"]), 2));
        assert_eq!(values(&some, "never", &[]), (owned(&[]), 2));
    }

    /// Ends the query after a number of checks.
    struct Allows(AtomicUsize);

    impl Allows {
        fn checks(number: usize) -> Arc<Self> {
            Arc::new(Self(AtomicUsize::new(number)))
        }
    }

    impl Supervisor for Allows {
        fn check(&self) -> Result<(), String> {
            let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            left.map(drop).map_err(|_| "enough".to_owned())
        }

        fn during_read(&self, read: &mut dyn FnMut()) {
            read();
        }
    }

    #[test]
    fn a_query_that_must_end_gets_the_reason_from_every_call() {
        // To open the table, to select its series, and before its only batch.
        let source = source(Access::Everything).supervised_by(Allows::checks(3));
        let table = source.open("cpu").unwrap().unwrap();
        let read = SeriesRead {
            matchers: Vec::new(),
            range: TimeRange::ALL,
            fields: vec![0],
            order: ReadOrder::SeriesThenTime,
        };
        let mut batches = 0;
        let result = table.read(&read, &mut |_| {
            batches += 1;
            ControlFlow::Continue(())
        });
        assert_eq!((result.unwrap_err().to_string(), batches), ("enough".to_owned(), 1));
        let results = [
            source.check(),
            source.tables().map(drop),
            source.open("cpu").map(drop),
            table.series(&[], &mut |_| ControlFlow::Continue(())),
            table.tag_values("host", &[], &mut |_| ControlFlow::Continue(())),
            table.series_count(&[]).map(drop),
            table.read(&read, &mut |_| ControlFlow::Continue(())),
        ];
        for result in results {
            assert!(matches!(result, Err(SourceError::Stopped(_))), "{result:?}");
        }
    }

    #[test]
    fn a_listing_of_many_series_stops_between_two_of_them() {
        let store = MemoryStore::new();
        for number in 0..3 * VISITS_PER_CHECK {
            store.series(&SeriesKey::new("cpu", &[("host", &number.to_string())]).unwrap()).unwrap();
        }
        let access: Arc<AccessRule> = Arc::new(|_| Access::Everything);
        let source = StoreSource::new(Arc::new(store), Namespace::DEFAULT, access);
        // To open the table, to select the series, and after the first thousand.
        let source = source.supervised_by(Allows::checks(3));
        let table = source.open("cpu").unwrap().unwrap();
        let mut visited = 0;
        let result = table.series(&[], &mut |_| {
            visited += 1;
            ControlFlow::Continue(())
        });
        assert_eq!(
            (result.unwrap_err().to_string(), visited),
            ("enough".to_owned(), 2 * VISITS_PER_CHECK - 1)
        );
    }
}
