//! The columns of a table or a query, and what its rows are read from.

use serde::{Deserialize, Serialize};
use virtual_sensors::JdbcWrapper;

use crate::databases::limits::{READ_BYTES_MAX, READ_COLUMNS_MAX, READ_ROWS_MAX, READ_ROWS_MIN};

/// The column that orders rows of one time in the tables of GSN.
const GSN_KEY: &str = "pk";
/// Bytes of a character at most.
pub(super) const CHARACTER_BYTES_MAX: u64 = 4;
/// Bytes of a number, a time or a flag with what belongs to it in memory.
const FIXED_BYTES: u64 = 64;

/// A column that a database has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundColumn {
    pub(super) name: String,
    pub(super) kind: CellKind,
    /// Bytes of the longest text that the type allows, if it says so.
    pub(super) bytes_max: Option<u64>,
}

/// The type of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellKind {
    /// Whole numbers.
    Integer,
    /// Numbers of 32 or 64 bits with a fraction.
    Real,
    /// Decimal numbers of any length.
    Decimal,
    /// `true` and `false`.
    Flag,
    /// A time with a date.
    Time {
        /// Whether its type has a time zone.
        has_zone: bool,
    },
    Json,
    /// Text, and what is shown as text.
    Text,
    /// Bytes, which are not read.
    Bytes,
}

/// The meaning of the numbers of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TimeUnit {
    /// Milliseconds since 1970.
    #[serde(rename = "ms")]
    Millis,
    /// Microseconds since 1970.
    #[serde(rename = "us")]
    Micros,
}

impl TimeUnit {
    /// A number as milliseconds, rounded towards the past.
    pub(crate) fn millis(self, number: i64) -> i64 {
        match self {
            Self::Millis => number,
            Self::Micros => number.div_euclid(1_000),
        }
    }

    /// The largest number of a millisecond.
    pub(crate) fn last_of_millis(self, millis: i64) -> i64 {
        match self {
            Self::Millis => millis,
            Self::Micros => millis.saturating_mul(1_000).saturating_add(999),
        }
    }
}

/// What rows are read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) time: FoundColumn,
    pub(super) unit: TimeUnit,
    pub(super) key: Option<FoundColumn>,
    /// All columns but the time and those of bytes.
    pub(super) values: Vec<FoundColumn>,
    /// The names of the values in lower case.
    pub(super) names: Vec<String>,
}

impl Columns {
    /// Chooses the columns that a wrapper names. The error states which of them is absent or has another type.
    pub(super) fn choose(found: Vec<FoundColumn>, wrapper: &JdbcWrapper) -> Result<Self, String> {
        if found.len() > READ_COLUMNS_MAX {
            return Err(format!(
                "there are {} columns, at most {READ_COLUMNS_MAX} are read (READ_COLUMNS_MAX); select fewer with the predicate query",
                found.len()
            ));
        }
        let time = named(&found, &wrapper.time_column).ok_or_else(|| {
            absent(&found, &wrapper.time_column, "time-column", "the column with the time of a row")
        })?;
        let unit = match time.kind {
            CellKind::Integer => TimeUnit::Millis,
            CellKind::Time { .. } => TimeUnit::Micros,
            _ => {
                return Err(format!(
                    "the column {} is not a time; it is a whole number of milliseconds since 1970, or a time with a date",
                    time.name
                ));
            }
        };
        let key = match &wrapper.key_column {
            Some(name) => Some(named(&found, name).ok_or_else(|| {
                absent(&found, name, "key-column", "a column that differs between rows of one time")
            })?),
            None => named(&found, GSN_KEY).filter(|column| column.kind == CellKind::Integer),
        };
        if let Some(key) = key.as_ref().filter(|key| key.kind != CellKind::Integer) {
            return Err(format!("the column {} is not a key; a key is a whole number", key.name));
        }
        let is_value = |column: &FoundColumn| column.name != time.name && column.kind != CellKind::Bytes;
        let values: Vec<_> = found.into_iter().filter(is_value).collect();
        if values.is_empty() {
            return Err("there is no column with values beside the time".to_owned());
        }
        let names = values.iter().map(|column| column.name.to_lowercase()).collect();
        Ok(Self { time, unit, key, values, names })
    }

    pub(super) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// Rows that are read at once: as many as fit into [`READ_BYTES_MAX`] if all texts are as long as they can be.
    pub(super) fn rows_at_once(&self, text_bytes_max: usize) -> usize {
        let cut_bytes = (text_bytes_max as u64).saturating_add(1).saturating_mul(CHARACTER_BYTES_MAX);
        let bytes = |column: &FoundColumn| match column.kind {
            CellKind::Text | CellKind::Json | CellKind::Decimal => {
                FIXED_BYTES.saturating_add(column.bytes_max.unwrap_or(cut_bytes).min(cut_bytes))
            }
            _ => FIXED_BYTES,
        };
        let row_bytes = self.values.iter().map(bytes).fold(0, u64::saturating_add);
        let rows = READ_BYTES_MAX / row_bytes.max(1);
        usize::try_from(rows).unwrap_or(READ_ROWS_MAX).clamp(READ_ROWS_MIN, READ_ROWS_MAX)
    }
}

/// A column by its name: exactly, or else in any case.
fn named(found: &[FoundColumn], name: &str) -> Option<FoundColumn> {
    let exactly = found.iter().find(|column| column.name == name);
    exactly.or_else(|| found.iter().find(|column| column.name.eq_ignore_ascii_case(name))).cloned()
}

fn absent(found: &[FoundColumn], name: &str, predicate: &str, what: &str) -> String {
    let names: Vec<_> = found.iter().map(|column| column.name.as_str()).collect();
    format!(
        "there is no column {name:?}; the predicate {predicate} names {what}, columns are {}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use virtual_sensors::{DatabaseAddress, DatabaseKind, DatabaseOptions, Relation};

    use super::*;

    fn wrapper(time: &str, key: Option<&str>) -> JdbcWrapper {
        let (host, database) = ("h".to_owned(), "gsn".to_owned());
        let address = DatabaseAddress { kind: DatabaseKind::MySql, host, port: 3306, database };
        let (user, password) = (String::new(), String::new());
        JdbcWrapper {
            options: DatabaseOptions { address, user, password, connections_max: 1 },
            relation: Relation::Table(vec!["road".to_owned()]),
            time_column: time.to_owned(),
            key_column: key.map(str::to_owned),
            start_ms: None,
            rate_ms: 1_000,
        }
    }

    fn found(columns: &[(&str, CellKind)]) -> Vec<FoundColumn> {
        let column = |(name, kind): &(&str, CellKind)| FoundColumn {
            name: (*name).to_owned(),
            kind: *kind,
            bytes_max: None,
        };
        columns.iter().map(column).collect()
    }

    #[test]
    fn a_table_of_gsn_has_a_time_and_a_key() {
        let table = found(&[
            ("PK", CellKind::Integer),
            ("timed", CellKind::Integer),
            ("Celsius", CellKind::Real),
            ("picture", CellKind::Bytes),
        ]);
        let columns = Columns::choose(table, &wrapper("timed", None)).unwrap();
        assert_eq!((columns.unit, columns.has_key()), (TimeUnit::Millis, true));
        assert_eq!(columns.names, ["pk", "celsius"]);
        assert_eq!(columns.rows_at_once(65_535), READ_ROWS_MAX);
    }

    #[test]
    fn columns_that_are_absent_or_of_another_type_are_named() {
        let table = found(&[("at", CellKind::Time { has_zone: true }), ("name", CellKind::Text)]);
        let refused = |time, key| Columns::choose(table.clone(), &wrapper(time, key)).unwrap_err();
        assert!(refused("timed", None).contains("no column \"timed\"; the predicate time-column names"));
        assert!(refused("name", None).contains("the column name is not a time"));
        assert!(refused("at", Some("id")).contains("no column \"id\"; the predicate key-column names"));
        assert!(refused("at", Some("name")).contains("a key is a whole number"));
        let columns = Columns::choose(table.clone(), &wrapper("AT", None)).unwrap();
        assert_eq!((columns.unit, columns.has_key()), (TimeUnit::Micros, false));
        assert_eq!(columns.rows_at_once(65_535), 63);
        assert_eq!(columns.rows_at_once(usize::MAX / 8), READ_ROWS_MIN);
    }

    #[test]
    fn times_have_units() {
        assert_eq!((TimeUnit::Millis.millis(-1), TimeUnit::Micros.millis(-1)), (-1, -1));
        assert_eq!((TimeUnit::Millis.last_of_millis(2), TimeUnit::Micros.last_of_millis(2)), (2, 2_999));
    }
}
