//! The probe of MySQL, MariaDB, Percona Server and AliSQL.

use std::collections::BTreeMap;

use clients::sql::Address as SqlAddress;

use super::contract::{Identity, Probe, Sample, Start};
use super::convert::{number, setting};
use super::error::{ProbeError, StatementError};
use super::sql::{Database, first, pairs};
use crate::observation::Hidden;
use crate::rules::Product;
use crate::statement::Statement;
use crate::value::Value;

const EXPECTED: &str = "MySQL or MariaDB";
const LOG: &str = "the server writes it into its error log, which the command does not read; only MySQL since 8.0.22 shows \
     the log in performance_schema.error_log (GRANT SELECT ON performance_schema.error_log)";
const DISK: &str =
    "the command does not read the file systems of the server; df shows the free space of tmpdir";
const PROCESS: &str = "the user sees only its own statements: GRANT PROCESS ON *.*";
const NOT_SHOWN: &str =
    "SHOW GLOBAL VARIABLES does not have it; a managed service can hide it, its console then has the value";
/// The own statement is a SELECT too; it has just begun.
const LONGEST: &str = "SELECT COALESCE(MAX(TIME), 0) FROM information_schema.PROCESSLIST \
     WHERE COMMAND IN ('Query', 'Execute') AND LTRIM(INFO) LIKE 'SELECT%'";
const MAY_SEE_ALL: &str = "SELECT COUNT(*) FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS' \
     AND GRANTEE = CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''')";
const TOKUDB: &str = "SELECT COUNT(*) FROM information_schema.ENGINES WHERE ENGINE = 'TokuDB' AND SUPPORT IN ('YES', 'DEFAULT')";
const TOKUDB_TABLES: &str = "SELECT COUNT(*) FROM information_schema.TABLES WHERE ENGINE = 'TokuDB'";
const UPTIME: &str = "SHOW GLOBAL STATUS LIKE 'Uptime'";
/// Facts that are lines of the error log, with a part of the line.
const LOG_LINES: [(&str, &str); 2] = [
    ("tmp_table_full_errors", "The table%#sql%is full"),
    ("timeout_errors", "Got timeout writing communication packets"),
];

#[derive(Debug)]
pub(super) struct MysqlProbe {
    database: Database,
    identity: Identity,
    product: &'static Product,
}

impl MysqlProbe {
    /// Connects and asks for the version.
    pub(super) fn connect(address: &SqlAddress) -> Result<Self, ProbeError> {
        let mut database = Database::connect(address, EXPECTED)?;
        let product = Product::named("mysql").expect("BUG: there are no rules of MySQL");
        let row = database.rows("SELECT VERSION(), @@version_comment", "the version")?;
        let mut row = row.into_iter().flatten().map(Option::unwrap_or_default);
        let (version, comment) = (row.next().unwrap_or_default(), row.next().unwrap_or_default());
        let is_alisql = !database
            .rows("SHOW GLOBAL VARIABLES LIKE 'rds\\_threads\\_running\\_%'", "the variant")?
            .is_empty();
        let variant = if is_alisql { "alisql" } else { variant(&version, &comment) };
        let identity = Identity {
            product: "mysql",
            title: format!("The database {}", database.target()),
            variant: variant.to_owned(),
            version: Some(version),
            role: None,
        };
        Ok(Self { database, identity, product })
    }

    fn settings(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        let variables: BTreeMap<String, String> =
            pairs(self.database.rows("SHOW GLOBAL VARIABLES", "the settings")?).collect();
        let known = self.product.parameters_in(&self.identity.variant, self.identity.version.as_deref());
        for (name, parameter) in known {
            // Consoles of AliSQL write the names of variables with this beginning.
            let text = variables.get(name.trim_start_matches("loose_"));
            match text.map(|text| (text, setting(text, parameter.unit))) {
                None => sample.hidden.push(Hidden::new(name, NOT_SHOWN)),
                Some((text, None)) => {
                    sample
                        .hidden
                        .push(Hidden::new(name, format!("`{text}` is not {}", parameter.unit.kind())));
                }
                Some((_, Some(value))) => {
                    sample.settings.insert(name.clone(), value);
                }
            }
        }
        Ok(())
    }

    fn status(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        for (name, text) in pairs(self.database.rows("SHOW GLOBAL STATUS", "the counters")?) {
            let Some(value) = number(&text) else { continue };
            if name == "Uptime" {
                sample.uptime_s = Some(value);
            } else if self.product.counters.contains_key(&name) {
                sample.counters.insert(name, value);
            } else if self.product.facts.contains_key(&name) {
                sample.facts.insert(name, Value::Number(value));
            }
        }
        Ok(())
    }

    /// A number that needs a grant.
    fn fact(&mut self, sample: &mut Sample, name: &str, sql: &str, remedy: &str) -> Result<(), ProbeError> {
        match self.database.try_rows(sql, "facts")? {
            Ok(rows) => {
                let value = first(rows).and_then(|text| number(&text));
                sample.facts.extend(value.map(|value| (name.to_owned(), Value::Number(value))));
            }
            Err(refusal) => sample.hidden.push(Hidden::new(name, format!("{refusal}; {remedy}"))),
        }
        Ok(())
    }

    fn facts(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        let sees_all = first(self.database.rows(MAY_SEE_ALL, "the grants")?);
        if sees_all.is_some_and(|count| count != "0") {
            self.fact(sample, "longest_statement_s", LONGEST, PROCESS)?;
        } else {
            sample.hidden.push(Hidden::new("longest_statement_s", PROCESS));
        }
        let has_engine = first(self.database.rows(TOKUDB, "the engines")?);
        let count = if has_engine.as_deref() == Some("0") { "SELECT 0" } else { TOKUDB_TABLES };
        self.fact(sample, "tokudb_tables", count, "GRANT SELECT ON *.*")?;
        for (name, line) in LOG_LINES {
            let sql = format!("SELECT COUNT(*) FROM performance_schema.error_log WHERE DATA LIKE '%{line}%'");
            match self.database.try_rows(&sql, "the error log")? {
                Ok(rows) => {
                    let value = first(rows).and_then(|text| number(&text));
                    sample.facts.extend(value.map(|value| (name.to_owned(), Value::Number(value))));
                }
                Err(_) => sample.hidden.push(Hidden::new(name, LOG)),
            }
        }
        sample.hidden.push(Hidden::new("free_tmp_disk_bytes", DISK));
        Ok(())
    }
}

impl Probe for MysqlProbe {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let mut sample = Sample::default();
        self.status(&mut sample)?;
        self.settings(&mut sample)?;
        self.facts(&mut sample)?;
        Ok(sample)
    }

    fn sample_settings(&mut self) -> Result<Sample, ProbeError> {
        let mut sample = Sample::default();
        self.settings(&mut sample)?;
        Ok(sample)
    }

    fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
        self.database.carry_out(statement)
    }

    fn start(&mut self) -> Result<Option<Start>, ProbeError> {
        let uptime = pairs(self.database.rows(UPTIME, "the uptime")?).next();
        Ok(uptime.and_then(|(_, text)| number(&text)).map(Start::before_s))
    }
}

/// The variant, by the texts with which forks name themselves.
fn variant(version: &str, comment: &str) -> &'static str {
    let has = |name: &str| [version, comment].iter().any(|text| text.to_ascii_lowercase().contains(name));
    ["mariadb", "percona", "alisql"].into_iter().find(|name| has(name)).unwrap_or("mysql")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_name_themselves() {
        for (version, comment, expected) in [
            ("10.11.6-MariaDB-0+deb12u1", "Debian 12", "mariadb"),
            ("8.0.36-28", "Percona Server (GPL), Release 28", "percona"),
            ("8.0.36", "MySQL Community Server - GPL", "mysql"),
            ("5.6.16-log", "AliSQL", "alisql"),
            ("8.0.28", "Source distribution", "mysql"),
        ] {
            assert_eq!(variant(version, comment), expected);
        }
    }
}
