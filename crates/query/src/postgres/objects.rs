//! The tables that a user may see, with their numbers.
//!
//! The number of a table follows from its name, so that it is the same in every session, after a restart, and when other tables
//! come and go. If two names give the same number (about one pair among 50,000 tables), the one that sorts later gets the next free
//! number.

use std::collections::HashSet;

use store::TableStatus;

/// Smaller numbers belong to PostgreSQL itself.
const FIRST_OID: i64 = 16_384;
/// Numbers have 31 bits, because some clients read them as signed.
const END_OID: i64 = 1 << 31;

/// One table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) oid: i64,
    pub(crate) name: String,
    /// Bytes on disk.
    pub(crate) bytes: i64,
    /// The estimated number of rows.
    pub(crate) rows: i64,
}

/// Returns the number that a table gets if no other table has it.
pub(super) fn wish(name: &str) -> i64 {
    // FNV-1a with 64 bits. The numbers must not change with a release.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    FIRST_OID + (hash % (END_OID - FIRST_OID) as u64) as i64
}

/// Numbers all tables and returns those that satisfy `visible`, sorted by name.
pub(crate) fn number(tables: Vec<TableStatus>, visible: impl Fn(&str) -> bool) -> Vec<Object> {
    let mut tables = tables;
    tables.sort_by(|one, other| one.table.cmp(&other.table));
    let mut taken = HashSet::with_capacity(tables.len());
    let mut objects = Vec::new();
    for table in tables {
        let mut oid = wish(table.table.name());
        while !taken.insert(oid) {
            oid = if oid + 1 == END_OID { FIRST_OID } else { oid + 1 };
        }
        if visible(table.table.name()) {
            let bytes = i64::try_from(table.bytes).unwrap_or(i64::MAX);
            let rows = i64::try_from(table.rows).unwrap_or(i64::MAX);
            objects.push(Object { oid, name: table.table.name().to_owned(), bytes, rows });
        }
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(table: &str) -> TableStatus {
        TableStatus {
            table: table.try_into().unwrap(),
            series: 0,
            rows: 0,
            points: None,
            bytes: 0,
            raw_bytes: None,
            time_range: None,
            ttl: None,
        }
    }

    #[test]
    fn a_number_does_not_depend_on_other_tables() {
        let alone = number(vec![status("telemetry")], |_| true);
        let names = (0..1_000).map(|n| format!("table_{n}"));
        let crowd: Vec<_> = names.map(|name| status(&name)).chain([status("telemetry")]).collect();
        let among = number(crowd, |name| name == "telemetry");
        assert_eq!(alone, among);
        assert_eq!(alone[0].oid, wish("telemetry"));
        assert!((FIRST_OID..END_OID).contains(&alone[0].oid));
    }

    #[test]
    fn no_two_tables_have_one_number() {
        let crowd: Vec<_> = (0..200_000).map(|n| status(&format!("metric_{n}"))).collect();
        let objects = number(crowd, |_| true);
        assert_eq!(objects.iter().map(|object| object.oid).collect::<HashSet<_>>().len(), 200_000);
    }
}
