//! The texts of statements that read. They have numbers and times as literals. The only texts from outside are quoted names and the
//! query of a descriptor.

use model::Timestamp;
use virtual_sensors::{DatabaseKind, Relation};

use super::columns::{CellKind, Columns, FoundColumn, TimeUnit};
use super::rows::Position;
use crate::databases::sql::quoted;

/// Microseconds of 0001-01-01 since 1970: MySQL has incomplete dates before, PostgreSQL an infinite one.
const FIRST_MICROS: i64 = -62_135_596_800_000_000;

/// What rows are read from, under the alias `e`.
pub(super) fn relation(kind: DatabaseKind, relation: &Relation) -> String {
    match relation {
        Relation::Table(name) => {
            let parts: Vec<_> = name.iter().map(|part| quoted(kind, part)).collect();
            format!("{} AS e", parts.join("."))
        }
        Relation::Query(query) => format!("({query}) AS e"),
    }
}

/// A statement that has all columns and no rows.
pub(super) fn all_columns(relation: &str) -> String {
    format!("SELECT * FROM {relation} LIMIT 0")
}

/// The statements that begin a transaction without writes, with times in UTC.
pub(super) fn begin(kind: DatabaseKind) -> &'static [&'static str] {
    match kind {
        DatabaseKind::MySql => &["SET time_zone = '+00:00'", "START TRANSACTION READ ONLY"],
        DatabaseKind::PostgreSql => {
            // The server gives up before the client does (STATEMENT_TIMEOUT), so that slow statements do not pile up.
            &["BEGIN READ ONLY", "SET LOCAL TIME ZONE 'UTC'", "SET LOCAL statement_timeout = '55s'"]
        }
    }
}

/// The rows after a position up to a time, in their order: the time, the key if there is one, and the values. `cut` is the number of
/// characters of a text of which one more is read, and the number of rows.
pub(super) fn page(
    kind: DatabaseKind,
    relation: &str,
    columns: &Columns,
    cut: (usize, usize),
    (after, until): (Option<Position>, i64),
) -> String {
    let (text_max, rows) = cut;
    let time = column(kind, &columns.time);
    let key = columns.key.as_ref().map(|key| column(kind, key));
    let mut list = vec![time_number(kind, columns)];
    list.extend(columns.key.as_ref().map(|key| value(kind, key, text_max)));
    list.extend(columns.values.iter().map(|found| value(kind, found, text_max)));
    let literal = |number: i64| time_literal(kind, columns, number);
    let mut conditions = vec![format!("{time} <= {}", literal(until))];
    match (after, &key) {
        (Some(after), Some(key)) => {
            let (begin, last) = (literal(after.time), after.key);
            // The first condition alone can use an index.
            conditions.push(format!("{time} >= {begin} AND ({time} > {begin} OR {key} > {last})"));
        }
        (Some(after), None) => conditions.push(format!("{time} > {}", literal(after.time))),
        (None, _) if columns.unit == TimeUnit::Micros => {
            conditions.push(format!("{time} >= {}", literal(FIRST_MICROS)));
        }
        (None, _) => {}
    }
    if kind == DatabaseKind::MySql && columns.unit == TimeUnit::Micros {
        conditions.push(format!("{} IS NOT NULL", list[0]));
    }
    conditions.extend(key.as_ref().map(|key| format!("{key} IS NOT NULL")));
    let order = key.map_or_else(|| time.clone(), |key| format!("{time}, {key}"));
    format!(
        "SELECT {} FROM {relation} WHERE {} ORDER BY {order} LIMIT {rows}",
        list.join(", "),
        conditions.join(" AND ")
    )
}

fn column(kind: DatabaseKind, found: &FoundColumn) -> String {
    format!("e.{}", quoted(kind, &found.name))
}

/// The time of a row as a number of its unit.
fn time_number(kind: DatabaseKind, columns: &Columns) -> String {
    let time = column(kind, &columns.time);
    match (kind, columns.unit) {
        (DatabaseKind::MySql, TimeUnit::Millis) => time,
        (DatabaseKind::MySql, TimeUnit::Micros) => {
            format!("TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {time})")
        }
        (DatabaseKind::PostgreSql, TimeUnit::Millis) => format!("{time}::int8"),
        (DatabaseKind::PostgreSql, TimeUnit::Micros) => {
            format!("(extract(epoch from {time}) * 1000000)::int8")
        }
    }
}

/// A number of the unit of a column as a value of its type.
fn time_literal(kind: DatabaseKind, columns: &Columns, number: i64) -> String {
    if columns.unit == TimeUnit::Millis {
        return number.to_string();
    }
    let ts = Timestamp::from_micros(number.max(FIRST_MICROS));
    let micros = ts.micros().rem_euclid(86_400_000_000);
    let (second, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let text = format!("{} {hour:02}:{minute:02}:{second:02}.{fraction:06}", ts.date());
    match (kind, columns.time.kind) {
        (DatabaseKind::MySql, _) => format!("TIMESTAMP'{text}'"),
        (DatabaseKind::PostgreSql, CellKind::Time { has_zone: true }) => format!("timestamptz '{text}+00'"),
        (DatabaseKind::PostgreSql, _) => format!("timestamp '{text}'"),
    }
}

fn value(kind: DatabaseKind, found: &FoundColumn, text_max: usize) -> String {
    let column = column(kind, found);
    let characters = text_max.saturating_add(1);
    match (kind, found.kind) {
        (DatabaseKind::MySql, CellKind::Text | CellKind::Json | CellKind::Time { .. } | CellKind::Bytes) => {
            format!("LEFT(CAST({column} AS CHAR), {characters})")
        }
        (DatabaseKind::MySql, _) | (DatabaseKind::PostgreSql, CellKind::Flag) => column,
        (DatabaseKind::PostgreSql, CellKind::Integer) => format!("{column}::int8"),
        (DatabaseKind::PostgreSql, CellKind::Real) => format!("{column}::float8"),
        (DatabaseKind::PostgreSql, _) => format!("left({column}::text, {characters})"),
    }
}

#[cfg(test)]
mod tests {
    use DatabaseKind::{MySql, PostgreSql};

    use super::*;

    fn found(name: &str, kind: CellKind) -> FoundColumn {
        FoundColumn { name: name.to_owned(), kind, bytes_max: None }
    }

    fn columns(time: CellKind, key: Option<FoundColumn>) -> Columns {
        let unit = if time == CellKind::Integer { TimeUnit::Millis } else { TimeUnit::Micros };
        let values = vec![found("celsius", CellKind::Real), found("name", CellKind::Text)];
        let names = values.iter().map(|value| value.name.clone()).collect();
        Columns { time: found("timed", time), unit, key, values, names }
    }

    #[test]
    fn a_table_of_gsn_is_read_by_time_and_key() {
        let columns = columns(CellKind::Integer, Some(found("pk", CellKind::Integer)));
        let road = relation(MySql, &Relation::Table(vec!["gsn".to_owned(), "ro`ad".to_owned()]));
        let after = Position { time: 7, key: 3 };
        assert_eq!(
            page(MySql, &road, &columns, (100, 50), (Some(after), 9)),
            "SELECT e.`timed`, e.`pk`, e.`celsius`, LEFT(CAST(e.`name` AS CHAR), 101) FROM `gsn`.`ro``ad` AS e WHERE e.`timed` <= 9 AND \
             e.`timed` >= 7 AND (e.`timed` > 7 OR e.`pk` > 3) AND e.`pk` IS NOT NULL ORDER BY e.`timed`, e.`pk` LIMIT 50"
        );
    }

    #[test]
    fn a_query_with_times_is_read_from_its_beginning() {
        let columns = columns(CellKind::Time { has_zone: true }, None);
        let query = relation(PostgreSql, &Relation::Query("select * from road".to_owned()));
        assert_eq!(
            page(PostgreSql, &query, &columns, (100, 50), (None, 1_500_000)),
            "SELECT (extract(epoch from e.\"timed\") * 1000000)::int8, e.\"celsius\"::float8, left(e.\"name\"::text, 101) FROM (select * \
             from road) AS e WHERE e.\"timed\" <= timestamptz '1970-01-01 00:00:01.500000+00' AND e.\"timed\" >= timestamptz '0001-01-01 \
             00:00:00.000000+00' ORDER BY e.\"timed\" LIMIT 50"
        );
    }

    #[test]
    fn a_time_of_mysql_is_a_number_of_microseconds() {
        let columns = columns(CellKind::Time { has_zone: false }, None);
        let after = Position { time: 1_000_001, key: i64::MAX };
        let text = page(MySql, "`road` AS e", &columns, (100, 50), (Some(after), 2_000_000));
        assert!(
            text.contains(
                "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', e.`timed`) IS NOT NULL"
            ),
            "{text}"
        );
        assert!(text.contains("e.`timed` > TIMESTAMP'1970-01-01 00:00:01.000001'"), "{text}");
    }
}
