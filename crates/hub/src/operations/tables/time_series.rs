//! Queries of time series for the doors: permissions, and the threads and limits of the engine.
//!
//! The languages themselves are in the crate `timeseries`. A query of any of them is a function over a [`Source`].

use std::sync::Arc;

use query::{Session, TaskScope};
use timeseries::{Access, AccessRule, Source, StoreSource, Supervisor, opentsdb};

use super::sql::{Reader, SqlError};
use crate::bulk::{DeleteRequest, Deleted};
use crate::caller::Caller;
use crate::databases::OpenDatabase;
use crate::error::Error;
use crate::hub::Hub;

// The doors must not use the crates `query` and `store`; these are part of the interface of the hub.
pub use query::{ChunkSender, Chunks, Counted, TaskError};
pub use store::{ReadOrder, TagMatcher, TagPredicate};

impl Hub {
    /// Runs a query over the tables of a database, as far as the reader sees them. It has the admission, the time limit and the bound
    /// on memory of an SQL statement.
    ///
    /// # Errors
    /// The error of the query; or the engine's, if it did not admit the query or has ended it.
    pub async fn time_series<T: Send + 'static, E: Send + 'static>(
        &self,
        reader: &Reader,
        database: &OpenDatabase,
        query: impl FnOnce(&dyn Source) -> Result<T, E> + Send + 'static,
    ) -> Result<Counted<T>, TaskError<E>> {
        let source = self.source(reader, database);
        let engine = self.engine().map_err(TaskError::Engine)?;
        let run = move |scope: &Arc<TaskScope>| query(&supervised(source, scope));
        engine.run_task(&self.task_session(reader), run).await
    }

    /// Like [`time_series`](Self::time_series), for a query that sends its answer in chunks. It pauses while the caller takes none.
    ///
    /// # Errors
    /// The engine has too many queries. Other errors come with the chunks.
    pub fn stream_time_series<C: Send + 'static, E: Send + 'static>(
        &self,
        reader: &Reader,
        database: &OpenDatabase,
        query: impl FnOnce(&dyn Source, &ChunkSender<C>) -> Result<(), E> + Send + 'static,
    ) -> Result<Chunks<C, E>, SqlError> {
        let source = self.source(reader, database);
        let run =
            move |scope: &Arc<TaskScope>, chunks: &ChunkSender<C>| query(&supervised(source, scope), chunks);
        self.engine()?.stream_task(&self.task_session(reader), run)
    }

    /// Deletes what a query of OpenTSDB read from the tenant's own tables. Returns the number of rows that lose values. It waits for the
    /// disk: call it on a thread that may block.
    ///
    /// # Errors
    /// The caller may not delete, a table is gone, or the store fails.
    pub fn delete_queried(&self, caller: &Caller, queried: Vec<opentsdb::QueriedRows>) -> Result<u64, Error> {
        let mut rows = 0;
        for opentsdb::QueriedRows { table, key, matchers, range } in queried {
            let what = Deleted::Rows { keys: key.map(|key| vec![key]), range };
            rows += self.delete_rows(caller, &table, &DeleteRequest { matchers, what }, false)?;
        }
        Ok(rows)
    }

    fn task_session(&self, reader: &Reader) -> Session {
        reader.limited(Session::new(reader.caller().login()).of_tenant(reader.caller().tenant().as_u128()))
    }

    fn source(&self, reader: &Reader, database: &OpenDatabase) -> StoreSource {
        let reader = reader.clone().in_database(database.clone());
        let access = reader.access(&self.registry, &self.store);
        let rule: Arc<AccessRule> = Arc::new(move |table| seen(access(table)));
        StoreSource::new(Arc::clone(&self.store), database.namespace().clone(), rule)
    }
}

fn seen(access: query::Access) -> Access {
    match access {
        query::Access::Nothing => Access::Nothing,
        query::Access::Everything => Access::Everything,
        query::Access::Series(matchers) => Access::Series(matchers),
    }
}

fn supervised(source: StoreSource, scope: &Arc<TaskScope>) -> StoreSource {
    source.supervised_by(Arc::new(OfTask(Arc::clone(scope))))
}

/// The engine's supervision of a task.
struct OfTask(Arc<TaskScope>);

impl Supervisor for OfTask {
    fn check(&self) -> Result<(), String> {
        self.0.check().map_err(|error| error.to_string())
    }

    fn during_read(&self, read: &mut dyn FnMut()) {
        self.0.outside(read);
    }
}
