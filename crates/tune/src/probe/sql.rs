//! Queries to databases, and what their refusals mean.

use clients::sql::{Address as SqlAddress, SqlClient, SqlError};

use super::error::{ProbeError, StatementError};
use crate::statement::Statement;

/// Rows as text.
pub(super) type Rows = Vec<Vec<Option<String>>>;

/// The codes of a missing privilege: of MySQL (access denied, also to one privilege, to a table, to a routine), and of
/// PostgreSQL.
const NO_PRIVILEGE: [&str; 5] = ["1044", "1142", "1227", "1370", "42501"];

/// A connection for queries.
#[derive(Debug)]
pub(super) struct Database {
    client: SqlClient,
    target: String,
}

impl Database {
    /// Connects and logs in.
    pub(super) fn connect(address: &SqlAddress, expected: &'static str) -> Result<Self, ProbeError> {
        let target = address.without_password();
        match SqlClient::connect(address) {
            Ok(client) => Ok(Self { client, target }),
            Err(error) => Err(no_connection(error, target, expected)),
        }
    }

    /// The target, without its password.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// The rows of a query that every user may ask.
    pub(super) fn rows(&mut self, sql: &str, what: &'static str) -> Result<Rows, ProbeError> {
        self.client.rows(sql).map_err(|error| ProbeError::Protocol {
            target: self.target.clone(),
            what,
            reason: error.to_string(),
        })
    }

    /// Carries out an SQL statement.
    pub(super) fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
        let Statement::Sql(sql) = statement else { return Err(StatementError::Other(statement.clone())) };
        match self.client.rows(sql) {
            Ok(_) => Ok(()),
            Err(SqlError::Refused { code, message }) if NO_PRIVILEGE.contains(&code.as_str()) => {
                Err(StatementError::Permission(message))
            }
            Err(error @ SqlError::Refused { .. }) => Err(StatementError::Refused(error.to_string())),
            Err(error) => Err(StatementError::Lost(error.to_string())),
        }
    }

    /// The rows of a query that some users may not ask, or the reason of the refusal.
    pub(super) fn try_rows(
        &mut self,
        sql: &str,
        what: &'static str,
    ) -> Result<Result<Rows, String>, ProbeError> {
        match self.client.rows(sql) {
            Ok(rows) => Ok(Ok(rows)),
            Err(error @ SqlError::Refused { .. }) => Ok(Err(error.to_string())),
            Err(error) => {
                Err(ProbeError::Protocol { target: self.target.clone(), what, reason: error.to_string() })
            }
        }
    }
}

/// The first value of a result.
pub(super) fn first(rows: Rows) -> Option<String> {
    rows.into_iter().flatten().next().flatten()
}

/// Pairs of the first two columns. Rows with NULL are left out.
pub(super) fn pairs(rows: Rows) -> impl Iterator<Item = (String, String)> {
    rows.into_iter().filter_map(|row| {
        let mut columns = row.into_iter();
        Some((columns.next()??, columns.next()??))
    })
}

/// The reason why there is no connection.
fn no_connection(error: SqlError, target: String, expected: &'static str) -> ProbeError {
    let reason = error.to_string();
    match error {
        SqlError::Unreachable(reason) => ProbeError::Connect { target, reason },
        SqlError::OtherProtocol(reason) => ProbeError::OtherProduct { target, expected, reason },
        SqlError::Lost(reason) => ProbeError::Protocol { target, what: "its greeting", reason },
        SqlError::Refused { code, .. } => match code.as_str() {
            // Wrong password, no such user, host not allowed, no such database.
            "1045" | "1698" | "1130" | "1044" | "1049" | "28P01" | "28000" | "3D000" | "42501" => {
                ProbeError::Login { target, reason }
            }
            _ => ProbeError::Connect { target, reason },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_whose_fault_it_is() {
        let refused = |code: &str| SqlError::Refused { code: code.to_owned(), message: "m".to_owned() };
        let error = |error| no_connection(error, "t".to_owned(), "MySQL");
        assert!(matches!(error(refused("1045")), ProbeError::Login { .. }));
        assert!(matches!(error(refused("1040")), ProbeError::Connect { .. }));
        assert!(matches!(error(SqlError::OtherProtocol("x".to_owned())), ProbeError::OtherProduct { .. }));
        assert!(matches!(error(SqlError::Lost("closed".to_owned())), ProbeError::Protocol { .. }));
        assert!(matches!(error(SqlError::Unreachable("x".to_owned())), ProbeError::Connect { .. }));
    }
}
