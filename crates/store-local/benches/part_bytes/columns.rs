//! All kinds of columns in all encodings.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, Type};

use crate::encode::decimal::put_integers;
use crate::encode::numbers::{
    Column, DoubleEncoding, NumberEncoding, Present, write_doubles_as, write_integers_as,
};
use crate::encode::pages::Compressor;
use crate::workloads::Random;

/// Rows of a column: four row groups' worth is enough to forget the caches.
const ROWS: usize = 512 * 1024;
/// The number of rounds. The fastest counts, because other programs may use the machine.
const ROUNDS: usize = 8;
const GROUP_ROWS: usize = 128 * 1024;
const PAGE_ROWS: [usize; 3] = [2048, 4096, 8192];
const LEVELS: [i32; 3] = [1, 3, 9];

pub(crate) fn run() {
    println!("column, encoding, zstd level, page rows: bytes/value, encode ns/value, decode ns/value");
    for (name, values) in integers() {
        for encoding in NumberEncoding::ALL {
            each_setting(|level, page_rows| {
                measure_integers(&format!("{name}, {encoding:?}"), &values, encoding, level, page_rows);
            });
        }
    }
    for (name, values) in doubles() {
        let mut scaled = Vec::new();
        if let Some(scale) = (0..6).find(|scale| {
            scaled.clear();
            put_integers(&mut scaled, &values, *scale)
        }) {
            for encoding in NumberEncoding::ALL {
                each_setting(|level, page_rows| {
                    let name = format!("{name}, decimal({scale}) {encoding:?}");
                    measure_integers(&name, &scaled, encoding, level, page_rows);
                });
            }
        }
        for encoding in DoubleEncoding::ALL {
            each_setting(|level, page_rows| {
                measure_doubles(&format!("{name}, {encoding:?}"), &values, encoding, level, page_rows);
            });
        }
    }
}

/// All levels at one page size, and all page sizes at one level.
fn each_setting(mut measure: impl FnMut(i32, usize)) {
    LEVELS.iter().for_each(|level| measure(*level, 8192));
    PAGE_ROWS[..2].iter().for_each(|page_rows| measure(1, *page_rows));
}

fn integers() -> Vec<(&'static str, Vec<i64>)> {
    let mut random = Random::new();
    let regular = |row: usize| 1_700_000_000_000_000 + (row % 8640) as i64 * 10_000_000;
    let times = (0..ROWS).map(regular).collect();
    let jittered = (0..ROWS).map(|row| regular(row) + random.below(100) as i64 * 1_000).collect();
    let mut total = 0;
    let mut count = || {
        total += random.below(1000) as i64;
        total
    };
    let counter = (0..ROWS).map(|_| count()).collect();
    let noise = (0..ROWS).map(|_| 1_500 + random.below(700) as i64).collect();
    let small = (0..ROWS).map(|_| random.below(10).pow(2) as i64 / 20).collect();
    vec![
        ("ts every 10 s", times),
        ("ts with 100 ms of jitter", jittered),
        ("counter", counter),
        ("i64 of 700 values", noise),
        ("i64 of 5 values", small),
    ]
}

fn doubles() -> Vec<(&'static str, Vec<f64>)> {
    let mut random = Random::new();
    let mut at = 2_000.0;
    let mut step = |random: &mut Random, row: usize, range: u64| {
        at = if row.is_multiple_of(8640) {
            2_000.0
        } else {
            at + random.below(range) as f64 - (range / 2) as f64
        };
        at / 100.0
    };
    let walk = (0..ROWS).map(|row| step(&mut random, row, 51)).collect();
    let short = (0..ROWS).map(|row| step(&mut random, row * 180, 51)).collect();
    let wide = (0..ROWS).map(|row| step(&mut random, row, 2_001)).collect();
    let unit = (0..ROWS).map(|_| random.unit()).collect();
    let ratio = (0..ROWS).map(|row| (row % 1000) as f64 / 7.0).collect();
    let constant = (0..ROWS).map(|row| (row / 10_000) as f64 + 0.5).collect();
    vec![
        ("walk of 51 steps of 0.01", walk),
        ("the same, 48 rows of a series", short),
        ("walk of 2001 steps of 0.01", wide),
        ("random in 0..1", unit),
        ("sevenths", ratio),
        ("constant", constant),
    ]
}

fn measure_integers(name: &str, values: &[i64], encoding: NumberEncoding, level: i32, page_rows: usize) {
    let write = |descriptor: ColumnDescPtr, compressor: &mut Compressor, values: &[i64]| {
        let column = Column { values, rows: values.len(), present: Present::All };
        write_integers_as(encoding, &column, descriptor, compressor, page_rows, false)
    };
    measure::<Int64Type>(name, values, PhysicalType::INT64, level, page_rows, write);
}

fn measure_doubles(name: &str, values: &[f64], encoding: DoubleEncoding, level: i32, page_rows: usize) {
    let write = |descriptor: ColumnDescPtr, compressor: &mut Compressor, values: &[f64]| {
        let column = Column { values, rows: values.len(), present: Present::All };
        write_doubles_as(encoding, &column, descriptor, compressor, page_rows)
    };
    measure::<DoubleType>(name, values, PhysicalType::DOUBLE, level, page_rows, write);
}

type Encoded = parquet::errors::Result<(Bytes, parquet::column::writer::ColumnCloseResult)>;

fn measure<T: DataType + 'static>(
    name: &str,
    values: &[T::T],
    physical: PhysicalType,
    level: i32,
    page_rows: usize,
    write: impl Fn(ColumnDescPtr, &mut Compressor, &[T::T]) -> Encoded,
) {
    let integer = (physical == PhysicalType::INT64).then(|| LogicalType::integer(64, true));
    let column = Type::primitive_type_builder("v", physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(integer)
        .build()
        .unwrap();
    let schema = Type::group_type_builder("row").with_fields(vec![Arc::new(column)]).build().unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), properties).unwrap();
    let descriptor = file.schema_descr().column(0);
    let mut compressor = Compressor::new(level).unwrap();
    let (mut bytes, mut encode) = (0, f64::INFINITY);
    for round in 0..ROUNDS {
        let begun = Instant::now();
        for values in values.chunks(GROUP_ROWS) {
            let (chunk, close) = write(descriptor.clone(), &mut compressor, values).unwrap();
            if round == 0 {
                bytes += chunk.len();
                let mut group = file.next_row_group().unwrap();
                group.append_column(&chunk, close).unwrap();
                group.close().unwrap();
            }
        }
        encode = encode.min(begun.elapsed().as_nanos() as f64);
    }
    let file = Bytes::from(file.into_inner().unwrap());
    let decode = decode::<T>(file, values);
    println!(
        "{name}, {level}, {page_rows}: {:.3}, {:.1}, {:.1}",
        bytes as f64 / values.len() as f64,
        encode / values.len() as f64,
        decode / values.len() as f64
    );
}

/// Nanoseconds to read the column back. Checks that the values are the written ones.
fn decode<T: DataType + 'static>(file: Bytes, values: &[T::T]) -> f64 {
    let mut spent = f64::INFINITY;
    for round in 0..ROUNDS {
        let reader = SerializedFileReader::new(file.clone()).unwrap();
        let mut found = Vec::with_capacity(values.len());
        let begun = Instant::now();
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).unwrap();
            let rows = group.metadata().num_rows() as usize;
            let mut column = get_typed_column_reader::<T>(group.get_column_reader(0).unwrap());
            let mut levels = Vec::with_capacity(rows);
            column.read_records(rows, Some(&mut levels), None, &mut found).unwrap();
            black_box(&levels);
        }
        spent = spent.min(begun.elapsed().as_nanos() as f64);
        assert!(round > 0 || found == values, "what was written");
    }
    spent
}
