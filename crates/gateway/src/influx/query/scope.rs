//! The database and the retention policy that a statement names.

use hub::caller::Caller;
use hub::registry::RegistryError;
use hub::{Hub, OpenDatabase};
use timeseries::influxql::ast::{From, Measurement, Select, Show, Target};

use crate::error::ApiError;

/// The names that every database has for its only retention policy.
const POLICIES: [&str; 3] = ["", "autogen", "default"];

/// The database with a name, in the words of InfluxDB if there is none.
pub(super) fn open(hub: &Hub, caller: &Caller, name: &str) -> Result<OpenDatabase, ApiError> {
    hub.database(caller, name).map_err(|error| match error {
        RegistryError::Unknown { .. } => ApiError::argument(format!("database not found: {name}")),
        error => error.into(),
    })
}

/// The statement of a request about databases.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    /// Empty: the request names no database.
    pub(super) database: &'a str,
    /// Empty: the request names no retention policy.
    pub(super) policy: &'a str,
}

impl<'a> Scope<'a> {
    /// The database that a SELECT statement reads.
    ///
    /// # Errors
    /// There is none, there are several, or the statement names a retention policy that no database has.
    pub(super) fn of_select(self, select: &'a Select) -> Result<&'a str, String> {
        let mut measurements = Vec::new();
        inputs(select, &mut measurements);
        self.of_measurements(&measurements, self.database)
    }

    /// The database that a SELECT statement writes.
    ///
    /// # Errors
    /// There is none, or the statement names a retention policy that no database has.
    pub(super) fn of_target(self, target: &'a Target) -> Result<&'a str, String> {
        let policy = match (&*target.policy, &*target.database) {
            ("", "") => self.policy,
            (policy, _) => policy,
        };
        if !POLICIES.contains(&policy) {
            return Err(format!("retention policy not found: {policy}"));
        }
        required(if target.database.is_empty() { self.database } else { &target.database })
    }

    /// The database of which a SHOW statement lists something.
    ///
    /// # Errors
    /// As [`of_select`](Self::of_select).
    pub(super) fn of_show(self, show: &'a Show) -> Result<&'a str, String> {
        let database = if show.database.is_empty() { self.database } else { &show.database };
        self.of_measurements(&show.from.iter().collect::<Vec<_>>(), database)
    }

    /// The database of a statement that changes something.
    ///
    /// # Errors
    /// The request names none.
    pub(super) fn of_change(self) -> Result<&'a str, String> {
        required(self.database)
    }

    fn of_measurements(self, measurements: &[&'a Measurement], database: &'a str) -> Result<&'a str, String> {
        let mut found = None;
        for measurement in measurements {
            let policy = match (&*measurement.policy, &*measurement.database) {
                ("", "") => self.policy,
                (policy, _) => policy,
            };
            if !POLICIES.contains(&policy) {
                return Err(format!("retention policy not found: {policy}"));
            }
            let own = if measurement.database.is_empty() { database } else { &measurement.database };
            match found {
                Some(other) if other != own => {
                    return Err(format!(
                        "a statement reads the measurements of one database, but this one names {other} and {own}"
                    ));
                }
                _ => found = Some(own),
            }
        }
        required(found.unwrap_or(database))
    }
}

fn required(database: &str) -> Result<&str, String> {
    match database.is_empty() {
        true => Err("database name required".to_owned()),
        false => Ok(database),
    }
}

/// The measurements of a statement and of its subqueries.
fn inputs<'a>(select: &'a Select, out: &mut Vec<&'a Measurement>) {
    for from in &select.from {
        match from {
            From::Measurement(measurement) => out.push(measurement),
            From::Query(inner) => inputs(inner, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use timeseries::influxql::ast::Statement;
    use timeseries::influxql::parse;

    use super::*;

    fn database(query: &str, scope: Scope<'_>) -> Result<String, String> {
        let statement = parse(query, &HashMap::new()).unwrap().remove(0);
        match &statement {
            Statement::Select(select) => scope.of_select(select),
            Statement::Show(show) => scope.of_show(show),
            _ => scope.of_change(),
        }
        .map(str::to_owned)
    }

    const IN_D: Scope<'_> = Scope { database: "d", policy: "" };

    #[test]
    fn a_statement_names_its_database_or_has_that_of_the_request() {
        for (query, expected) in [
            ("SELECT v FROM m, n", "d"),
            ("SELECT v FROM e.autogen.m", "e"),
            ("SELECT v FROM e..m", "e"),
            ("SELECT v FROM \"default\".m", "d"),
            ("SELECT v FROM (SELECT v FROM e..m)", "e"),
            ("SHOW TAG KEYS ON e", "e"),
            ("SHOW TAG KEYS FROM m", "d"),
            ("DROP MEASUREMENT m", "d"),
        ] {
            assert_eq!(database(query, IN_D), Ok(expected.to_owned()), "{query}");
        }
    }

    #[test]
    fn what_no_database_has_is_refused() {
        let nowhere = Scope { database: "", policy: "" };
        for (query, scope, expected) in [
            ("SELECT v FROM m", nowhere, "database name required"),
            ("SHOW MEASUREMENTS", nowhere, "database name required"),
            ("DELETE FROM m", nowhere, "database name required"),
            ("SELECT v FROM week.m", IN_D, "retention policy not found: week"),
            ("SELECT v FROM m", Scope { policy: "week", ..IN_D }, "retention policy not found: week"),
            (
                "SELECT v FROM m, e..m",
                IN_D,
                "a statement reads the measurements of one database, but this one names d and e",
            ),
        ] {
            assert_eq!(database(query, scope), Err(expected.to_owned()), "{query}");
        }
    }
}
