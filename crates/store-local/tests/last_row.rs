//! Tests of reads of the last row of each series: they give few rows, of few pages at a time.

use model::limits::READ_BLOCKS_PER_BATCH_MAX;
use model::{SeriesKey, Value};
use store::conformance::{TableRow, batch_of, collect_table, read_all};
use store::{Durability, Order, ReadOrder, TableRead};
use store::{Reader, Writer, conformance};

const SERIES: i64 = 200;
const ROWS: i64 = 512;

#[test]
fn an_end_is_found_without_the_rows_behind_it() {
    let store = testkit::parts::store_without_merges();
    for number in 0..SERIES {
        let series = store.series(&SeriesKey::device("t", &format!("d{number}")).unwrap()).unwrap();
        // The first series has stopped to report.
        for ts in 0..if number == 0 { 1 } else { ROWS } {
            let row = batch_of(series, &[(ts * 10_000_000, &[("x", Value::F64(ts as f64))])]);
            store.append(&row, Durability::Memory).unwrap();
        }
    }
    store.flush().unwrap();
    let snapshot = store.snapshot(&conformance::table("t")).unwrap().unwrap();
    for (end, nearest) in [(Order::Descending, ROWS - 1), (Order::Ascending, 0)] {
        let read =
            TableRead { order: ReadOrder::LastRow(end), batch_rows: 8_192, ..read_all(snapshot.as_ref()) };
        let rows = collect_table(snapshot.as_ref(), &read).unwrap().concat();
        let of = |n: i64| move |row: &&TableRow| row[2] == Some(Value::F64(n as f64));
        let expected = if end == Order::Descending { SERIES - 1 } else { SERIES };
        assert_eq!(rows.iter().filter(of(nearest)).count() as i64, expected);
        assert!(rows.iter().any(|row| row[0] == Some(Value::String("d0".into()))));
        assert!(rows.len() as i64 <= 8 * SERIES, "{} rows of each are not few", rows.len() as i64 / SERIES);
        // A page has rows of one or two series, and a batch has rows of a limited number of pages.
        let mut reader = snapshot.read(&read).unwrap().remove(0);
        let first = reader.next().unwrap().unwrap();
        assert!(first.num_rows() <= 8 * READ_BLOCKS_PER_BATCH_MAX, "{} rows", first.num_rows());
        assert!(reader.next().unwrap().is_some());
    }
}
