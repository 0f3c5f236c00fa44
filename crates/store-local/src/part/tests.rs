//! What the writer writes the reader, and so the `parquet` crate, gives back: every type, encoding and layout.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use model::{FieldType, Value, ValueRef};
use parking_lot::Mutex;
use proptest::prelude::*;
use store::ValueColumn;

use super::blocks::BlockFile;
use super::column_stats::ColumnStats;
use super::columns::PartColumns;
use super::context::{TableNames, TagVisitor, WriteContext};
use super::info::{PartInfo, PartLayout};
use super::page::Page;
use super::read::PartReader;
use super::schema::{PartField, PartSchema, PartSettings};
use super::stream::PartStream;
use super::write::PartWriter;
use crate::abort::Abort;
use crate::array_cache::{ArrayCache, Keep};
use crate::catalog::Slot;
use crate::disk::DiskFile;

/// A file in memory.
#[derive(Default)]
struct MemoryFile(Mutex<Vec<u8>>);

impl DiskFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.lock();
        let rest = &bytes[(offset as usize).min(bytes.len())..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut content = self.0.lock();
        assert_eq!(content.len() as u64, offset, "a part is written from its beginning to its end");
        content.extend_from_slice(bytes);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().truncate(len as usize);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().len() as u64)
    }
}

/// Series with one tag, every third also with another, which all of them share.
struct Names;

impl WriteContext for Names {
    fn tags(&self, series: &[u32], visit: &mut TagVisitor<'_>) {
        for series in series {
            visit(Some((0, &format!("device-{series}"))));
            if series % 3 == 0 {
                visit(Some((1, "site \"one\"")));
            }
            visit(None);
        }
    }

    fn table(&self, table: u32) -> TableNames {
        let tags = vec!["device".into(), "site".into()];
        TableNames { name: format!("metric.{table}").into(), field: "value".into(), tags }
    }

    fn should_continue(&self) -> bool {
        true
    }
}

/// Rows by (table, series, ts), each with values by key.
type Rows = BTreeMap<(u32, u32, i64), BTreeMap<u32, Value>>;

struct Written {
    reader: Arc<PartReader>,
    bytes: Vec<u8>,
}

fn write(schema: &PartSchema, rows: &Rows, row_group_rows: usize, page_rows: usize) -> Written {
    let settings = PartSettings { row_group_rows, row_group_bytes: usize::MAX, page_rows, zstd_level: 1 };
    write_with(settings, schema, rows)
}

fn write_with(settings: PartSettings, schema: &PartSchema, rows: &Rows) -> Written {
    let file = Arc::new(MemoryFile::default());
    let path = PathBuf::from("part");
    let write = || -> Result<_, Abort> {
        let mut writer = PartWriter::new(file.clone(), path.clone(), schema, settings, &Names)?;
        for ((table, series, ts), fields) in rows {
            writer.table(*table);
            writer.row(*series, *ts)?;
            fields.iter().for_each(|(key, value)| writer.field(*key, value.as_ref()));
        }
        writer.finish()
    };
    let extent = write().unwrap_or_else(|_| panic!("nothing fails here"));
    assert_eq!(extent.rows, rows.len() as u64);
    let info = PartInfo {
        id: 1,
        layout: schema.layout,
        tables: extent.tables(),
        partition: (i64::MIN, i64::MAX),
        rows: extent.rows,
        bytes: extent.bytes,
        series: extent.series,
        ts: extent.ts,
        sequence: (1, 1),
        applied: 0,
        points: 0,
        raw_bytes: 0,
        shares: Vec::new(),
        block_crcs: extent.block_crcs,
    };
    let bytes = file.0.lock().clone();
    let reader = PartReader::open(BlockFile::new(file, path, Arc::new(info))).unwrap();
    Written { reader: Arc::new(reader), bytes }
}

fn wide(rows: &Rows) -> PartSchema {
    let mut stats = ColumnStats::new();
    for (key, value) in rows.values().flatten() {
        stats.add(*key, value.as_ref());
    }
    let mut fields = Vec::new();
    for (key, found) in stats.keys().iter().enumerate() {
        for field_type in FieldType::ALL.into_iter().filter(|of| found.has(*of)) {
            let physical = physical(key as u32, field_type);
            let scale = found.scale().filter(|_| field_type == FieldType::F64);
            let key_name = format!("{key}").into();
            fields.push(PartField { key: key as u32, key_name, field_type, physical, scale });
        }
    }
    PartSchema {
        layout: PartLayout::Wide,
        table: 0,
        table_name: Some("t".try_into().unwrap()),
        tags: vec!["device".into(), "site".into()],
        tag_names: vec!["device".into(), "site".into()],
        fields,
        dropped_keys: Vec::new(),
    }
}

fn physical(key: u32, field_type: FieldType) -> Arc<str> {
    format!("{key}:{field_type}").into()
}

fn slots(keys: u32) -> Vec<Slot> {
    let of_key =
        |key| FieldType::ALL.map(|field_type| Slot { key, field_type, physical: physical(key, field_type) });
    (0..keys).flat_map(of_key).collect()
}

/// Bits decide: NaN is a value like others, and zeros differ.
fn same(a: Option<ValueRef<'_>>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(ValueRef::F64(a)), Some(Value::F64(b))) => a.to_bits() == b.to_bits(),
        (a, b) => a == b.map(Value::as_ref),
    }
}

/// Reads page by page, once each page alone and once as a scan does.
fn check(written: &Written, rows: &Rows, keys: u32) {
    let pages = written.reader.pages.len() as u32;
    for ahead in [0..0, 0..pages] {
        let cache = Arc::new(ArrayCache::new(10_000));
        let columns = PartColumns::new(1, written.reader.clone(), cache, Keep::Always, ahead);
        let mut expected = rows.iter();
        for page in 0..pages {
            check_cell(&columns, page, &slots(keys), &mut expected);
        }
        assert_eq!(expected.next(), None);
    }
}

fn check_cell<'a>(
    columns: &PartColumns,
    page: u32,
    slots: &[Slot],
    expected: &mut impl Iterator<Item = (&'a (u32, u32, i64), &'a BTreeMap<u32, Value>)>,
) {
    let (runs, bounds) = (columns.runs(page).unwrap(), columns.reader.pages[page as usize]);
    let times = columns.array(page, columns.reader.ts).unwrap();
    let times = times.as_primitive::<TimestampMicrosecondType>().values();
    for (row, ts) in times.iter().enumerate() {
        let series = runs[runs.partition_point(|run| run.end as usize <= row)].series;
        let ((_, of, at), fields) = expected.next().unwrap();
        assert_eq!((series, *ts), (*of, *at));
        assert!(bounds.series.0 <= series && series <= bounds.series.1, "{bounds:?}");
        assert!(bounds.ts.0 <= *ts && *ts <= bounds.ts.1, "{bounds:?}");
        let array = |slot: &Slot| {
            let array = columns.field(page, slot, row as u32..row as u32 + 1).unwrap()?;
            Some((slot.key, ValueColumn::new(&array, slot.field_type)))
        };
        let arrays: Vec<(u32, ValueColumn)> = slots.iter().filter_map(array).collect();
        for key in slots.iter().map(|slot| slot.key) {
            let mut found = arrays.iter().filter(|(of, _)| *of == key).filter_map(|(_, of)| of.get(row));
            let (value, expected) = (found.next(), fields.get(&key));
            assert!(same(value, expected), "{series} {ts}: {value:?} is not {expected:?}");
            assert!(found.next().is_none(), "{series} {ts}: two values of one key");
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::I64),
        (-1000_i64..1000).prop_map(Value::I64),
        any::<u64>().prop_map(|bits| Value::F64(f64::from_bits(bits))),
        "[a-zäß]{0,12}".prop_map(Value::String),
        Just(Value::Json("{\"a\":[1,2]}".to_owned())),
    ]
}

/// Doubles of one kind: bits, decimals, or decimals among which something special is.
fn doubles() -> impl Strategy<Value = Vec<f64>> {
    let decimal = (-1_000_000_i64..1_000_000).prop_map(|integer| integer as f64 / 100.0);
    let special = prop::sample::select(vec![
        -0.0,
        0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        0.1 + 0.2,
        1e15,
        (1_u64 << 53) as f64,
    ]);
    let with_special = prop_oneof![9 => decimal.clone(), 1 => special];
    prop_oneof![
        prop::collection::vec(any::<u64>().prop_map(f64::from_bits), 1..200),
        prop::collection::vec(decimal, 1..300),
        prop::collection::vec(with_special, 1..200),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_rows_come_back_from_a_wide_part(
        rows in prop::collection::btree_map(
            (Just(0_u32), 0_u32..6, -50_i64..50),
            prop::collection::btree_map(0_u32..3, value(), 1..4),
            1..120,
        ),
        group in 1_usize..60,
        page in 1_usize..20,
    ) {
        let written = write(&wide(&rows), &rows, group, page);
        check(&written, &rows, 3);
    }

    #[test]
    fn any_doubles_come_back_bit_by_bit(values in doubles(), tables in 1_u32..4, page in 1_usize..200) {
        let row = |(index, value): (usize, &f64)| {
            let index = index as u32;
            // Series numbers are not sorted by table.
            let table = index % tables;
            ((table, 100 * (index % 7) + tables - table, i64::from(index) * 10), BTreeMap::from([(0, Value::F64(*value))]))
        };
        let rows: Rows = values.iter().enumerate().map(row).collect();
        check(&write(&PartSchema::narrow(), &rows, 150, page), &rows, 1);
        let rows: Rows = rows.into_iter().map(|((_, series, ts), fields)| ((0, series, ts), fields)).collect();
        check(&write(&wide(&rows), &rows, 150, page), &rows, 1);
    }
}

/// Every kind of run: long ones with a dictionary, one row each with shared prefixes, a tag that most series lack.
#[test]
fn names_of_series_come_back() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    for rows_per_series in [1, 3, 40] {
        let row = |index: i64| {
            ((0, (index / rows_per_series) as u32, index), BTreeMap::from([(0, Value::I64(index))]))
        };
        let rows: Rows = (0..400).map(row).collect();
        let written = write(&wide(&rows), &rows, 150, 16);
        let file = SerializedFileReader::new(bytes::Bytes::from(written.bytes)).unwrap();
        let mut count = 0;
        for (found, (_, series, ts)) in file.get_row_iter(None).unwrap().zip(rows.keys()) {
            let found = found.unwrap();
            assert_eq!(found.get_string(0).unwrap(), &format!("device-{series}"));
            assert_eq!(
                found.get_string(1).ok().map(String::as_str),
                (series % 3 == 0).then_some("site \"one\"")
            );
            assert_eq!(
                (found.get_timestamp_micros(2).unwrap(), found.get_ulong(4).unwrap()),
                (*ts, u64::from(*series))
            );
            count += 1;
        }
        assert_eq!(count, 400);
    }
}

#[test]
fn a_narrow_part_says_table_tags_field_and_value() {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    // Tables with no, one and more decimals than there is a column for.
    let value = |table: u32, index: i64| index as f64 / [1.0, 2.0, 3.0][table as usize];
    let row = |index: i64| {
        let table = (index / 30) as u32;
        let series = 1000 - 10 * table + (index % 30 / 10) as u32;
        ((table, series, index), BTreeMap::from([(0, Value::F64(value(table, index)))]))
    };
    let rows: Rows = (0..90).map(row).collect();
    let written = write(&PartSchema::narrow(), &rows, 64, 16);
    let file = SerializedFileReader::new(bytes::Bytes::from(written.bytes.clone())).unwrap();
    let found: Vec<String> = file.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    assert_eq!(
        found[31],
        "{table: \"metric.1\", tags: \"{\"device\":\"device-990\",\"site\":\"site \\\"one\\\"\"}\", field: \"value\", \
         ts: 1970-01-01 00:00:00.000031 +00:00, value_0: null, value_1: 15.5, value_2: null, value_3: null, \
         value_4: null, value_6: null, value_9: null, value_double: null, __series: 990}"
    );
    assert!(found[2].contains("value_0: 2.,"), "{}", found[2]);
    let is_empty = |name: &str| written.reader.is_empty(0, written.reader.column(name).unwrap());
    assert!(is_empty("value_9") && !is_empty("value_1") && !is_empty("value_double"), "seen without reading");
    assert!(found[70].contains("value_double: 23.333333333333332,"), "{}", found[70]);
    check(&written, &rows, 1);
}

/// Series numbers by turns, so that those of a page may be any; its tables are found by them all the same.
#[test]
fn only_the_pages_that_may_have_a_table_are_looked_at() {
    for rows_per_series in [1, 3, 10] {
        let row = |index: i64| {
            let (table, of_table) = ((index / 60) as u32, index % 60 / rows_per_series);
            ((table, of_table as u32 * 50 + table, index), BTreeMap::from([(0, Value::F64(index as f64))]))
        };
        let rows: Rows = (0..2_400).map(row).collect();
        let reader = write(&PartSchema::narrow(), &rows, 1_000, 16).reader;
        for table in 0..50 {
            let pages = reader.pages_of(table, (0, u32::MAX), |series| Some(series % 50));
            let mut start = 0;
            let has = |page: &Page| {
                let of_page = rows.keys().skip(start).take(page.rows as usize);
                start += page.rows as usize;
                of_page.into_iter().any(|row| row.0 == table)
            };
            let wanted: Vec<bool> = reader.pages.iter().map(has).collect();
            let found = |nth: &usize| pages.contains(&(*nth as u32));
            assert!(
                (0..wanted.len()).filter(|nth| wanted[*nth]).all(|nth| found(&nth)),
                "{table}: {pages:?}"
            );
            assert!(pages.len() <= wanted.iter().filter(|wanted| **wanted).count() + 2, "{table}: {pages:?}");
        }
    }
}

/// Long texts make row groups and windows of few rows; every row is there once.
#[test]
fn row_groups_and_windows_are_bounded_in_bytes() {
    const TEXT_BYTES: usize = 1_000;
    let text = |index: i64| format!("{index:0TEXT_BYTES$}");
    let row = |index: i64| ((0, 1, index), BTreeMap::from([(0, Value::String(text(index)))]));
    let rows: Rows = (0..100).map(row).collect();
    let settings =
        PartSettings { row_group_rows: 80, row_group_bytes: 20 * TEXT_BYTES, page_rows: 16, zstd_level: 1 };
    let schema = wide(&rows);
    let reader = write_with(settings, &schema, &rows).reader;
    let groups: Vec<usize> = (0..).map_while(|group| reader.rows_of_group(group)).collect();
    assert_eq!(groups, [20; 5]);

    // A window of fewer bytes than a row has a row.
    for (window_bytes, most) in [(1, 1), (5 * TEXT_BYTES, 5), (usize::MAX, 20)] {
        let mut stream = PartStream::new(reader.clone(), &schema, Arc::default(), window_bytes).unwrap();
        let (mut windows, mut index) = (1, 0);
        while let Some(row) = stream.row() {
            assert_eq!(row, (0, 1, index));
            stream.fields(|_, value| assert_eq!(value, ValueRef::String(&text(index))));
            index += 1;
            windows += usize::from(stream.advance().unwrap());
        }
        assert_eq!(index, 100);
        assert!(windows > 100 / most, "{windows} windows of {window_bytes} bytes");
    }
}
