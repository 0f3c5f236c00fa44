//! A prepared statement behind the interface: text, plan and types.

use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use parking_lot::Mutex;

use crate::plan_cache::CachedPlan;
use crate::{QueryError, postgres};

/// A statement whose names and types are known.
pub(crate) struct ResolvedStatement {
    /// The text that the client has sent, for plans that are valid for one query.
    pub(crate) sql: Arc<str>,
    /// The types that the client has declared.
    pub(crate) given_types: Vec<Option<DataType>>,
    /// The plan for the tables as they were when it was made.
    pub(crate) plan: Mutex<CachedPlan>,
    /// See [`Answer::headings`](crate::Answer::headings).
    pub(crate) headings: Arc<[String]>,
    pub(crate) parameter_types: Vec<DataType>,
    pub(crate) schema: SchemaRef,
}

impl ResolvedStatement {
    /// The values of the parameters in the types that the statement needs.
    pub(crate) fn converted(&self, parameters: Vec<ScalarValue>) -> Result<Vec<ScalarValue>, QueryError> {
        let types = &self.parameter_types;
        if parameters.len() != types.len() {
            let (given, wanted) = (parameters.len(), types.len());
            let message = format!("{given} parameters were given, the statement has {wanted}");
            return Err(QueryError::Invalid { message });
        }
        let converted = parameters.iter().zip(types).map(|(value, data_type)| converted(value, data_type));
        Ok(converted.collect::<Result<_, _>>()?)
    }
}

/// Converts a value to another type. A text can be converted to an array.
fn converted(value: &ScalarValue, data_type: &DataType) -> datafusion::common::Result<ScalarValue> {
    match (value.try_as_str(), data_type) {
        (Some(Some(text)), DataType::List(element)) => postgres::read_array(text, element),
        _ => value.cast_to(data_type),
    }
}
