//! Errors in PostgreSQL's form: a SQLSTATE and a message.

use hub::logins::LoginRefused;
use hub::registry::RegistryError;
use hub::sql::SqlError;
use pgwire::error::{ErrorInfo, PgWireError};
use pgwire::messages::PgWireBackendMessage;
use wire::postgres::Malformed;

use super::statement_error::StatementError;
use crate::blocking::PoolError;
use crate::budget::{OverBudget, Scope};

/// An error for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PgError {
    /// SQLSTATE (PostgreSQL's manual, "Error Codes").
    pub(super) code: &'static str,
    /// The fault and the remedy.
    pub(super) message: String,
    /// Whether the connection ends with it.
    pub(super) is_fatal: bool,
    /// The function of PostgreSQL that raises the same error, for drivers that check it.
    pub(super) routine: Option<&'static str>,
}

impl PgError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), is_fatal: false, routine: None }
    }

    pub(super) fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Self { is_fatal: true, ..Self::new(code, message) }
    }

    pub(super) fn cancelled() -> Self {
        Self::new("57014", "canceling statement due to user request")
    }

    pub(super) fn unknown_cursor(name: &str) -> Self {
        Self::new("34000", format!("cursor or portal {name:?} does not exist"))
    }

    pub(super) fn unknown_statement(name: &str) -> Self {
        Self::new("26000", format!("prepared statement {name:?} does not exist"))
    }

    /// A change that cannot run now. The connection continues.
    pub(super) fn pool(error: PoolError) -> Self {
        Self::new("53300", error.to_string())
    }

    /// The error as a message.
    pub(super) fn response(self) -> PgWireBackendMessage {
        let severity = if self.is_fatal { "FATAL" } else { "ERROR" };
        let mut info = ErrorInfo::new(severity.into(), self.code.into(), self.message);
        info.severity_nonlocalized = Some(severity.into());
        info.routine = self.routine.map(str::to_owned);
        PgWireBackendMessage::ErrorResponse(info.into())
    }
}

impl From<SqlError> for PgError {
    fn from(error: SqlError) -> Self {
        // pgjdbc prepares the statement again if the error has this name (`QueryExecutorBase.willHealViaReparse`).
        let routine = matches!(error, SqlError::ResultChanged).then_some("RevalidateCachedQuery");
        Self { routine, ..Self::new(error.sql_state(), error.to_string()) }
    }
}

/// A refused or failed change.
impl From<hub::Error> for PgError {
    fn from(error: hub::Error) -> Self {
        let code = match error.blame() {
            _ if matches!(error, hub::Error::Forbidden(_)) => "42501",
            hub::Blame::Caller => "22023",
            hub::Blame::Busy => "53300",
            hub::Blame::Operator => "58000",
        };
        Self::new(code, error.to_string())
    }
}

impl From<StatementError> for PgError {
    fn from(error: StatementError) -> Self {
        let code = match error {
            StatementError::Syntax(_) => "42601",
            StatementError::Unsupported(_) => "0A000",
        };
        Self::new(code, error.to_string())
    }
}

impl From<OverBudget> for PgError {
    fn from(over: OverBudget) -> Self {
        // program_limit_exceeded, or out_of_memory if other queries use the memory.
        let code = if over.scope == Scope::Share { "54000" } else { "53200" };
        Self::new(code, format!("{over}; deallocate statements or close portals"))
    }
}

impl From<Malformed> for PgError {
    fn from(error: Malformed) -> Self {
        let code = match error {
            Malformed::Version(..) => "0A000",
            _ => "08P01",
        };
        Self::fatal(code, error.to_string())
    }
}

impl From<LoginRefused> for PgError {
    fn from(error: LoginRefused) -> Self {
        Self::fatal("53300", error.to_string())
    }
}

impl From<RegistryError> for PgError {
    fn from(error: RegistryError) -> Self {
        match error.blame() {
            hub::Blame::Busy => Self::fatal("53300", error.to_string()),
            _ => Self::fatal("58000", error.to_string()),
        }
    }
}

/// The queue of password checks is full, or a check failed.
impl From<PoolError> for PgError {
    fn from(error: PoolError) -> Self {
        Self::fatal("53300", error.to_string())
    }
}

/// A value that has no form in PostgreSQL's protocol.
impl From<PgWireError> for PgError {
    fn from(error: PgWireError) -> Self {
        match error {
            PgWireError::UserError(info) => Self::new("0A000", info.message),
            other => Self::new("XX000", other.to_string()),
        }
    }
}
