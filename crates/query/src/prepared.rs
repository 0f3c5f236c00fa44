//! Statements with parameters.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion::common::ScalarValue;

use crate::resolved_statement::ResolvedStatement;
use crate::{Answer, Engine, QueryError, Session};

/// A checked statement that can be run many times. It holds no snapshot: each run reads the tables as they are then.
#[derive(Clone)]
pub struct Prepared {
    engine: Engine,
    resolved: Arc<ResolvedStatement>,
}

impl Engine {
    /// Checks a statement that has parameters (`$1`, `$2`...) and finds the columns of its answer.
    ///
    /// `parameter_types` may be shorter than the number of parameters. A type that is not given follows from the context of the
    /// parameter.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when the type of a parameter is neither given nor follows.
    pub async fn prepare(
        &self,
        sql: &str,
        parameter_types: &[Option<DataType>],
        session: &Session,
    ) -> Result<Prepared, QueryError> {
        let resolved = self.resolve_prepared(sql, parameter_types, session).await?;
        Ok(Prepared { engine: self.clone(), resolved: Arc::new(resolved) })
    }
}

impl Prepared {
    /// The columns of the answer.
    pub fn schema(&self) -> &SchemaRef {
        &self.resolved.schema
    }

    /// As [`Answer::headings`].
    pub fn headings(&self) -> &[String] {
        &self.resolved.headings
    }

    /// The types of `$1`, `$2`...
    pub fn parameter_types(&self) -> &[DataType] {
        &self.resolved.parameter_types
    }

    /// Runs the statement with a value for each parameter. A value of another type is converted if that loses nothing.
    ///
    /// # Errors
    /// As [`Engine::run`]; when there are too few or too many values; and [`QueryError::ResultChanged`] when a table has changed so
    /// that the answer would have other columns than [`schema`](Self::schema).
    pub async fn run(&self, parameters: Vec<ScalarValue>, session: &Session) -> Result<Answer, QueryError> {
        let parameters = self.resolved.converted(parameters)?;
        self.engine.run_prepared(Arc::clone(&self.resolved), parameters, session).await
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ResolvedStatement { parameter_types, schema, .. } = &*self.resolved;
        f.debug_struct("Prepared")
            .field("parameters", parameter_types)
            .field("schema", schema)
            .finish_non_exhaustive()
    }
}
