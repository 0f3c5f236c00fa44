//! The rows that a DELETE names: series by conditions on tags, and a range of times.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use model::TimeRange;
use store::TagMatcher;

use crate::provider::StoreTable;
use crate::pushdown::{self, Pushed};
use crate::resolved_statement::ResolvedStatement;
use crate::{Engine, QueryError, Session, statement};

/// The rows of a DELETE.
#[derive(Debug, Clone)]
pub struct NamedRows {
    /// The table, by its name in the namespace of the session.
    pub table: String,
    /// Conditions on tags. The rows are those of the series that satisfy all of them.
    pub matchers: Vec<TagMatcher>,
    /// The times of the rows, half-open.
    pub range: TimeRange,
}

/// A checked DELETE that can be run many times.
#[derive(Clone)]
pub struct PreparedDeletion {
    resolved: Arc<ResolvedStatement>,
}

impl Engine {
    /// Checks a `DELETE FROM table WHERE condition` with parameters. The parameters are those of [`prepare`](Self::prepare).
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare), and for other statements.
    pub async fn prepare_deletion(
        &self,
        sql: &str,
        parameter_types: &[Option<DataType>],
        session: &Session,
    ) -> Result<PreparedDeletion, QueryError> {
        let query = statement::selecting_query(sql)?;
        let resolved = self.resolve_prepared(&query, parameter_types, session).await?;
        Ok(PreparedDeletion { resolved: Arc::new(resolved) })
    }

    /// The rows that a DELETE names with these parameters; `None` if its condition is never true. It reads no rows and changes nothing.
    ///
    /// # Errors
    /// The condition is not a conjunction of conditions on tags and on the time; or as [`Prepared::run`](crate::Prepared::run).
    pub async fn named_rows(
        &self,
        deletion: &PreparedDeletion,
        parameters: Vec<ScalarValue>,
        session: &Session,
    ) -> Result<Option<NamedRows>, QueryError> {
        let parameters = deletion.resolved.converted(parameters)?;
        let resolved = Arc::clone(&deletion.resolved);
        let plan = self.optimized_plan(resolved, parameters, session).await?;
        named_rows(&plan)
    }
}

impl PreparedDeletion {
    /// The types of `$1`, `$2`...
    pub fn parameter_types(&self) -> &[DataType] {
        &self.resolved.parameter_types
    }
}

impl std::fmt::Debug for PreparedDeletion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedDeletion").field("query", &self.resolved.sql).finish_non_exhaustive()
    }
}

/// The rows that the plan of the selecting query reads, if the store decides all of its conditions.
fn named_rows(plan: &LogicalPlan) -> Result<Option<NamedRows>, QueryError> {
    match plan {
        LogicalPlan::Projection(node) => named_rows(&node.input),
        LogicalPlan::SubqueryAlias(node) => named_rows(&node.input),
        LogicalPlan::TableScan(scan) => of_scan(scan).map(Some),
        // The optimiser found that the condition is never true.
        LogicalPlan::EmptyRelation(_) => Ok(None),
        LogicalPlan::Filter(filter) => Err(other_condition(&filter.predicate.to_string())),
        other => Err(other_condition(&other.display().to_string())),
    }
}

fn of_scan(scan: &TableScan) -> Result<NamedRows, QueryError> {
    let provider = source_as_provider(&scan.source)?;
    let Some(table) = provider.downcast_ref::<StoreTable>() else {
        return Err(QueryError::Unsupported {
            message: format!("DELETE from {}, which the server makes by itself", scan.table_name),
        });
    };
    let mut rows = NamedRows { table: table.name().to_owned(), matchers: Vec::new(), range: TimeRange::ALL };
    for filter in &scan.filters {
        match pushdown::push(filter, &scan.source.schema()) {
            Some(Pushed::Tag(matcher)) => rows.matchers.push(matcher),
            Some(Pushed::Time { range, exact: true }) => {
                rows.range = pushdown::intersect(rows.range, range);
            }
            Some(Pushed::Time { exact: false, .. }) | None => {
                return Err(other_condition(&filter.to_string()));
            }
        }
    }
    Ok(rows)
}

fn other_condition(condition: &str) -> QueryError {
    let message = format!(
        "DELETE with the condition {condition}; it takes conditions on tags and on ts, joined by AND. Select the series and times first"
    );
    QueryError::Unsupported { message }
}
