//! The tables of one query.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use parking_lot::Mutex;
use store::{Store, TableColumns, TableSnapshot, TableStatus, TagMatcher};

use crate::empty_table::EmptyTable;
use crate::postgres::{Object, number};
use crate::{Access, QueryError, Session, empty_table};

/// Schemas kept between queries. Beyond it all are forgotten, which costs one conversion per table.
const SCHEMAS_MAX: usize = 4_096;

/// Arrow schemas of tables. As long as a table keeps its columns, the same schema is given for it.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    known: Mutex<HashMap<Arc<str>, (TableColumns, SchemaRef)>>,
}

impl Schemas {
    fn of(&self, columns: &TableColumns) -> SchemaRef {
        let mut known = self.known.lock();
        if let Some((known_columns, schema)) = known.get(&columns.table)
            && known_columns == columns
        {
            return Arc::clone(schema);
        }
        if known.len() >= SCHEMAS_MAX {
            known.clear();
        }
        let schema = columns.schema();
        known.insert(Arc::clone(&columns.table), (columns.clone(), Arc::clone(&schema)));
        schema
    }
}

/// One table at one moment, as much of it as the user may see.
#[derive(Debug, Clone)]
pub(crate) struct OpenTable {
    pub(crate) snapshot: Arc<dyn TableSnapshot>,
    pub(crate) schema: SchemaRef,
    /// What the session adds to the conditions of the query.
    pub(crate) matchers: Vec<TagMatcher>,
}

/// The tables of one query. Each is opened when it is first named and stays as it was then.
pub(crate) struct OpenTables {
    store: Arc<dyn Store>,
    schemas: Arc<Schemas>,
    session: Session,
    opened: Mutex<HashMap<String, OpenTable>>,
}

impl OpenTables {
    pub(crate) fn new(store: Arc<dyn Store>, schemas: Arc<Schemas>, session: Session) -> Self {
        Self { store, schemas, session, opened: Mutex::default() }
    }

    /// The table, unless there is none or the user may not see it.
    pub(crate) fn find(&self, name: &str) -> Result<Option<OpenTable>, QueryError> {
        if let Some(table) = self.opened.lock().get(name) {
            return Ok(Some(table.clone()));
        }
        let matchers = match self.session.access(name) {
            Access::Nothing => return Ok(None),
            Access::Everything => Vec::new(),
            Access::Series(matchers) => matchers,
        };
        let snapshot = match self.store.snapshot(name)? {
            Some(snapshot) => snapshot,
            None => match self.session.expected_tables().into_iter().find(|table| &*table.table == name) {
                Some(columns) => Arc::new(EmptyTable(columns)),
                None => return Ok(None),
            },
        };
        let schema = self.schemas.of(snapshot.columns());
        let table = OpenTable { snapshot, schema, matchers };
        self.opened.lock().insert(name.to_owned(), table.clone());
        Ok(Some(table))
    }

    /// The table, or an error that names the most similar one.
    pub(crate) fn open(&self, name: &str) -> Result<OpenTable, QueryError> {
        if let Some(table) = self.find(name)? {
            return Ok(table);
        }
        let names = self.names()?;
        let nearest = QueryError::nearest(name, names.iter().map(String::as_str));
        Err(QueryError::UnknownTable { table: name.to_owned(), nearest })
    }

    /// Who asks.
    pub(crate) fn user(&self) -> &str {
        self.session.user()
    }

    /// The tables that the user may see, with their numbers in PostgreSQL's catalog, sorted by name.
    pub(crate) fn objects(&self) -> Result<Vec<Object>, QueryError> {
        let tables = self.status()?;
        Ok(number(tables, |name| !matches!(self.session.access(name), Access::Nothing)))
    }

    /// Names of the tables that the user may see, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, QueryError> {
        let names = self.status()?.into_iter().map(|status| status.table);
        Ok(names.filter(|name| !matches!(self.session.access(name), Access::Nothing)).collect())
    }

    /// The store's tables and those that are expected, sorted by name.
    fn status(&self) -> Result<Vec<TableStatus>, QueryError> {
        let mut tables = self.store.tables()?;
        for columns in self.session.expected_tables() {
            if let Err(place) = tables.binary_search_by(|table| table.table.as_str().cmp(&columns.table)) {
                tables.insert(place, empty_table::status(&columns));
            }
        }
        Ok(tables)
    }
}

impl std::fmt::Debug for OpenTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenTables").field("session", &self.session).finish_non_exhaustive()
    }
}
