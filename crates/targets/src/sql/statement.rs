//! sysbench's statements on one table, prepared and as text.

use std::io::Write as _;

use clients::sql::{Dialect, Type};

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

    /// The types of its values.
    pub(crate) fn types(self) -> &'static [Type] {
        match self {
            Self::Point | Self::IndexUpdate | Self::Delete => &[Type::Int],
            Self::Range | Self::Sum | Self::Order | Self::Distinct => &[Type::Int, Type::Int],
            Self::OtherUpdate => &[Type::Text, Type::Int],
            Self::Insert => &[Type::Int, Type::Int, Type::Text, Type::Text],
        }
    }

    /// The statement with placeholders for its values.
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

/// The values of a statement, which uses those that it needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) id: i32,
    /// The last id of a range.
    pub(crate) last: i32,
    pub(crate) k: i32,
    pub(crate) c: &'a [u8],
    pub(crate) pad: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
