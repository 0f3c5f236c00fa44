//! Prepared statements, and portals: statements with parameter values and a position in their rows.

use std::sync::Arc;

use hub::sql::{Batches, DataType, Parameter, Prepared, RecordBatch, SchemaRef, SqlAnswer, SqlError};
use hub::sql_deletion::PreparedDeletion;
use pgwire::api::Type;
use wire::postgres::ValueFormat;

use super::error::PgError;
use super::limits::{COLUMN_BYTES, PLAN_BYTES_PER_TEXT_BYTE, STATEMENT_BYTES};
use super::statement::Statement;
use super::values;
use crate::budget::{Charge, OverBudget, Share};

/// What the engine has prepared of a statement.
#[derive(Debug, Clone)]
pub(super) enum Work {
    /// The door answers the statement itself.
    None,
    Query(Prepared),
    Deletion(PreparedDeletion),
}

impl Work {
    /// The prepared query; `None` if the statement has no rows.
    pub(super) fn query(&self) -> Option<&Prepared> {
        match self {
            Self::Query(prepared) => Some(prepared),
            Self::None | Self::Deletion(_) => None,
        }
    }

    fn parameter_types(&self) -> &[DataType] {
        match self {
            Self::None => &[],
            Self::Query(prepared) => prepared.parameter_types(),
            Self::Deletion(deletion) => deletion.parameter_types(),
        }
    }
}

/// A statement after Parse.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) statement: Statement,
    pub(super) work: Work,
    /// Object ids of the parameter types. A type that the client declares takes precedence.
    pub(super) types: Vec<u32>,
    /// Charged bytes, until the last portal of the statement is gone.
    pub(super) held: Charge,
}

impl Parsed {
    pub(super) fn new(
        statement: Statement,
        work: Work,
        given: &[u32],
        mut held: Charge,
    ) -> Result<Self, PgError> {
        let columns = work.query().map_or(0, |prepared| prepared.schema().fields().len());
        held.grow(columns * COLUMN_BYTES)?;
        let inferred = work.parameter_types();
        let types = (0..inferred.len().max(given.len())).map(|index| {
            match (given.get(index).copied().filter(|number| *number != 0), inferred.get(index)) {
                (Some(number), _) => Ok(number),
                (None, Some(_)) if is_list_of_oids(&statement, index + 1) => Ok(Type::OID_ARRAY.oid()),
                (None, Some(data_type)) => values::type_number(data_type),
                (None, None) => values::type_number(&DataType::Null),
            }
        });
        Ok(Self { types: types.collect::<Result<_, _>>()?, statement, work, held })
    }
}

/// Charges the estimated bytes of a planned statement.
pub(super) fn hold_statement(share: &Arc<Share>, text: &str) -> Result<Charge, OverBudget> {
    share.hold(STATEMENT_BYTES + text.len() * PLAN_BYTES_PER_TEXT_BYTE)
}

/// Whether a statement casts a parameter to an array of object ids. asyncpg looks up all other array types with such a statement
/// and knows only this type.
fn is_list_of_oids(statement: &Statement, number: usize) -> bool {
    let cast = format!("${number}::oid[]");
    statement.query().is_some_and(|query| query.contains(&cast))
}

/// A statement with values for its parameters.
#[derive(Debug)]
pub(super) struct Portal {
    pub(super) parsed: Arc<Parsed>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) formats: Vec<ValueFormat>,
    /// Created by DECLARE: FETCH may use it until the end of its transaction.
    pub(super) is_cursor: bool,
    /// Whether it survives the end of the transaction.
    pub(super) hold: bool,
    /// The rows, once the query runs.
    pub(super) rows: Option<Rows>,
    /// Charged bytes of the values.
    pub(super) held: Charge,
}

impl Portal {
    pub(super) fn new(
        parsed: Arc<Parsed>,
        parameters: Vec<Parameter>,
        formats: Vec<ValueFormat>,
        held: Charge,
    ) -> Self {
        Self { parsed, parameters, formats, is_cursor: false, hold: false, rows: None, held }
    }
}

/// The rows of a query, over any number of Execute and FETCH.
#[derive(Debug)]
pub(super) struct Rows {
    schema: SchemaRef,
    headings: Arc<[String]>,
    batches: Batches,
    current: Option<(RecordBatch, usize)>,
    ended: bool,
}

impl Rows {
    pub(super) fn new(answer: SqlAnswer) -> Self {
        let SqlAnswer { schema, headings, batches } = answer;
        Self { schema, headings, batches, current: None, ended: false }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// See [`SqlAnswer::headings`].
    pub(super) fn headings(&self) -> &[String] {
        &self.headings
    }

    /// Waits until the next row is available. Returns whether there is one. The future may be dropped at any time.
    pub(super) async fn advance(&mut self) -> Result<bool, SqlError> {
        while !self.is_at_hand() {
            if self.ended {
                return Ok(false);
            }
            match self.batches.next().await {
                Some(batch) => self.current = Some((batch?, 0)),
                None => self.ended = true,
            }
        }
        Ok(true)
    }

    /// Whether the next row is available.
    pub(super) fn is_at_hand(&self) -> bool {
        self.current.as_ref().is_some_and(|(batch, next)| *next < batch.num_rows())
    }

    /// Takes up to `rows` of the available rows; `None` if there are none.
    pub(super) fn take(&mut self, rows: usize) -> Option<RecordBatch> {
        let (batch, next) = self.current.as_mut()?;
        let taken = batch.slice(*next, rows.min(batch.num_rows() - *next));
        *next += taken.num_rows();
        (taken.num_rows() > 0).then_some(taken)
    }
}
