//! sysbench's OLTP workloads: the statements of a transaction and their numbers.

use serde::{Deserialize, Serialize};

use super::statement::Sql;

/// The sysbench script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OltpScript {
    /// 10 points, 4 ranges, 2 updates, a delete and an insert of the same id: 18 statements between BEGIN and COMMIT.
    ReadWrite,
    /// The reads of the read-write transaction.
    ReadOnly,
    /// The writes of the read-write transaction.
    WriteOnly,
    PointSelect,
    /// Inserts one row.
    Insert,
    /// `k = k + 1` for one row, which moves it in the index.
    UpdateIndex,
    /// A new `c` for one row.
    UpdateNonIndex,
    /// Deletes one row. Later deletes of the same id find nothing.
    Delete,
    /// One statement with as many rows as fit into 512 KiB, into a separate table for each connection.
    BulkInsert,
    /// The rows of several `k` in one statement, from the connection's own part of the first table.
    SelectRandomPoints,
    /// The number of rows in several ranges of `k`, from the same part.
    SelectRandomRanges,
}

impl OltpScript {
    /// Whether it is one statement on the first table only.
    pub(crate) fn is_random_select(self) -> bool {
        matches!(self, Self::SelectRandomPoints | Self::SelectRandomRanges)
    }
}

/// The largest number of values of one statement: PostgreSQL takes 65,535, and ranges have two each.
const VALUES_MAX: u32 = 30_000;

/// How statements are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Prepared once per connection and table, with values in binary form.
    Prepared,
    /// As text that contains the values.
    Text,
}

/// How long a random table is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TablePer {
    /// For a group of statements: all points of a transaction use one table, as in sysbench 1.0.
    Group,
    /// For the whole transaction, as in sysbench 0.5.
    Transaction,
}

/// The content of one operation: the driver's keys of `[[operation]]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// The script.
    pub kind: OltpScript,
    /// Text or prepared; `insert` and `bulk_insert` are always text, as in the original.
    #[serde(default = "prepared")]
    pub protocol: Protocol,
    /// How long a random table is used.
    #[serde(default = "per_group")]
    pub table_per: TablePer,
    /// The number of point selects.
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
    /// Whether there are range selects at all.
    #[serde(default = "yes")]
    pub range_selects: bool,
    /// The number of ids in a range.
    #[serde(default = "hundred")]
    pub range_size: u32,
    /// The number of values of `select_random_points`.
    #[serde(default = "ten")]
    pub random_points: u32,
    /// The number of ranges of `select_random_ranges`.
    #[serde(default = "ten")]
    pub number_of_ranges: u32,
    /// The distance from the first to the last value of each of them.
    #[serde(default = "five")]
    pub delta: u32,
    /// Runs each statement as its own transaction.
    #[serde(default)]
    pub skip_trx: bool,
    /// The number of operations after which the connection is opened again; 0 for never.
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
fn five() -> u32 {
    5
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

impl Transaction {
    /// A sysbench script with its defaults.
    pub fn of(kind: OltpScript) -> Self {
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
            random_points: 10,
            number_of_ranges: 10,
            delta: 5,
            skip_trx: false,
            reconnect: 0,
        }
    }

    /// Whether BEGIN and COMMIT enclose the statements.
    pub(crate) fn is_wrapped(&self) -> bool {
        !self.skip_trx
            && matches!(self.kind, OltpScript::ReadWrite | OltpScript::ReadOnly | OltpScript::WriteOnly)
    }

    /// Whether the statements are those of sysbench's default read-write transaction.
    pub fn is_the_default(&self) -> bool {
        self.is_wrapped() && self.groups() == Self::of(OltpScript::ReadWrite).groups()
    }

    /// The groups of statements, in order. [`Sql::Delete`] followed by [`Sql::Insert`] is a pair with one id.
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
            OltpScript::ReadWrite => [reads(), writes()].concat(),
            OltpScript::ReadOnly => reads(),
            OltpScript::WriteOnly => writes(),
            OltpScript::PointSelect => vec![(Sql::Point, 1)],
            OltpScript::UpdateIndex => vec![(Sql::IndexUpdate, 1)],
            OltpScript::UpdateNonIndex => vec![(Sql::OtherUpdate, 1)],
            OltpScript::Delete => vec![(Sql::Delete, 1)],
            OltpScript::Insert
            | OltpScript::BulkInsert
            | OltpScript::SelectRandomPoints
            | OltpScript::SelectRandomRanges => Vec::new(),
        };
        groups.retain(|(_, count)| *count > 0);
        groups
    }

    /// The statements to prepare on each table.
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

    /// Checks the values. The error names the wrong one.
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
        let values = [self.random_points, self.number_of_ranges];
        if values.iter().any(|count| !(1..=VALUES_MAX).contains(count)) {
            return Err(format!("`random_points` and `number_of_ranges` can be 1 to {VALUES_MAX}"));
        }
        if counts.iter().any(|count| *count > 100_000) {
            return Err("a transaction has at most 100,000 statements of a kind".to_owned());
        }
        let has_groups = !matches!(self.kind, OltpScript::Insert | OltpScript::BulkInsert)
            && !self.kind.is_random_select();
        if has_groups && self.groups().is_empty() {
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
        let read_write = Transaction::of(OltpScript::ReadWrite);
        let count = |reads: bool| -> u32 {
            read_write.groups().iter().filter(|(sql, _)| sql.is_read() == reads).map(|(_, count)| count).sum()
        };
        // Delete and insert form one group: 14 reads, 2 updates, 1 delete and 1 insert.
        assert_eq!((count(true), count(false)), (14, 3));
        assert!(read_write.is_wrapped() && !Transaction::of(OltpScript::PointSelect).is_wrapped());
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
}
