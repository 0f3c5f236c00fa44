//! Phases that fill or drop the tables.

use crate::driver::sql::Contents;
use crate::result::Check;

/// Whether what was loaded is there: `rows` in each of `tables`.
pub(super) fn checks(contents: &Contents, tables: u32, rows: u32) -> Vec<Check> {
    let mut checks = vec![Check {
        what: format!("rows of {tables} tables after the load"),
        expected: format!("{} ({rows} in each)", u64::from(tables) * u64::from(rows)),
        found: match &contents.wrong_rows[..] {
            [] => contents.rows.to_string(),
            wrong => format!("{} ({})", contents.rows, Contents::named(wrong)),
        },
        passed: contents.wrong_rows.is_empty(),
    }];
    if rows > 0 {
        let ids = format!("1 to {rows}");
        checks.push(Check {
            what: "ids of each table after the load".to_owned(),
            expected: ids.clone(),
            found: if contents.wrong_ids.is_empty() { ids } else { Contents::named(&contents.wrong_ids) },
            passed: contents.wrong_ids.is_empty(),
        });
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_differs_fails_the_check_of_a_load() {
        let brief = |contents: &Contents, rows| -> Vec<(String, bool)> {
            checks(contents, 2, rows).into_iter().map(|check| (check.found, check.passed)).collect()
        };
        let good = Contents { rows: 20, ..Contents::default() };
        assert_eq!(brief(&good, 10), [("20".to_owned(), true), ("1 to 10".to_owned(), true)]);
        assert_eq!(brief(&Contents::default(), 0), [("0".to_owned(), true)]);
        let bad = Contents {
            rows: 19,
            wrong_rows: vec!["sbtest2 has 9".to_owned()],
            wrong_ids: vec!["sbtest2 has 1 to 9".to_owned()],
        };
        let expected = [("19 (sbtest2 has 9)".to_owned(), false), ("sbtest2 has 1 to 9".to_owned(), false)];
        assert_eq!(brief(&bad, 10), expected);
    }
}
