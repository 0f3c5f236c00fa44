//! The tables of one namespace of a store, as far as a query may see them.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use model::limits::EXPORT_BATCH_ROWS;
use model::{Namespace, TableName, TimeRange};
use store::{ReadOrder, Store, TableColumns, TableRead, TableSnapshot, TagMatcher};

use crate::{SeriesRead, Source, SourceError, Table, each_series};

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

/// Says, for the name of a table, what the query may read of it.
pub type AccessRule = dyn Fn(&str) -> Access + Send + Sync;

/// The tables of one namespace of a store.
pub struct StoreSource {
    store: Arc<dyn Store>,
    namespace: Namespace,
    access: Arc<AccessRule>,
}

impl fmt::Debug for StoreSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSource").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl StoreSource {
    /// The tables of a namespace, as far as `access` allows.
    pub fn new(store: Arc<dyn Store>, namespace: Namespace, access: Arc<AccessRule>) -> Self {
        Self { store, namespace, access }
    }
}

impl Source for StoreSource {
    fn tables(&self) -> Result<Vec<String>, SourceError> {
        let tables = self.store.tables()?;
        let own = tables.iter().filter(|status| status.table.namespace() == self.namespace);
        let names = own.map(|status| status.table.name().to_owned());
        Ok(names.filter(|name| !matches!((self.access)(name), Access::Nothing)).collect())
    }

    fn open(&self, table: &str) -> Result<Option<Box<dyn Table + '_>>, SourceError> {
        let own = match (self.access)(table) {
            Access::Nothing => return Ok(None),
            Access::Everything => Vec::new(),
            Access::Series(matchers) => matchers,
        };
        // A text that cannot be the name of a table names none.
        let Ok(name) = TableName::new(&self.namespace, table) else { return Ok(None) };
        let snapshot = self.store.snapshot(&name)?;
        Ok(snapshot.map(|snapshot| Box::new(StoreTable { snapshot, own }) as Box<dyn Table>))
    }
}

/// A snapshot of a table, and the matchers that every read of it has.
struct StoreTable {
    snapshot: Arc<dyn TableSnapshot>,
    own: Vec<TagMatcher>,
}

impl StoreTable {
    fn matchers(&self, wanted: &[TagMatcher]) -> Vec<TagMatcher> {
        wanted.iter().chain(&self.own).cloned().collect()
    }
}

impl Table for StoreTable {
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
        let names: Vec<Arc<str>> = self.columns().tags.iter().map(|tag| Arc::clone(&tag.tag)).collect();
        let read = SeriesRead {
            matchers: matchers.to_vec(),
            range: TimeRange::ALL,
            fields: Vec::new(),
            order: ReadOrder::SeriesThenTime,
        };
        let mut last: Vec<Option<String>> = Vec::new();
        self.read(&read, &mut |batch| {
            each_series(batch, names.len(), |values, _| {
                if last.iter().map(Option::as_deref).eq(values.iter().copied()) && !last.is_empty() {
                    return ControlFlow::Continue(());
                }
                last = values.iter().map(|value| value.map(str::to_owned)).collect();
                let pairs = names.iter().zip(values).filter_map(|(name, value)| Some((&**name, (*value)?)));
                let mut tags: Vec<(&str, &str)> = pairs.collect();
                tags.sort_unstable();
                visit(&tags)
            })
        })
    }

    fn read(
        &self,
        read: &SeriesRead,
        visit: &mut dyn FnMut(&RecordBatch) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let matchers = self.matchers(&read.matchers);
        let series = match matchers.is_empty() {
            true => None,
            false => Some(self.snapshot.select(&matchers)?),
        };
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
            while let Some(batch) = reader.next()? {
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
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use model::{Batch, SeriesKey, Timestamp, ValueRef};
    use store::{Durability, MemoryStore, TagPredicate};

    use super::*;

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
}
