//! Rows that were read, and pages of them.

use model::Value;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadRow {
    /// The time and the key. Without a key column the key is 0.
    pub(crate) position: Position,
    /// The values in the order of their columns.
    pub(crate) values: Vec<Option<Value>>,
}

/// Where a row is in the order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// The time, in the unit of its column.
    pub(crate) time: i64,
    /// The key, which distinguishes rows of one time.
    pub(crate) key: i64,
}

impl Position {
    /// After all rows of a time.
    pub(crate) fn after_time(time: i64) -> Self {
        Self { time, key: i64::MAX }
    }
}

/// Rows in their order.
#[derive(Debug, PartialEq)]
pub(crate) struct Page {
    /// The rows. Without a key column it has all rows of a time or none.
    pub(crate) rows: Vec<ReadRow>,
    /// Whether the database had no more rows.
    pub(crate) is_last: bool,
}

impl Page {
    /// The page of an answer that has at most `limit` rows, with a key one more, which belongs to the next page. The error states which rows
    /// cannot be told apart.
    pub(super) fn new(mut rows: Vec<ReadRow>, limit: usize, has_key: bool) -> Result<Self, String> {
        if has_key {
            check_keys(&rows)?;
            let is_last = rows.len() <= limit;
            rows.truncate(limit);
            return Ok(Self { rows, is_last });
        }
        let is_last = rows.len() < limit;
        if !is_last && let Some(last) = rows.last().map(|row| row.position.time) {
            // The rows of the last time may continue behind the page.
            let complete = rows.partition_point(|row| row.position.time < last);
            if complete == 0 {
                return Err(format!(
                    "{limit} rows or more have the time {last}; the predicate key-column must name a column that differs between them"
                ));
            }
            rows.truncate(complete);
        }
        order_same_times(&mut rows);
        Ok(Self { rows, is_last })
    }
}

fn check_keys(rows: &[ReadRow]) -> Result<(), String> {
    let same = rows.windows(2).find(|pair| pair[0].position == pair[1].position);
    match same.map(|pair| pair[0].position) {
        None => Ok(()),
        Some(Position { time, key }) => Err(format!(
            "two rows have the time {time} and the key {key}; the predicate key-column must name a column that differs between rows of \
             one time"
        )),
    }
}

/// Gives rows of one time an order that does not depend on the database: rows that are read again have the places that they had.
fn order_same_times(rows: &mut [ReadRow]) {
    if rows.windows(2).any(|pair| pair[0].position.time == pair[1].position.time) {
        rows.sort_by_cached_key(|row| (row.position.time, format!("{:?}", row.values)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(i64, i64, i64)]) -> Vec<ReadRow> {
        let row = |(time, key, value): &(i64, i64, i64)| ReadRow {
            position: Position { time: *time, key: *key },
            values: vec![Some(Value::I64(*value))],
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn a_page_with_keys_ends_anywhere() {
        let page = Page::new(rows(&[(1, 1, 5), (1, 2, 4), (1, 3, 3)]), 2, true).unwrap();
        assert_eq!((page.rows.len(), page.is_last), (2, false));
        let page = Page::new(rows(&[(1, 1, 5), (1, 2, 4)]), 2, true).unwrap();
        assert_eq!((page.rows.len(), page.is_last), (2, true));
        let refused = Page::new(rows(&[(1, 1, 5), (1, 2, 4), (1, 2, 3)]), 2, true).unwrap_err();
        assert!(refused.contains("the time 1 and the key 2"), "{refused}");
        assert!(Page::new(rows(&[(1, 1, 5)]), 2, true).unwrap().is_last);
        let refused = Page::new(rows(&[(1, 2, 5), (1, 2, 4)]), 9, true).unwrap_err();
        assert!(refused.contains("the time 1 and the key 2"), "{refused}");
    }

    #[test]
    fn a_page_without_keys_ends_before_a_time_that_may_continue() {
        let page = Page::new(rows(&[(1, 0, 5), (2, 0, 4), (2, 0, 3)]), 3, false).unwrap();
        assert_eq!(page, Page { rows: rows(&[(1, 0, 5)]), is_last: false });
        let page = Page::new(rows(&[(1, 0, 5), (2, 0, 4), (2, 0, 3)]), 4, false).unwrap();
        assert_eq!(page, Page { rows: rows(&[(1, 0, 5), (2, 0, 3), (2, 0, 4)]), is_last: true });
        let refused = Page::new(rows(&[(2, 0, 4), (2, 0, 3)]), 2, false).unwrap_err();
        assert!(refused.contains("key-column"), "{refused}");
        assert_eq!(Page::new(Vec::new(), 2, false).unwrap(), Page { rows: Vec::new(), is_last: true });
    }

    #[test]
    fn the_position_after_a_time_is_after_its_rows() {
        assert!(Position { time: 1, key: 9 } < Position::after_time(1));
        assert!(Position::after_time(1) < Position { time: 2, key: i64::MIN });
    }
}
