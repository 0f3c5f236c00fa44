//! The errors of queries: their cause, who can mend them, and how.

use std::time::Duration;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use model::MemoryShortage;
use store::{Blame, StoreError};

/// SQLSTATE data_exception, for values with a fault that has no code of its own.
pub(crate) const DATA_EXCEPTION: &str = "22000";
/// SQLSTATE numeric_value_out_of_range.
pub(crate) const NUMBER_OUT_OF_RANGE: &str = "22003";
/// SQLSTATE datetime_field_overflow.
pub(crate) const TIME_OUT_OF_RANGE: &str = "22008";
/// SQLSTATE invalid_datetime_format.
pub(crate) const INVALID_TIME: &str = "22007";
/// SQLSTATE division_by_zero.
pub(crate) const DIVISION_BY_ZERO: &str = "22012";
/// SQLSTATE invalid_regular_expression.
pub(crate) const INVALID_REGEX: &str = "2201B";
/// SQLSTATE invalid_parameter_value.
pub(crate) const INVALID_PARAMETER: &str = "22023";
/// SQLSTATE invalid_text_representation.
pub(crate) const INVALID_TEXT: &str = "22P02";

/// An error of a query. The text is for people. Code uses [`blame`](Self::blame) and [`sql_state`](Self::sql_state).
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueryError {
    /// The text is not SQL.
    #[error("syntax error: {message}")]
    Syntax {
        /// What was found and what was expected, with line and column.
        message: String,
    },
    /// The statement does more than read.
    #[error("{statement} is refused: SQL here reads, and deletes rows. {remedy}")]
    ReadOnly {
        /// The statement's kind, such as `INSERT`.
        statement: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// The table does not exist, or this user may not see it.
    #[error("table {table:?} does not exist{}", did_you_mean(.nearest))]
    UnknownTable {
        /// The name as it was given.
        table: String,
        /// The most similar name of a table that the user may read.
        nearest: Option<String>,
    },
    /// No table of the query has this column.
    #[error("column {column:?} does not exist{}", did_you_mean(.nearest))]
    UnknownColumn {
        /// The name as it was given.
        column: String,
        /// The most similar name of a column there.
        nearest: Option<String>,
    },
    /// The function does not exist, or does not take such arguments.
    #[error("{message}")]
    UnknownFunction {
        /// The function, and a similar one.
        message: String,
    },
    /// The statement is SQL, but makes no sense for these tables: a wrong type, a missing GROUP BY.
    #[error("{message}")]
    Invalid { message: String },
    /// The prepared statement would return other columns than when it was prepared. The text is PostgreSQL's: drivers recognise it
    /// and prepare the statement again.
    #[error("cached plan must not change result type")]
    ResultChanged,
    /// The statement is SQL that this engine does not support.
    #[error("not supported: {message}")]
    Unsupported { message: String },
    /// A value cannot be computed with: a division by zero, or text that is not a number.
    #[error("{message}")]
    Value {
        /// What went wrong with which value.
        message: String,
        /// PostgreSQL's code for this fault, of class 22.
        sql_state: &'static str,
    },
    /// The statement exceeds a limit.
    #[error("{what} is over the limit of {limit}; {remedy}")]
    OverLimit {
        /// What was counted.
        what: &'static str,
        /// The limit, with its unit.
        limit: String,
        /// What to change.
        remedy: &'static str,
    },
    /// The query took longer than it may.
    #[error("the query was ended after {} s, the limit of its time; read a shorter range or fewer series", .limit.as_secs_f64())]
    Timeout { limit: Duration },
    /// The client has left, or already knows how the query ended.
    #[error("the query was ended because nobody waits for it")]
    Cancelled,
    /// Other queries must end first. The same query will succeed later.
    #[error("busy: {reason}")]
    Busy {
        /// The limit that was met, with its numbers.
        reason: String,
    },
    /// The memory of the process is nearly used up. The same query will succeed later.
    #[error("busy: {0}")]
    Memory(MemoryShortage),
    /// The store could not read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system refuses to start threads.
    #[error("cannot start the threads of queries: {message}")]
    Threads {
        /// The error of the system.
        message: String,
    },
    /// A fault of this program.
    #[error("a bug, please report it with the statement: {message}")]
    Bug {
        /// What was found.
        message: String,
    },
}

/// The planner's reason for refusing a subquery that stands for a value.
const OTHER_ROWS_APART: &str = "a subquery for a value that compares with the row around it by something else than =, or has a LIMIT; \
    write a join";

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|nearest| format!("; did you mean {nearest:?}?")).unwrap_or_default()
}

impl QueryError {
    /// Who can mend the error. The match has no wildcard arm, so that a new variant must decide.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Syntax { .. }
            | Self::ReadOnly { .. }
            | Self::UnknownTable { .. }
            | Self::UnknownColumn { .. }
            | Self::UnknownFunction { .. }
            | Self::Invalid { .. }
            | Self::ResultChanged
            | Self::Unsupported { .. }
            | Self::Value { .. }
            | Self::OverLimit { .. }
            | Self::Timeout { .. }
            | Self::Cancelled => Blame::Caller,
            Self::Busy { .. } | Self::Memory(_) => Blame::Busy,
            Self::Store(error) => error.blame(),
            Self::Threads { .. } | Self::Bug { .. } => Blame::Operator,
        }
    }

    /// The SQLSTATE by which PostgreSQL's clients know the error.
    pub fn sql_state(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "42601",
            Self::ReadOnly { .. } => "25006",
            Self::UnknownTable { .. } => "42P01",
            Self::UnknownColumn { .. } => "42703",
            Self::UnknownFunction { .. } => "42883",
            Self::Invalid { .. } => "42000",
            Self::Unsupported { .. } | Self::ResultChanged => "0A000",
            Self::Value { sql_state, .. } => sql_state,
            Self::OverLimit { .. } => "54000",
            Self::Timeout { .. } | Self::Cancelled => "57014",
            Self::Busy { .. } => "53300",
            Self::Memory(_) => "53200",
            Self::Store(_) | Self::Threads { .. } => "58000",
            Self::Bug { .. } => "XX000",
        }
    }

    /// An error of a value, with PostgreSQL's code for it.
    pub(crate) fn value(sql_state: &'static str, message: impl Into<String>) -> Self {
        Self::Value { message: message.into(), sql_state }
    }

    /// A number exceeds the range of its type.
    pub(crate) fn out_of_range(message: impl Into<String>) -> Self {
        Self::value(NUMBER_OUT_OF_RANGE, message)
    }

    /// SQL that PostgreSQL has and this engine does not support.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported { message: message.into() }
    }

    /// Returns the most similar of `names`, if one is similar.
    pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
        let distance = |name: &str| strsim::damerau_levenshtein(&wanted.to_lowercase(), &name.to_lowercase());
        let (distance, nearest) = names.map(|name| (distance(name), name)).min()?;
        let similar = distance <= (wanted.chars().count() / 3).max(1);
        similar.then(|| nearest.to_owned())
    }
}

/// DataFusion carries our own errors as values. They come out as they went in.
impl From<QueryError> for DataFusionError {
    fn from(error: QueryError) -> Self {
        Self::External(Box::new(error))
    }
}

impl From<DataFusionError> for QueryError {
    fn from(error: DataFusionError) -> Self {
        match error.find_root() {
            DataFusionError::External(inner) => from_external(inner.as_ref()),
            DataFusionError::SQL(error, _) => {
                Self::Syntax { message: without_prefix(&error.to_string(), "sql parser error: ") }
            }
            DataFusionError::SchemaError(error, _) => from_schema(error),
            DataFusionError::ArrowError(error, _) => from_arrow(error),
            DataFusionError::Plan(message) => from_plan(&without_blame(message)),
            DataFusionError::Configuration(message) => Self::Invalid { message: message.clone() },
            DataFusionError::NotImplemented(message) if message.contains("expression ScalarSubquery") => {
                Self::unsupported(OTHER_ROWS_APART)
            }
            DataFusionError::NotImplemented(message) => Self::Unsupported { message: without_blame(message) },
            DataFusionError::Execution(message) => Self::value(DATA_EXCEPTION, without_blame(message)),
            DataFusionError::ResourcesExhausted(message) => Self::OverLimit {
                what: "what the query holds in memory",
                limit: message.clone(),
                remedy: "read a shorter range or fewer series",
            },
            DataFusionError::Internal(message) if message.contains("failed to match any signature") => {
                Self::UnknownFunction { message: without_blame(message) }
            }
            DataFusionError::Internal(message)
                if message.contains("invalid operator or data type mismatch") =>
            {
                Self::Invalid { message: "an operator for text has lists or records on its sides".into() }
            }
            DataFusionError::Internal(message) if message.contains("Uncomparable values") => {
                Self::unsupported("min and max of lists of lists")
            }
            DataFusionError::Internal(message) => Self::unsupported(format!(
                "this form of the statement; write it in another way and report it. The engine says: {}",
                without_blame(message)
            )),
            DataFusionError::ExecutionJoin(error) => Self::Bug { message: error.to_string() },
            other => Self::Bug { message: other.strip_backtrace() },
        }
    }
}

/// Makes an error of DataFusion's planner, which reports an unknown function only in its text.
fn from_plan(message: &str) -> QueryError {
    let unknown = message.strip_prefix("Invalid function '").and_then(|rest| rest.split_once('\''));
    match unknown {
        Some((function, rest)) => QueryError::UnknownFunction {
            message: format!("function {function} does not exist{}", rest.trim_start_matches('.').trim_end()),
        },
        None if message.contains("No function matches the given name and argument types")
            // The errors of our functions need no further text.
            && !message.contains("user-defined coercion failed") =>
        {
            QueryError::UnknownFunction { message: message.to_owned() }
        }
        // The engine has lost an order on the way to the aggregate, and notices it before it runs the plan.
        None if message.contains("does not satisfy order requirements") => {
            QueryError::unsupported("these aggregates in this order; compute their arguments in a subquery")
        }
        None => QueryError::Invalid { message: message.to_owned() },
    }
}

/// An error of the store on its way through DataFusion.
pub(crate) fn external(error: StoreError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn from_external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> QueryError {
    if let Some(error) = error.downcast_ref::<QueryError>() {
        error.clone()
    } else if let Some(error) = error.downcast_ref::<StoreError>() {
        QueryError::Store(error.clone())
    } else {
        QueryError::Bug { message: error.to_string() }
    }
}

fn from_schema(error: &SchemaError) -> QueryError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let names = valid_fields.iter().map(|column| column.name.as_str());
            QueryError::UnknownColumn {
                column: field.name.clone(),
                nearest: QueryError::nearest(&field.name, names),
            }
        }
        other => QueryError::Invalid { message: without_prefix(&other.to_string(), "Schema error: ") },
    }
}

fn from_arrow(error: &ArrowError) -> QueryError {
    match error {
        ArrowError::ExternalError(inner) => from_external(inner.as_ref()),
        ArrowError::DivideByZero => QueryError::value(DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(message) => QueryError::out_of_range(message),
        ArrowError::CastError(message) | ArrowError::ParseError(message) => {
            QueryError::value(INVALID_TEXT, message)
        }
        ArrowError::ComputeError(message) | ArrowError::InvalidArgumentError(message) => {
            QueryError::value(DATA_EXCEPTION, message)
        }
        ArrowError::NotYetImplemented(message) => QueryError::Unsupported { message: message.clone() },
        other => QueryError::Bug { message: other.to_string() },
    }
}

/// Removes DataFusion's hint that the error may be a bug. Planners join the texts of several errors, so the hint may be in the
/// middle.
fn without_blame(message: &str) -> String {
    const GUESS: &str = "\nThis issue was likely caused by a bug in DataFusion's code";
    let mut shown = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, guess)) = rest.split_once(GUESS) {
        shown.push_str(before);
        // Up to the address of DataFusion's issues and the point after it.
        rest =
            guess.split_once("/issues").map_or("", |(_, behind)| behind.strip_prefix('.').unwrap_or(behind));
    }
    shown.push_str(rest);
    shown.replace("Internal error: ", "").replace("Error during planning: ", "")
}

fn without_prefix(message: &str, prefix: &str) -> String {
    message.strip_prefix(prefix).unwrap_or(message).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_errors_pass_through_datafusion_unchanged() {
        let sent = QueryError::OverLimit { what: "rows", limit: "5".into(), remedy: "ask for less" };
        let wrapped = DataFusionError::from(sent.clone()).context("somewhere").context("deep inside");
        assert_eq!(QueryError::from(wrapped).to_string(), sent.to_string());
        let sealed = StoreError::Sealed { cause: "no space".into() };
        let wrapped =
            DataFusionError::Context("x".into(), Box::new(DataFusionError::External(Box::new(sealed))));
        assert_eq!(QueryError::from(wrapped).blame(), Blame::Operator);
    }

    #[test]
    fn a_subquery_that_has_no_join_is_refused_with_a_clear_error() {
        let planner = "Physical plan does not support logical expression ScalarSubquery(<subquery>)";
        let error = QueryError::from(DataFusionError::NotImplemented(planner.into()));
        assert_eq!(error.sql_state(), "0A000");
        assert!(error.to_string().contains("compares with the row around it"), "{error}");
    }

    #[test]
    fn a_users_mistake_is_not_called_a_bug() {
        let message = "Internal error: Function 'f' expects 1 arguments but received 2.\nThis issue was likely caused by a bug in DataFusion's \
            code. Please help us to resolve this by filing a bug report in our issue tracker: https://github.com/apache/datafusion/issues. \
            No function matches the given name and argument types 'f(Int64, Int64)'.";
        let error = QueryError::from(DataFusionError::Plan(message.into()));
        assert_eq!(
            error.to_string(),
            "Function 'f' expects 1 arguments but received 2. No function matches the given name and argument types 'f(Int64, Int64)'."
        );
    }

    #[test]
    fn only_a_similar_name_is_suggested() {
        let names = || ["telemetry", "truck"].into_iter();
        assert_eq!(QueryError::nearest("telemetri", names()).as_deref(), Some("telemetry"));
        assert_eq!(QueryError::nearest("weather", names()), None);
    }
}
