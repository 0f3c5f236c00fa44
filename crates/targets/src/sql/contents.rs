//! The content of the tables after a load.

use std::time::Duration;

use clients::sql::{Address, Client, SqlError};

/// The longest wait for one answer: a count reads a whole index.
const SILENCE: Duration = Duration::from_secs(3_600);
/// The largest number of wrong tables to name.
const NAMED: usize = 3;

/// The actual content of the tables, compared with the expected rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The number of rows of all tables.
    pub rows: u64,
    /// Tables with a wrong number of rows, as text.
    pub wrong_rows: Vec<String>,
    /// Tables whose ids are not 1 to that number, as text.
    pub wrong_ids: Vec<String>,
}

impl Contents {
    /// The errors in one sentence; all of them if only few tables are wrong.
    pub fn named(wrong: &[String]) -> String {
        let mut text = wrong.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        if let more @ 1.. = wrong.len().saturating_sub(NAMED) {
            text.push_str(&format!(" and {more} more tables"));
        }
        text
    }

    fn add(&mut self, table: u32, wanted: u32, (rows, first, last): (u64, Option<i64>, Option<i64>)) {
        self.rows += rows;
        if rows != u64::from(wanted) {
            self.wrong_rows.push(format!("sbtest{table} has {rows}"));
        }
        let ids = (wanted > 0).then_some((1, i64::from(wanted)));
        if first.zip(last) != ids {
            let text = |id: Option<i64>| id.map_or("none".to_owned(), |id| id.to_string());
            self.wrong_ids.push(format!("sbtest{table} has {} to {}", text(first), text(last)));
        }
    }
}

/// Counts the rows of tables 1 to `tables`, each of which should have `rows`.
pub(super) fn contents(address: &Address, tables: u32, rows: u32) -> Result<Contents, SqlError> {
    let mut client = Client::connect(address, SILENCE)?;
    let mut contents = Contents::default();
    for table in 1..=tables {
        // The queries are separate: the first and last id come from the primary key, a count from the smallest index.
        let count = numbers(&mut client, &format!("SELECT COUNT(*) FROM sbtest{table}"))?;
        let ends = numbers(&mut client, &format!("SELECT MIN(id), MAX(id) FROM sbtest{table}"))?;
        let number = |of: &[Option<i64>], index: usize| of.get(index).copied().flatten();
        let count = number(&count, 0).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        contents.add(table, rows, (count, number(&ends, 0), number(&ends, 1)));
    }
    client.quit();
    Ok(contents)
}

fn numbers(client: &mut Client, question: &str) -> Result<Vec<Option<i64>>, SqlError> {
    let row = client.rows(question)?.into_iter().next().unwrap_or_default();
    Ok(row.into_iter().map(|value| value?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_differ_are_named() {
        let mut contents = Contents::default();
        contents.add(1, 10, (10, Some(1), Some(10)));
        assert_eq!(contents, Contents { rows: 10, ..Contents::default() });
        contents.add(2, 10, (9, Some(1), Some(10)));
        contents.add(3, 10, (10, Some(1), Some(19)));
        contents.add(4, 10, (0, None, None));
        assert_eq!(contents.rows, 29);
        assert_eq!(Contents::named(&contents.wrong_rows), "sbtest2 has 9, sbtest4 has 0");
        assert_eq!(Contents::named(&contents.wrong_ids), "sbtest3 has 1 to 19, sbtest4 has none to none");
        let many: Vec<String> = (0..5).map(|table| format!("t{table}")).collect();
        assert_eq!(Contents::named(&many), "t0, t1, t2 and 2 more tables");
    }

    #[test]
    fn tables_that_are_to_be_empty_have_no_ids() {
        let mut contents = Contents::default();
        contents.add(1, 0, (0, None, None));
        assert_eq!(contents, Contents::default());
    }
}
