//! A table of the store as DataFusion sees it while it plans.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use model::TimeRange;

use crate::physical::{ScanSpec, StoreScan};
use crate::pushdown::{self, Pushed};
use crate::tables::OpenTables;

/// A table of the store. It holds no snapshot, so that a plan with it can be cached. A scan takes the snapshot from the query.
#[derive(Debug)]
pub(crate) struct StoreTable {
    name: Arc<str>,
    schema: SchemaRef,
}

impl StoreTable {
    pub(crate) fn new(name: &str, schema: SchemaRef) -> Self {
        Self { name: name.into(), schema }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

#[async_trait]
impl TableProvider for StoreTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match pushdown::push(filter, &self.schema) {
            Some(Pushed::Tag(_) | Pushed::Time { exact: true, .. }) => TableProviderFilterPushDown::Exact,
            Some(Pushed::Time { exact: false, .. }) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(tables) = session.config().get_extension::<OpenTables>() else {
            return Err(DataFusionError::Internal("a query without tables".into()));
        };
        let mut matchers = Vec::new();
        let mut range = TimeRange::ALL;
        for pushed in filters.iter().filter_map(|filter| pushdown::push(filter, &self.schema)) {
            match pushed {
                Pushed::Tag(matcher) => matchers.push(matcher),
                Pushed::Time { range: allowed, .. } => range = pushdown::intersect(range, allowed),
            }
        }
        let spec = ScanSpec {
            table: Arc::clone(&self.name),
            schema: Arc::clone(&self.schema),
            columns: projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect()),
            matchers,
            range,
            limit,
            batch_rows: session.config().batch_size(),
            readers_max: session.config().target_partitions(),
        };
        Ok(Arc::new(StoreScan::new(Arc::new(spec), &tables)?))
    }
}
