//! The probe of PostgreSQL.

use std::collections::{BTreeMap, BTreeSet};

use clients::sql::Address as SqlAddress;

use super::contract::{Identity, Probe, Sample, Start};
use super::convert::number;
use super::error::{ProbeError, StatementError};
use super::sql::{Database, Rows, first};
use crate::limits::TABLES_MAX;
use crate::observation::{Group, Hidden};
use crate::rules::Product;
use crate::statement::Statement;
use crate::unit::Unit;
use crate::value::{Value, ValueKind};

const EXPECTED: &str = "PostgreSQL";
const SETTINGS: &str = "SELECT name, setting, unit, sourcefile FROM pg_settings";
/// The end of the path of the file that ALTER SYSTEM writes.
const OF_ALTER_SYSTEM: &str = "postgresql.auto.conf";
const STARTED: &str = "SELECT pg_postmaster_start_time()";
const SCALE_FACTOR: &str = "table.autovacuum_vacuum_scale_factor";
/// Statistics outlive a restart, so they count since their reset, which is at first the creation of the cluster.
const STATISTICS_AGE: &str = "SELECT extract(epoch FROM now() - stats_reset) FROM pg_stat_bgwriter";
/// Version 17 has moved these counters.
const CHECKPOINTS: &str = "SELECT checkpoints_timed, checkpoints_req FROM pg_stat_bgwriter";
const CHECKPOINTS_17: &str = "SELECT num_timed, num_requested FROM pg_stat_checkpointer";
const DATABASES: &str = "SELECT sum(temp_files), sum(temp_bytes), sum(xact_commit) FROM pg_stat_database";
const WAL: &str = "SELECT wal_bytes, wal_buffers_full FROM pg_stat_wal";
const CONNECTIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
const MAY_SEE_ALL: &str = "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')";
const IDLE: &str = "SELECT coalesce(max(extract(epoch FROM now() - state_change)), 0) FROM pg_stat_activity \
     WHERE state LIKE 'idle in transaction%'";
const STATISTICS_GRANT: &str = "the user sees only its own sessions: GRANT pg_monitor TO the user";
/// Names that forks put into their version.
const FORKS: [(&str, &str); 5] = [
    ("CockroachDB", "cockroachdb"),
    ("Redshift", "redshift"),
    ("Greenplum", "greenplum"),
    ("-YB-", "yugabytedb"),
    ("EnterpriseDB", "edb"),
];

#[derive(Debug)]
pub(super) struct PostgresqlProbe {
    database: Database,
    identity: Identity,
    product: &'static Product,
    major: u32,
}

impl PostgresqlProbe {
    /// Connects and asks for the version.
    pub(super) fn connect(address: &SqlAddress) -> Result<Self, ProbeError> {
        let mut database = Database::connect(address, EXPECTED)?;
        let product = Product::named("postgresql").expect("BUG: there are no rules of PostgreSQL");
        let full = first(database.rows("SELECT version()", "the version")?).unwrap_or_default();
        let number = database.try_rows("SHOW server_version", "the version")?.ok().and_then(first);
        let (true, Some(version)) = (full.starts_with(EXPECTED) || fork(&full).is_some(), number) else {
            let reason = format!("it calls itself `{full}`");
            return Err(ProbeError::OtherProduct {
                target: database.target().to_owned(),
                expected: EXPECTED,
                reason,
            });
        };
        let identity = Identity {
            product: "postgresql",
            title: format!("The database {}", database.target()),
            variant: fork(&full).unwrap_or("postgresql").to_owned(),
            version: Some(version.clone()),
            role: None,
        };
        let major = version.split(|c: char| !c.is_ascii_digit()).next().and_then(|text| text.parse().ok());
        Ok(Self { database, identity, product, major: major.unwrap_or_default() })
    }

    fn settings(&mut self, sample: &mut Sample) -> Result<BTreeMap<String, String>, ProbeError> {
        let mut texts = BTreeMap::new();
        let mut unset = BTreeSet::new();
        let mut shows_files = false;
        for row in self.database.rows(SETTINGS, "the settings")? {
            let mut columns = row.into_iter();
            let (Some(Some(name)), Some(Some(text))) = (columns.next(), columns.next()) else { continue };
            let (unit, file) = (columns.next().flatten(), columns.next().flatten());
            shows_files |= file.is_some();
            if !file.is_some_and(|file| file.ends_with(OF_ALTER_SYSTEM)) {
                unset.insert((None, name.clone()));
            }
            texts.insert(name.clone(), text.clone());
            let Some(parameter) = self.product.parameters.get(&name) else { continue };
            match converted(&text, unit.as_deref(), parameter.unit) {
                Some(value) => {
                    sample.settings.insert(name, value);
                }
                None => {
                    let reason = format!("`{text}` in the unit {unit:?} is not {}", parameter.unit);
                    sample.hidden.push(Hidden::new(name, reason));
                }
            }
        }
        // Without the grant every file is NULL.
        if shows_files {
            sample.unset.extend(unset);
        }
        let known = self.product.parameters_in(&self.identity.variant, self.identity.version.as_deref());
        for (name, _) in known.filter(|(_, parameter)| parameter.group.is_none()) {
            if !texts.contains_key(name) {
                let reason =
                    "pg_settings does not show it: GRANT pg_read_all_settings, or pg_monitor, TO the user";
                sample.hidden.push(Hidden::new(name, reason));
            }
        }
        Ok(texts)
    }

    fn counters(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        let age = first(self.database.rows(STATISTICS_AGE, "the age of the statistics")?);
        sample.uptime_s = age.and_then(|text| number(&text));
        let checkpoints = if self.major >= 17 { CHECKPOINTS_17 } else { CHECKPOINTS };
        let queries = [
            (checkpoints, ["checkpoints_timed", "checkpoints_req", ""]),
            (DATABASES, ["temp_files", "temp_bytes", "xact_commit"]),
            (WAL, ["wal_bytes", "wal_buffers_full", ""]),
        ];
        for (sql, names) in queries {
            match self.database.try_rows(sql, "the counters")? {
                Ok(rows) => {
                    let values = rows.into_iter().flatten().map(|text| number(&text?));
                    let pairs = names.into_iter().zip(values);
                    let known = pairs.filter_map(|(name, value)| Some((name.to_owned(), value?)));
                    sample.counters.extend(known);
                }
                Err(refusal) => {
                    let names = names.into_iter().filter(|name| !name.is_empty());
                    sample.hidden.extend(names.map(|name| Hidden::new(name, &refusal)));
                }
            }
        }
        Ok(())
    }

    fn facts(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        let mut add = |name: &str, rows: Rows| {
            let value = first(rows).and_then(|text| number(&text));
            sample.facts.extend(value.map(|value| (name.to_owned(), Value::Number(value))));
        };
        add("connections_used", self.database.rows(CONNECTIONS, "the sessions")?);
        let sees_all = first(self.database.rows(MAY_SEE_ALL, "the roles")?);
        if sees_all.as_deref() == Some("t") {
            add("idle_in_transaction_s", self.database.rows(IDLE, "the sessions")?);
        } else {
            sample.hidden.push(Hidden::new("idle_in_transaction_s", STATISTICS_GRANT));
        }
        Ok(())
    }

    /// The tables with most dead rows in the database of the URL.
    fn tables(&mut self, sample: &mut Sample, default: Option<&String>) -> Result<(), ProbeError> {
        let sql = format!(
            "SELECT quote_ident(s.schemaname) || '.' || quote_ident(s.relname), s.n_live_tup, s.n_dead_tup, \
             (SELECT option_value FROM pg_options_to_table(c.reloptions) WHERE option_name = 'autovacuum_vacuum_scale_factor') \
             FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid \
             ORDER BY s.n_dead_tup DESC, s.relid LIMIT {TABLES_MAX}"
        );
        let rows = self.database.rows(&sql, "the tables")?;
        let mut tables = Vec::new();
        for row in rows {
            let is_unset = row.get(3).is_some_and(Option::is_none);
            let Some(table) = table(row, default) else { continue };
            if is_unset {
                sample.unset.insert((Some(table.name.clone()), SCALE_FACTOR.to_owned()));
            }
            tables.push(table);
        }
        sample.groups.insert("table".to_owned(), tables);
        Ok(())
    }
}

impl Probe for PostgresqlProbe {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let mut sample = Sample::default();
        self.counters(&mut sample)?;
        let texts = self.settings(&mut sample)?;
        self.facts(&mut sample)?;
        self.tables(&mut sample, texts.get("autovacuum_vacuum_scale_factor"))?;
        Ok(sample)
    }

    fn sample_settings(&mut self) -> Result<Sample, ProbeError> {
        let mut sample = Sample::default();
        let texts = self.settings(&mut sample)?;
        self.tables(&mut sample, texts.get("autovacuum_vacuum_scale_factor"))?;
        Ok(sample)
    }

    fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
        self.database.carry_out(statement)
    }

    fn start(&mut self) -> Result<Option<Start>, ProbeError> {
        Ok(first(self.database.rows(STARTED, "the start")?).map(Start::Id))
    }
}

fn table(row: Vec<Option<String>>, default: Option<&String>) -> Option<Group> {
    let mut columns = row.into_iter();
    let name = columns.next()??;
    let (live, dead) = (columns.next()??, columns.next()??);
    let factor = columns.next()?.or_else(|| default.cloned());
    let values = [
        ("table.n_live_tup", number(&live)),
        ("table.n_dead_tup", number(&dead)),
        (SCALE_FACTOR, factor.and_then(|text| number(&text))),
    ];
    let settings =
        values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::Number(value?))));
    Some(Group { name, settings: settings.collect() })
}

fn fork(version: &str) -> Option<&'static str> {
    FORKS.into_iter().find(|(name, _)| version.contains(name)).map(|(_, variant)| variant)
}

/// A setting in the unit of its parameter. `unit` is that of `pg_settings`, such as `8kB` or `ms`.
fn converted(text: &str, unit: Option<&str>, to: Unit) -> Option<Value> {
    if to.kind() != ValueKind::Number {
        return super::convert::setting(text, to);
    }
    let value = number(text)?;
    // Negative values have meanings of their own, and no unit.
    let (Some(unit), true) = (unit, value > 0.0) else { return Some(Value::Number(value)) };
    let digits = unit.find(|c: char| !c.is_ascii_digit())?;
    let blocks = if digits == 0 { 1.0 } else { unit[..digits].parse().ok()? };
    let factor = match (&unit[digits..], to) {
        ("B", Unit::Bytes) | ("ms", Unit::Milliseconds) | ("s", Unit::Seconds) => 1.0,
        ("kB", Unit::Bytes) => 1_024.0,
        ("MB", Unit::Bytes) => 1_048_576.0,
        ("GB", Unit::Bytes) => 1_073_741_824.0,
        ("s", Unit::Milliseconds) => 1_000.0,
        ("min", Unit::Seconds) => 60.0,
        ("min", Unit::Milliseconds) => 60_000.0,
        ("ms", Unit::Seconds) => 0.001,
        _ => return None,
    };
    Some(Value::Number(value * blocks * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_converted_from_their_unit() {
        for (text, unit, to, expected) in [
            ("16384", Some("8kB"), Unit::Bytes, Some(134_217_728.0)),
            ("1024", Some("MB"), Unit::Bytes, Some(1_073_741_824.0)),
            ("4096", Some("kB"), Unit::Bytes, Some(4_194_304.0)),
            ("300", Some("s"), Unit::Seconds, Some(300.0)),
            ("60000", Some("ms"), Unit::Milliseconds, Some(60_000.0)),
            ("-1", Some("8kB"), Unit::Bytes, Some(-1.0)),
            ("0.9", None, Unit::Ratio, Some(0.9)),
            ("5", Some("parsec"), Unit::Seconds, None),
        ] {
            assert_eq!(converted(text, unit, to), expected.map(Value::Number), "{text} {unit:?}");
        }
        assert_eq!(converted("on", None, Unit::Text), Some("on".into()));
    }

    #[test]
    fn a_table_has_its_own_factor_or_that_of_the_server() {
        let row = |factor: Option<&str>| {
            [Some("public.t"), Some("9"), Some("3"), factor].map(|text| text.map(str::to_owned)).to_vec()
        };
        let factor = |own, default: Option<&String>| {
            table(row(own), default).unwrap().settings["table.autovacuum_vacuum_scale_factor"].clone()
        };
        assert_eq!(factor(Some("0.01"), Some(&"0.2".to_owned())), 0.01.into());
        assert_eq!(factor(None, Some(&"0.2".to_owned())), 0.2.into());
    }

    #[test]
    fn forks_are_not_postgresql() {
        assert_eq!(fork("PostgreSQL 15.18 (Debian 15.18-0+deb12u1)"), None);
        assert_eq!(fork("CockroachDB CCL v23.1"), Some("cockroachdb"));
        assert_eq!(fork("PostgreSQL 11.2-YB-2.20"), Some("yugabytedb"));
    }
}
