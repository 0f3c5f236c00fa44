//! The catalog of one query: `tacho.public."table"`, and the schemas that describe the tables.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{Result, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{TableSource, TableType};
use futures_util::FutureExt;

use crate::provider::StoreTable;
use crate::schema_names::SCHEMA;
use crate::tables::OpenTables;
use crate::{QueryError, postgres};

/// The tables of one query and the system tables, as DataFusion's catalog traits want them.
#[derive(Debug, Clone)]
pub(crate) struct Catalog(Arc<OpenTables>);

impl Catalog {
    pub(crate) fn new(tables: Arc<OpenTables>) -> Self {
        Self(tables)
    }

    /// The tables of the query.
    pub(crate) fn tables(&self) -> &Arc<OpenTables> {
        &self.0
    }

    /// Returns the table with this name. Catalog and schema may be left out.
    pub(crate) fn source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        let resolved = name.clone().resolve(self.0.catalog(), SCHEMA);
        let unknown = || QueryError::UnknownTable { table: name.to_string(), nearest: None };
        if &*resolved.catalog != self.0.catalog() {
            return Err(unknown().into());
        }
        let provider = match &*resolved.schema {
            // As in PostgreSQL, a name without a schema is looked up in `pg_catalog` first.
            SCHEMA => match self.unqualified(&name)? {
                Some(system) => system,
                None => self.open(&resolved.table)?,
            },
            INFORMATION_SCHEMA if matches!(&*resolved.table, "routines" | "parameters") => {
                let schema = InformationSchemaProvider::new(Arc::new(self.clone()));
                // The future is ready at once.
                schema.table(&resolved.table).now_or_never().transpose()?.flatten().ok_or_else(unknown)?
            }
            schema => postgres::table(&self.0, schema, &resolved.table)?.ok_or_else(unknown)?,
        };
        Ok(provider_as_source(provider))
    }

    fn unqualified(&self, name: &TableReference) -> Result<Option<Arc<dyn TableProvider>>> {
        match name {
            TableReference::Bare { table } => postgres::table(&self.0, postgres::PG_CATALOG_NAME, table),
            _ => Ok(None),
        }
    }

    fn open(&self, name: &str) -> Result<Arc<dyn TableProvider>> {
        Ok(Arc::new(StoreTable::new(name, self.0.open(name)?.schema)))
    }
}

impl CatalogProviderList for Catalog {
    fn register_catalog(&self, _: String, _: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.0.catalog().to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == self.0.catalog()).then(|| Arc::new(self.clone()) as Arc<dyn CatalogProvider>)
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        (name == SCHEMA).then(|| Arc::new(self.clone()) as Arc<dyn SchemaProvider>)
    }
}

#[async_trait]
impl SchemaProvider for Catalog {
    fn table_names(&self) -> Vec<String> {
        // The trait allows no error here. If the store fails, no tables are listed, and a query of a table returns the error.
        self.0.names().unwrap_or_default()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let table = self.0.find(name)?;
        Ok(table.map(|table| Arc::new(StoreTable::new(name, table.schema)) as Arc<dyn TableProvider>))
    }

    /// DataFusion asks only for names from [`table_names`](Self::table_names), so the table need not be opened.
    async fn table_type(&self, _name: &str) -> Result<Option<TableType>> {
        Ok(Some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.find(name).is_ok_and(|table| table.is_some())
    }
}
