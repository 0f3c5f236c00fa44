//! The tables of one query.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use model::{Namespace, TableName};
use parking_lot::Mutex;
use store::{Store, TableColumns, TableSnapshot, TableStatus, TagMatcher};

use crate::empty_table::EmptyTable;
use crate::{Access, QueryError, Session, empty_table};

/// The number of schemas that are cached. When there are more, the cache is cleared, which costs one conversion for each table.
const SCHEMAS_MAX: usize = 4_096;

/// Arrow schemas of tables. A table has the same schema object as long as it keeps its columns.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    known: Mutex<HashMap<TableName, (TableColumns, SchemaRef)>>,
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
        known.insert(columns.table.clone(), (columns.clone(), Arc::clone(&schema)));
        schema
    }
}

/// One table at one moment, restricted to what the user may see.
#[derive(Debug, Clone)]
pub(crate) struct OpenTable {
    pub(crate) snapshot: Arc<dyn TableSnapshot>,
    pub(crate) schema: SchemaRef,
    /// The conditions that the session adds to those of the query.
    pub(crate) matchers: Vec<TagMatcher>,
}

/// The tables of one query. Each is opened when the query first names it, and does not change afterwards.
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

    /// Returns the table; `None` if it does not exist or the user may not see it.
    pub(crate) fn find(&self, name: &str) -> Result<Option<OpenTable>, QueryError> {
        if let Some(table) = self.opened.lock().get(name) {
            return Ok(Some(table.clone()));
        }
        let matchers = match self.session.access(name) {
            Access::Nothing => return Ok(None),
            Access::Everything => Vec::new(),
            Access::Series(matchers) => matchers,
        };
        // A name against the rules is the name of no table.
        let Ok(full_name) = TableName::new(self.session.namespace(), name) else { return Ok(None) };
        let snapshot = match self.store.snapshot(&full_name)? {
            Some(snapshot) => snapshot,
            None => match self.session.expected_tables().into_iter().find(|table| table.table == full_name) {
                Some(columns) => Arc::new(EmptyTable(columns)),
                None => return Ok(None),
            },
        };
        let schema = self.schemas.of(snapshot.columns());
        let table = OpenTable { snapshot, schema, matchers };
        self.opened.lock().insert(name.to_owned(), table.clone());
        Ok(Some(table))
    }

    /// Returns the table, or an error with the name of the most similar one.
    pub(crate) fn open(&self, name: &str) -> Result<OpenTable, QueryError> {
        if let Some(table) = self.find(name)? {
            return Ok(table);
        }
        let names = self.names()?;
        let nearest = QueryError::nearest(name, names.iter().map(String::as_str));
        Err(QueryError::UnknownTable { table: name.to_owned(), nearest })
    }

    /// The namespace of all tables.
    pub(crate) fn namespace(&self) -> &Namespace {
        self.session.namespace()
    }

    /// The name of the catalog of all tables.
    pub(crate) fn catalog(&self) -> &str {
        self.session.catalog()
    }

    /// The name of the user.
    pub(crate) fn user(&self) -> &str {
        self.session.user()
    }

    /// The names of the tables that the user may see, sorted.
    pub(crate) fn names(&self) -> Result<Vec<String>, QueryError> {
        let names = self.status()?.into_iter().map(|status| status.table.name().to_owned());
        Ok(names.filter(|name| self.is_visible(name)).collect())
    }

    /// Whether the user may see the table.
    pub(crate) fn is_visible(&self, name: &str) -> bool {
        !matches!(self.session.access(name), Access::Nothing)
    }

    /// The tables of the namespace in the store, and the expected ones, sorted by name. The user may not be allowed to see all of them.
    pub(crate) fn status(&self) -> Result<Vec<TableStatus>, QueryError> {
        let mut tables = self.store.tables()?;
        tables.retain(|table| table.table.is_in(self.session.namespace()));
        for columns in self.session.expected_tables() {
            if let Err(index) = tables.binary_search_by(|table| table.table.cmp(&columns.table)) {
                tables.insert(index, empty_table::status(&columns));
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
