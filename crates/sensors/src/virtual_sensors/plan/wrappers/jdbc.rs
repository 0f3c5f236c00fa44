//! The wrapper `jdbc`: the rows of a table or a query of a database.

use super::predicates::Predicates;
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::plan::storage::{CONNECTIONS_DEFAULT, DatabaseOptions, server};
use crate::virtual_sensors::sql::foreign::check_reads;

/// The column with the time of a row, as in the tables of GSN.
const TIME_COLUMN: &str = "timed";
/// Milliseconds between two looks at the database.
const RATE_MS: u64 = 1_000;
const RATE_MS_MIN: u64 = 10;

/// A wrapper that reads the rows of a table or a query of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JdbcWrapper {
    pub options: DatabaseOptions,
    /// What is read.
    pub relation: Relation,
    /// The name of the column with the time of a row.
    pub time_column: String,
    /// The name of the column with a whole number that differs between rows of one time, if the descriptor names one.
    pub key_column: Option<String>,
    /// Rows later than this time in milliseconds since 1970 are read; all rows without it.
    pub start_ms: Option<i64>,
    /// Milliseconds between two looks at the database.
    pub rate_ms: u64,
}

/// Rows of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relation {
    /// Those of a table: its name, after that of its schema if the descriptor says one.
    Table(Vec<String>),
    /// Those of a `SELECT`, which has no semicolon at its end.
    Query(String),
}

impl JdbcWrapper {
    /// What is read, in words without secrets.
    pub fn describe(&self) -> String {
        match &self.relation {
            Relation::Table(name) => format!("{}, table {}", self.options.address, name.join(".")),
            Relation::Query(_) => format!("{}, a query", self.options.address),
        }
    }

    pub(super) fn parse(predicates: &mut Predicates<'_>, notes: &mut Vec<Note>) -> Result<Self, Fault> {
        let options = options(predicates, notes)?;
        let relation = relation(predicates)?;
        predicates.note("check-point-directory", "the server keeps the place with its keys", notes);
        Ok(Self {
            options,
            relation,
            time_column: predicates.optional("time-column").unwrap_or_else(|| TIME_COLUMN.to_owned()),
            key_column: predicates.optional("key-column"),
            start_ms: predicates.time("start-time")?,
            rate_ms: predicates.period("rate", RATE_MS, RATE_MS_MIN)?,
        })
    }
}

fn options(predicates: &mut Predicates<'_>, notes: &mut Vec<Note>) -> Result<DatabaseOptions, Fault> {
    predicates.needed("jdbc-url")?;
    let driver = predicates.take("driver").map(|pair| &pair.value);
    let Some(url) = predicates.take("jdbc-url").map(|pair| &pair.value) else {
        return Err(predicates.invalid("jdbc-url", "jdbc-url is absent".to_owned()));
    };
    let Some(address) = server(url, driver, notes)? else {
        let reason =
            "a database inside of Java cannot be read; use jdbc:mysql, jdbc:mariadb or jdbc:postgresql";
        return Err(Fault::unsupported(url.place, reason));
    };
    // A password is useless without a user.
    predicates.check_needs("password", "username")?;
    Ok(DatabaseOptions {
        address,
        user: predicates.optional("username").unwrap_or_default(),
        password: predicates.optional("password").unwrap_or_default(),
        connections_max: CONNECTIONS_DEFAULT,
    })
}

fn relation(predicates: &mut Predicates<'_>) -> Result<Relation, Fault> {
    if let Some(name) = predicates.optional("table-name") {
        predicates.refuse_beside("query", "table-name")?;
        let parts: Vec<String> = name.split('.').map(|part| part.trim().to_owned()).collect();
        if parts.len() > 2 || parts.iter().any(|part| part.is_empty() || part.contains('\0')) {
            let reason = format!("table-name is {name:?}; it is the name of a table, or SCHEMA.TABLE");
            return Err(predicates.invalid("table-name", reason));
        }
        return Ok(Relation::Table(parts));
    }
    let query = predicates.take("query").filter(|pair| !pair.value.value.is_empty());
    let Some(query) = query else {
        let reason = "wrapper jdbc needs the predicate \"table-name\" or \"query\"";
        return Err(Fault::invalid(predicates.place(), reason));
    };
    check_reads(&query.value)?;
    Ok(Relation::Query(query.value.value.trim_end_matches([';', ' ', '\n', '\r', '\t']).to_owned()))
}
