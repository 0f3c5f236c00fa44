//! The error of a statement that read tables.

use hub::time_series::TaskError;
use timeseries::influxql;

use crate::error::ApiError;

/// The error in the words of InfluxDB.
pub(super) fn error_of(error: TaskError<influxql::Error>) -> ApiError {
    match error {
        TaskError::Engine(error) => error.into(),
        TaskError::Task(influxql::Error::Statement(message)) => {
            ApiError { label: "query", ..ApiError::argument(message) }
        }
        TaskError::Task(error) => ApiError::internal(error.to_string()),
    }
}
