//! sysbench's OLTP workloads: tables, statements and how many of each make a transaction.

use std::io::Write as _;

use serde::{Deserialize, Serialize};

use super::address::Dialect;
use super::client::Type;
use crate::dataset::Distribution;

/// The tables `sbtest1`, `sbtest2`, ... and how they are filled: `[dataset]` of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tables {
    /// How many.
    pub tables: u32,
    /// Rows of each when it is loaded; ids are drawn from 1 to this number.
    pub table_size: u32,
    /// The server numbers the rows; else the client does.
    pub auto_inc: bool,
    /// An index on `id` instead of the primary key.
    pub secondary: bool,
    /// The index `k_N` on `k`, made after the rows are there.
    pub create_secondary: bool,
    /// MySQL's storage engine.
    pub engine: String,
    /// `INTEGER UNSIGNED` for id and k, as sysbench 0.5 has it (MySQL only).
    pub unsigned: bool,
    /// From which ids and `k` are drawn; sysbench calls it `--rand-type`.
    pub distribution: Distribution,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            tables: 1,
            table_size: 10_000,
            auto_inc: true,
            secondary: false,
            create_secondary: true,
            engine: "innodb".to_owned(),
            unsigned: false,
            distribution: Distribution::named("special").expect("BUG: the name is known"),
        }
    }
}

/// Most tables: each connection prepares up to nine statements on every one.
const TABLES_MAX: u32 = 10_000;

impl Tables {
    /// What is wrong with the values.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=TABLES_MAX).contains(&self.tables) {
            return Err(format!("`tables` is {}; 1 to {TABLES_MAX} are possible", self.tables));
        }
        if !(1..=i32::MAX as u32).contains(&self.table_size) {
            return Err(format!("`table_size` is {}; 1 to {} rows are possible", self.table_size, i32::MAX));
        }
        if !self.engine.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!(
                "`engine` is `{}`; it is the name of a storage engine, such as innodb",
                self.engine
            ));
        }
        self.distribution.check().map_err(|what| format!("`distribution`: {what}"))
    }

    /// The statement that makes table `number`.
    pub(crate) fn create(&self, dialect: Dialect, number: u32) -> String {
        let key = if self.secondary { "KEY xid" } else { "PRIMARY KEY" };
        match dialect {
            Dialect::Mysql => {
                let integer = if self.unsigned { "INTEGER UNSIGNED" } else { "INTEGER" };
                let auto = if self.auto_inc { " AUTO_INCREMENT" } else { "" };
                format!(
                    "CREATE TABLE sbtest{number}(id {integer} NOT NULL{auto}, k {integer} DEFAULT '0' NOT NULL, \
                     c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, {key} (id)) ENGINE = {}",
                    self.engine
                )
            }
            Dialect::Postgres => {
                let id = if self.auto_inc { "SERIAL" } else { "INTEGER NOT NULL" };
                // PostgreSQL knows no index within a table's definition.
                let key = if self.secondary { "" } else { ", PRIMARY KEY (id)" };
                format!(
                    "CREATE TABLE sbtest{number}(id {id}, k INTEGER DEFAULT '0' NOT NULL, \
                     c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL{key})"
                )
            }
        }
    }

    /// The statements that index table `number` once it is full.
    pub(crate) fn indexes(&self, dialect: Dialect, number: u32) -> Vec<String> {
        let mut statements = Vec::new();
        if self.secondary && dialect == Dialect::Postgres {
            statements.push(format!("CREATE INDEX xid_{number} ON sbtest{number}(id)"));
        }
        if self.create_secondary {
            statements.push(format!("CREATE INDEX k_{number} ON sbtest{number}(k)"));
        }
        statements
    }
}

/// Which of sysbench's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// 10 points, 4 ranges, 2 updates, a delete and an insert of the same id: 18 statements between BEGIN and COMMIT.
    ReadWrite,
    /// The reads of it.
    ReadOnly,
    /// The writes of it.
    WriteOnly,
    /// One point.
    PointSelect,
    /// One row more.
    Insert,
    /// `k = k + 1` of one row, which moves it in the index.
    UpdateIndex,
    /// A new `c` for one row.
    UpdateNonIndex,
    /// One row less; later deletes of the same id find nothing.
    Delete,
    /// One statement with as many rows as 512 KiB hold, into a table of each connection.
    BulkInsert,
}

/// How statements go to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Prepared once per connection and table, values bound in binary form.
    Prepared,
    /// As text with the values in it.
    Text,
}

/// For how long a random table is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TablePer {
    /// A new one for each group of statements: all points of a transaction go to one table, as in sysbench 1.0.
    Group,
    /// One for the whole transaction, as in sysbench 0.5.
    Transaction,
}

/// What one operation consists of: the driver's part of `[[operation]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// Which script.
    pub kind: Kind,
    /// Text or prepared; `insert` and `bulk_insert` are always text, as in the original.
    #[serde(default = "prepared")]
    pub protocol: Protocol,
    /// For how long a random table is kept.
    #[serde(default = "per_group")]
    pub table_per: TablePer,
    /// Statements of each group.
    #[serde(default = "ten")]
    pub point_selects: u32,
    /// `SELECT c ... BETWEEN`.
    #[serde(default = "one")]
    pub simple_ranges: u32,
    /// `SELECT SUM(k) ... BETWEEN`.
    #[serde(default = "one")]
    pub sum_ranges: u32,
    /// `SELECT c ... ORDER BY c`.
    #[serde(default = "one")]
    pub order_ranges: u32,
    /// `SELECT DISTINCT c ... ORDER BY c`.
    #[serde(default = "one")]
    pub distinct_ranges: u32,
    /// `UPDATE ... SET k = k + 1`.
    #[serde(default = "one")]
    pub index_updates: u32,
    /// `UPDATE ... SET c = ...`.
    #[serde(default = "one")]
    pub non_index_updates: u32,
    /// A delete and an insert of the same id.
    #[serde(default = "one")]
    pub delete_inserts: u32,
    /// Whether there are ranges at all.
    #[serde(default = "yes")]
    pub range_selects: bool,
    /// Ids of a range.
    #[serde(default = "hundred")]
    pub range_size: u32,
    /// Each statement is a transaction of its own.
    #[serde(default)]
    pub skip_trx: bool,
    /// A new connection after so many operations; 0 for never.
    #[serde(default)]
    pub reconnect: u32,
}

fn prepared() -> Protocol {
    Protocol::Prepared
}
fn per_group() -> TablePer {
    TablePer::Group
}
fn one() -> u32 {
    1
}
fn ten() -> u32 {
    10
}
fn hundred() -> u32 {
    100
}
fn yes() -> bool {
    true
}

/// A statement on one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sql {
    Point,
    Range,
    Sum,
    Order,
    Distinct,
    IndexUpdate,
    OtherUpdate,
    Delete,
    Insert,
}

impl Sql {
    pub(crate) const ALL: [Self; 9] = [
        Self::Point,
        Self::Range,
        Self::Sum,
        Self::Order,
        Self::Distinct,
        Self::IndexUpdate,
        Self::OtherUpdate,
        Self::Delete,
        Self::Insert,
    ];

    pub(crate) fn is_range(self) -> bool {
        matches!(self, Self::Range | Self::Sum | Self::Order | Self::Distinct)
    }

    pub(crate) fn is_read(self) -> bool {
        self.is_range() || self == Self::Point
    }

    /// Types of its values.
    pub(crate) fn types(self) -> &'static [Type] {
        match self {
            Self::Point | Self::IndexUpdate | Self::Delete => &[Type::Int],
            Self::Range | Self::Sum | Self::Order | Self::Distinct => &[Type::Int, Type::Int],
            Self::OtherUpdate => &[Type::Text, Type::Int],
            Self::Insert => &[Type::Int, Type::Int, Type::Text, Type::Text],
        }
    }

    /// The statement with places for its values.
    pub(crate) fn prepared(self, dialect: Dialect, table: u32) -> String {
        let place = |number: u32| match dialect {
            Dialect::Mysql => "?".to_owned(),
            Dialect::Postgres => format!("${number}"),
        };
        let (one, two) = (place(1), place(2));
        match self {
            Self::Point => format!("SELECT c FROM sbtest{table} WHERE id={one}"),
            Self::Range => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN {one} AND {two}"),
            Self::Sum => format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN {one} AND {two}"),
            Self::Order => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN {one} AND {two} ORDER BY c"),
            Self::Distinct => {
                format!("SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN {one} AND {two} ORDER BY c")
            }
            Self::IndexUpdate => format!("UPDATE sbtest{table} SET k=k+1 WHERE id={one}"),
            Self::OtherUpdate => format!("UPDATE sbtest{table} SET c={one} WHERE id={two}"),
            Self::Delete => format!("DELETE FROM sbtest{table} WHERE id={one}"),
            Self::Insert => {
                format!(
                    "INSERT INTO sbtest{table} (id, k, c, pad) VALUES ({one}, {two}, {}, {})",
                    place(3),
                    place(4)
                )
            }
        }
    }

    /// The statement as sysbench 0.5 writes it.
    pub(crate) fn text(self, table: u32, values: &Values<'_>, out: &mut Vec<u8>) {
        let Values { id, last, k, .. } = *values;
        let (c, pad) = (String::from_utf8_lossy(values.c), String::from_utf8_lossy(values.pad));
        out.clear();
        let width = last - id;
        let written = match self {
            Self::Point => write!(out, "SELECT c FROM sbtest{table} WHERE id={id}"),
            Self::Range => write!(out, "SELECT c FROM sbtest{table} WHERE id BETWEEN {id} AND {id}+{width}"),
            Self::Sum => {
                write!(out, "SELECT SUM(K) FROM sbtest{table} WHERE id BETWEEN {id} AND {id}+{width}")
            }
            Self::Order => {
                write!(out, "SELECT c FROM sbtest{table} WHERE id BETWEEN {id} AND {id}+{width} ORDER BY c")
            }
            Self::Distinct => {
                write!(
                    out,
                    "SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN {id} AND {id}+{width} ORDER BY c"
                )
            }
            Self::IndexUpdate => write!(out, "UPDATE sbtest{table} SET k=k+1 WHERE id={id}"),
            Self::OtherUpdate => write!(out, "UPDATE sbtest{table} SET c='{c}' WHERE id={id}"),
            Self::Delete => write!(out, "DELETE FROM sbtest{table} WHERE id={id}"),
            Self::Insert => {
                write!(out, "INSERT INTO sbtest{table} (id, k, c, pad) VALUES ({id}, {k}, '{c}', '{pad}')")
            }
        };
        written.expect("BUG: writing to memory cannot fail");
    }
}

/// What a statement is about; it takes what it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) id: i32,
    /// The last id of a range.
    pub(crate) last: i32,
    pub(crate) k: i32,
    pub(crate) c: &'a [u8],
    pub(crate) pad: &'a [u8],
}

impl Transaction {
    /// One of sysbench's scripts with its defaults.
    pub fn of(kind: Kind) -> Self {
        Self {
            kind,
            protocol: prepared(),
            table_per: per_group(),
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            range_selects: true,
            range_size: 100,
            skip_trx: false,
            reconnect: 0,
        }
    }

    /// Whether BEGIN and COMMIT stand around its statements.
    pub(crate) fn is_wrapped(&self) -> bool {
        !self.skip_trx && matches!(self.kind, Kind::ReadWrite | Kind::ReadOnly | Kind::WriteOnly)
    }

    /// Whether it has the statements of sysbench's read-write transaction with its defaults.
    pub fn is_the_default(&self) -> bool {
        self.is_wrapped() && self.groups() == Self::of(Kind::ReadWrite).groups()
    }

    /// The groups of statements in order. [`Sql::Delete`] with [`Sql::Insert`] behind it is a pair of one id.
    pub(crate) fn groups(&self) -> Vec<(Sql, u32)> {
        let reads = || {
            let ranges = |count: u32| if self.range_selects { count } else { 0 };
            vec![
                (Sql::Point, self.point_selects),
                (Sql::Range, ranges(self.simple_ranges)),
                (Sql::Sum, ranges(self.sum_ranges)),
                (Sql::Order, ranges(self.order_ranges)),
                (Sql::Distinct, ranges(self.distinct_ranges)),
            ]
        };
        let writes = || {
            vec![
                (Sql::IndexUpdate, self.index_updates),
                (Sql::OtherUpdate, self.non_index_updates),
                (Sql::Insert, self.delete_inserts),
            ]
        };
        let mut groups = match self.kind {
            Kind::ReadWrite => [reads(), writes()].concat(),
            Kind::ReadOnly => reads(),
            Kind::WriteOnly => writes(),
            Kind::PointSelect => vec![(Sql::Point, 1)],
            Kind::UpdateIndex => vec![(Sql::IndexUpdate, 1)],
            Kind::UpdateNonIndex => vec![(Sql::OtherUpdate, 1)],
            Kind::Delete => vec![(Sql::Delete, 1)],
            Kind::Insert | Kind::BulkInsert => Vec::new(),
        };
        groups.retain(|(_, count)| *count > 0);
        groups
    }

    /// The statements it prepares on each table.
    pub(crate) fn to_prepare(&self) -> Vec<Sql> {
        if self.protocol == Protocol::Text {
            return Vec::new();
        }
        let mut statements: Vec<Sql> = self.groups().into_iter().map(|(sql, _)| sql).collect();
        if statements.contains(&Sql::Insert) {
            statements.push(Sql::Delete);
        }
        statements
    }

    /// What is wrong with the values.
    pub fn check(&self) -> Result<(), String> {
        if self.range_size == 0 {
            return Err("`range_size` is 0; a range has at least one id".to_owned());
        }
        let counts = [
            self.point_selects,
            self.simple_ranges,
            self.sum_ranges,
            self.order_ranges,
            self.distinct_ranges,
            self.index_updates,
            self.non_index_updates,
            self.delete_inserts,
        ];
        if counts.iter().any(|count| *count > 100_000) {
            return Err("a transaction has at most 100,000 statements of a kind".to_owned());
        }
        if self.groups().is_empty() && !matches!(self.kind, Kind::Insert | Kind::BulkInsert) {
            return Err(
                "the transaction has no statement; give at least one of its groups a count".to_owned()
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_transaction_is_that_of_the_original() {
        let read_write = Transaction::of(Kind::ReadWrite);
        let count = |reads: bool| -> u32 {
            read_write.groups().iter().filter(|(sql, _)| sql.is_read() == reads).map(|(_, count)| count).sum()
        };
        // Delete and insert are one group here: 14 reads, 2 updates, 1 delete and 1 insert.
        assert_eq!((count(true), count(false)), (14, 3));
        assert!(read_write.is_wrapped() && !Transaction::of(Kind::PointSelect).is_wrapped());
        assert_eq!(read_write.to_prepare().len(), 9);
    }

    #[test]
    fn groups_can_be_left_out() {
        let read: Transaction =
            toml::from_str("kind = 'read_only'\nrange_selects = false\npoint_selects = 3\nskip_trx = true")
                .unwrap();
        assert_eq!(read.groups(), [(Sql::Point, 3)]);
        assert!(!read.is_wrapped());
        let empty: Transaction =
            toml::from_str("kind = 'read_only'\nrange_selects = false\npoint_selects = 0").unwrap();
        assert!(empty.check().unwrap_err().contains("no statement"));
        assert!(toml::from_str::<Transaction>("kind = 'read_only'\npoint_select = 1").is_err());
    }

    #[test]
    fn text_is_that_of_sysbench_05() {
        let values = Values { id: 7, last: 106, k: 3, c: b"c-c", pad: b"p" };
        let mut out = Vec::new();
        let mut text = |sql: Sql| {
            sql.text(2, &values, &mut out);
            String::from_utf8(out.clone()).unwrap()
        };
        assert_eq!(text(Sql::Sum), "SELECT SUM(K) FROM sbtest2 WHERE id BETWEEN 7 AND 7+99");
        assert_eq!(text(Sql::Insert), "INSERT INTO sbtest2 (id, k, c, pad) VALUES (7, 3, 'c-c', 'p')");
        assert_eq!(text(Sql::OtherUpdate), "UPDATE sbtest2 SET c='c-c' WHERE id=7");
    }

    #[test]
    fn places_are_those_of_the_dialect() {
        for sql in Sql::ALL {
            let (mysql, postgres) = (sql.prepared(Dialect::Mysql, 1), sql.prepared(Dialect::Postgres, 1));
            assert_eq!(mysql.matches('?').count(), sql.types().len());
            assert_eq!(postgres.matches('$').count(), sql.types().len());
        }
    }

    #[test]
    fn tables_are_checked() {
        let tables: Tables = toml::from_str("tables = 0").unwrap();
        assert!(tables.check().unwrap_err().contains("`tables` is 0"));
        let tables = Tables { engine: "x; DROP".to_owned(), ..Tables::default() };
        assert!(tables.check().is_err());
        Tables::default().check().unwrap();
    }
}
