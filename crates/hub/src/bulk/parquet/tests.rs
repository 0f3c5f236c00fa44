use arrow_array::builder::{ListBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, Int64Array, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use super::*;

const MIB: usize = 1024 * 1024;
const BOUNDS: ParquetBounds = ParquetBounds { held_bytes_max: 64 * MIB as u64, rows_max: 100_000 };

fn file(columns: Vec<(&str, ArrayRef)>, properties: WriterPropertiesBuilder) -> Bytes {
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let properties = properties.set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap())).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
    writer.write(&rows).unwrap();
    writer.into_inner().unwrap().into()
}

fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_enabled(false)
}

/// The rows of each batch.
fn read(file: Bytes, bounds: ParquetBounds) -> Result<Vec<RecordBatch>, BulkError> {
    let mut reader = ParquetRows::open(file, bounds)?;
    let mut batches = Vec::new();
    while let Some(rows) = reader.next_rows()? {
        batches.push(rows);
    }
    Ok(batches)
}

fn texts(count: usize, bytes: usize) -> ArrayRef {
    Arc::new(StringArray::from(vec!["x".repeat(bytes); count]))
}

#[test]
fn every_row_is_read_and_unsupported_columns_are_skipped() {
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    (0..20_000).for_each(|row| words.append_value(format!("a word of a dictionary {}", row % 7)));
    let mut lists = ListBuilder::new(Int64Array::builder(0));
    (0..20_000).for_each(|row| lists.append_value([Some(row)]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Int64Array::from_iter_values(0..20_000))),
        ("list", Arc::new(lists.finish())),
        ("word", Arc::new(words.finish())),
    ];
    let file = file(columns, WriterProperties::builder().set_max_row_group_row_count(Some(9_000)));
    let mut reader = ParquetRows::open(file, BOUNDS).unwrap();
    assert_eq!(reader.rows(), 20_000);
    assert!(matches!(reader.schema().field(1).data_type(), DataType::List(_)));
    let mut next = 0;
    while let Some(rows) = reader.next_rows().unwrap() {
        let numbers = rows.column(0).as_primitive::<Int64Type>();
        for row in 0..rows.num_rows() {
            assert_eq!(numbers.value(row), next);
            let word = rows.column(2).as_string_view().value(row);
            assert_eq!(word, format!("a word of a dictionary {}", next % 7));
            next += 1;
        }
        assert_eq!(rows.column(1).data_type(), &DataType::Null);
    }
    assert_eq!(next, 20_000);
}

#[test]
fn a_file_with_large_pages_is_read_a_few_rows_at_once() {
    // A page for each row: ten rows are 80 MiB.
    let pages = file(vec![("t", texts(10, 8 * MIB))], plain().set_data_page_size_limit(1));
    assert!(pages.len() < MIB, "{}", pages.len());
    let batches = read(pages, BOUNDS).unwrap();
    let sizes: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 10, "{sizes:?}");
    assert!(sizes.iter().all(|rows| *rows <= 8), "{sizes:?}");
    // A text that all rows share is in memory once.
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    let long = "x".repeat(4 * MIB);
    (0..200).for_each(|_| words.append_value(&long));
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(8 * MIB);
    let dictionary = file(vec![("t", Arc::new(words.finish()))], properties);
    let batches = read(dictionary, BOUNDS).unwrap();
    let held: usize = batches[0].column(0).as_string_view().data_buffers().iter().map(|it| it.len()).sum();
    assert!(batches.len() == 1 && held < 9 * MIB, "{} batches, {held} bytes", batches.len());
}

#[test]
fn too_large_rows_and_too_many_rows_are_refused() {
    let row = file(vec![("t", texts(1, 80 * MIB))], plain());
    assert!(row.len() < MIB, "{}", row.len());
    let error = read(row.clone(), BOUNDS).unwrap_err().to_string();
    assert!(error.contains("one row unfolds to more than 67108864 bytes"), "{error}");
    let more = ParquetBounds { held_bytes_max: 200 * MIB as u64, ..BOUNDS };
    assert_eq!(read(row, more).unwrap()[0].column(0).as_string_view().value(0).len(), 80 * MIB);
    let rows = file(vec![("t", texts(100_001, 1))], WriterProperties::builder());
    let error = read(rows, BOUNDS).unwrap_err().to_string();
    assert!(error.contains("100001 rows") && error.contains("100000"), "{error}");
}

#[test]
fn delta_encoded_texts_are_read_a_few_at_once() {
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    for (encoding, version) in [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY]
        .into_iter()
        .flat_map(|encoding| versions.map(|version| (encoding, version)))
    {
        let folded = |column: ArrayRef| {
            file(vec![("t", column)], plain().set_encoding(encoding).set_writer_version(version))
        };
        // Each row is the same text of two mebibytes.
        let batches = read(folded(texts(40, 2 * MIB)), BOUNDS).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 40);
        assert!(batches.iter().all(|rows| rows.num_rows() <= 32), "{encoding} {}", batches[0].num_rows());
        assert!(batches.iter().all(|rows| rows.column(0).as_string_view().value(0).len() == 2 * MIB));
        let words = (0..5_000).map(|n| (n % 3 > 0).then(|| format!("{} of many words", n * 7_919 % 1_000)));
        let words = StringArray::from_iter(words);
        let batches = read(folded(Arc::new(words.clone())), BOUNDS).unwrap();
        let found =
            batches.iter().flat_map(|rows| rows.column(0).as_string_view().iter().collect::<Vec<_>>());
        assert_eq!(StringArray::from_iter(found), words, "{encoding}");
    }
}

#[test]
fn every_damage_of_a_page_is_an_error() {
    let whole = file(vec![("n", Arc::new(Int64Array::from_iter_values(0..100)))], plain());
    let footer = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().unwrap()) as usize;
    for position in 0..whole.len() - 8 - footer {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = whole.to_vec();
            bytes[position] ^= flip;
            // Some bytes have no checksum. The reader must not panic in any case.
            drop(read(bytes.into(), BOUNDS));
        }
    }
}
