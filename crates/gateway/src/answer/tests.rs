use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int64Array, RecordBatch,
    StringArray, StringViewArray, StructArray, TimestampMicrosecondArray, TimestampNanosecondArray,
    UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use serde_json::{Value, json};

use super::*;

/// 2026-11-21T15:40:00.000001Z.
const TS: i64 = 1_795_275_600_000_001;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn encoded(format: Format, batches: &[RecordBatch]) -> Vec<u8> {
    let mut encoder = format.encoder(&batches[0].schema()).unwrap();
    let mut bytes = Vec::new();
    for batch in batches {
        encoder.rows(batch).unwrap();
        bytes.append(&mut encoder.take());
    }
    encoder.finish().unwrap();
    bytes.append(&mut encoder.take());
    bytes
}

fn json_of(batches: &[RecordBatch]) -> Value {
    serde_json::from_slice(&encoded(Format::Json, batches)).unwrap()
}

fn text_of(format: Format, batches: &[RecordBatch]) -> String {
    String::from_utf8(encoded(format, batches)).unwrap()
}

fn everything() -> RecordBatch {
    let mut lists = ListBuilder::new(Int64Builder::new());
    lists.append_value([Some(1), None]);
    lists.append_null();
    let ts = TimestampMicrosecondArray::from(vec![TS, 0]).with_timezone("UTC");
    let names: DictionaryArray<arrow_array::types::Int32Type> = [Some("a"), None].into_iter().collect();
    batch(vec![
        ("ts", Arc::new(ts)),
        ("device", Arc::new(StringViewArray::from(vec![Some("truck \"7\", red"), None]))),
        ("speed", Arc::new(Float64Array::from(vec![Some(52.5), None]))),
        ("count", Arc::new(Int64Array::from(vec![Some(7), None]))),
        ("on", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("list", Arc::new(lists.finish())),
        ("name", Arc::new(names)),
    ])
}

#[test]
fn json_has_columns_then_rows_then_their_number() {
    let answer = json_of(&[everything(), everything()]);
    assert_eq!(answer["columns"][0], json!({ "name": "ts", "type": "timestamp" }));
    assert_eq!(answer["columns"][1], json!({ "name": "device", "type": "string" }));
    let types: Vec<&str> =
        answer["columns"].as_array().unwrap().iter().map(|column| column["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["timestamp", "string", "f64", "i64", "bool", "list", "string"]);
    assert_eq!(
        answer["rows"][2],
        json!(["2026-11-21T15:40:00.000001Z", "truck \"7\", red", 52.5, 7, true, [1, null], "a"])
    );
    assert_eq!(answer["rows"][1], json!(["1970-01-01T00:00:00.000000Z", null, null, null, null, null, null]));
    assert_eq!(answer["row_count"], 4);
}

#[test]
fn json_numbers_that_readers_would_change_are_strings() {
    let least = -(1_i64 << 53);
    let numbers = Int64Array::from(vec![1 << 53, (1 << 53) + 1, least, least - 1, i64::MAX, i64::MIN]);
    let floats = Float64Array::from(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5.0, 1e300]);
    let huge = UInt64Array::from(vec![0, 1, 2, 3, 4, u64::MAX]);
    let short = Float32Array::from(vec![0.1, f32::NAN, 1.0, 1.0, 1.0, 1.0]);
    let answer = text_of(
        Format::Json,
        &[batch(vec![
            ("i", Arc::new(numbers)),
            ("f", Arc::new(floats)),
            ("u", Arc::new(huge)),
            ("s", Arc::new(short)),
        ])],
    );
    let rows: Vec<&str> = answer.lines().skip(2).take(6).map(|line| line.trim_end_matches(',')).collect();
    assert_eq!(
        rows,
        [
            r#"[9007199254740992,"NaN",0,0.1]"#,
            r#"["9007199254740993","Infinity",1,"NaN"]"#,
            r#"[-9007199254740992,"-Infinity",2,1.0]"#,
            r#"["-9007199254740993",-0.0,3,1.0]"#,
            r#"["9223372036854775807",5.0,4,1.0]"#,
            r#"["-9223372036854775808",1e+300,"18446744073709551615",1.0]"#,
        ]
    );
}

#[test]
fn json_times_of_all_units_have_microseconds() {
    let nanos = TimestampNanosecondArray::from(vec![TS * 1_000 + 999, -1]);
    let answer = json_of(&[batch(vec![("t", Arc::new(nanos))])]);
    assert_eq!(answer["rows"], json!([["2026-11-21T15:40:00.000001Z"], ["1970-01-01T00:00:00.000000Z"]]));
    let beyond = TimestampMicrosecondArray::from(vec![i64::MAX, 253_402_300_799_999_999]);
    let answer = json_of(&[batch(vec![("t", Arc::new(beyond))])]);
    assert_eq!(answer["rows"][0], json!([i64::MAX]));
    assert!(answer["rows"][1][0].as_str().is_none_or(|time| time == "9999-12-31T23:59:59.999999Z"));
}

#[test]
fn json_columns_hold_json_and_not_its_text() {
    let kind = [("tachograph.kind".to_owned(), "json".to_owned())].into_iter().collect();
    let field = Field::new("position", DataType::Utf8View, true).with_metadata(kind);
    let values = StringViewArray::from(vec![Some(r#"{"lat": 47.10}"#), Some("{broken"), None]);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(values)]).unwrap();
    let text = text_of(Format::Json, &[batch]);
    assert!(text.contains(r#"{"name":"position","type":"json"}"#), "{text}");
    assert!(text.contains("[{\"lat\": 47.10}],\n[\"{broken\"],\n[null]\n"), "{text}");
}

#[test]
fn json_objects_and_null_columns() {
    let x: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let point = StructArray::from(vec![(Arc::new(Field::new("x", DataType::Int64, true)), x)]);
    let answer = json_of(&[batch(vec![
        ("point", Arc::new(point)),
        ("nothing", Arc::new(arrow_array::NullArray::new(1))),
    ])]);
    assert_eq!(answer["rows"], json!([[{ "x": 1 }, null]]));
}

#[test]
fn a_late_error_appears_in_json_and_aborts_other_formats() {
    let failure = Failure { status: 422, error_code: 31, message: "out of \"memory\"" };
    let batch = everything();
    let mut encoder = Format::Json.encoder(&batch.schema()).unwrap();
    encoder.rows(&batch).unwrap();
    assert!(encoder.fail(&failure));
    let answer: Value = serde_json::from_slice(&encoder.take()).unwrap();
    assert_eq!(answer["rows"].as_array().unwrap().len(), 2);
    assert_eq!(answer["error"], json!({ "status": 422, "errorCode": 31, "message": "out of \"memory\"" }));
    assert!(answer.get("row_count").is_none());
    for format in [Format::Csv, Format::Arrow, Format::Parquet] {
        let mut encoder = format.encoder(&batch.schema()).unwrap();
        encoder.rows(&batch).unwrap();
        assert!(!encoder.fail(&failure), "{format}");
    }
}

#[test]
fn csv_follows_the_rfc() {
    assert_eq!(
        text_of(Format::Csv, &[everything()]),
        "ts,device,speed,count,on,list,name\r\n\
         2026-11-21T15:40:00.000001Z,\"truck \"\"7\"\", red\",52.5,7,true,\"[1, ]\",a\r\n\
         1970-01-01T00:00:00.000000Z,,,,,,\r\n"
    );
}

#[test]
fn csv_without_rows_has_a_header() {
    let empty = everything().slice(0, 0);
    assert_eq!(text_of(Format::Csv, &[empty]), "ts,device,speed,count,on,list,name\r\n");
}

#[test]
fn csv_keeps_lines_of_one_empty_cell_apart() {
    let column: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
    assert_eq!(text_of(Format::Csv, &[batch(vec![("x", column)])]), "x\r\na\r\n\"\"\r\nb\r\n");
}

#[test]
fn arrow_round_trips_in_plain_types() {
    let bytes = encoded(Format::Arrow, &[everything(), everything()]);
    let read = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).unwrap();
    let batches: Vec<RecordBatch> = read.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 4);
    assert_eq!(*batches[0].schema().field(1).data_type(), DataType::Utf8);
    assert_eq!(*batches[0].schema().field(6).data_type(), DataType::Utf8);
    assert_eq!(json_of(&batches), json_of(&[everything(), everything()]));
}

#[test]
fn parquet_is_sent_in_row_groups_and_round_trips() {
    let rows = 300_000;
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    let big = batch(vec![("n", numbers)]);
    let mut encoder = Format::Parquet.encoder(&big.schema()).unwrap();
    let mut bytes = Vec::new();
    for start in (0..rows as usize).step_by(8_192) {
        encoder.rows(&big.slice(start, 8_192.min(rows as usize - start))).unwrap();
        bytes.append(&mut encoder.take());
    }
    let before_the_end = bytes.len();
    encoder.finish().unwrap();
    bytes.append(&mut encoder.take());
    assert!(before_the_end > bytes.len() / 2, "{before_the_end} bytes of {} left early", bytes.len());
    let reader =
        ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes));
    let reader = reader.unwrap();
    assert!(reader.metadata().num_row_groups() > 1);
    let read: usize = reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(read, rows as usize);
}

#[test]
fn format_names_are_parsed() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert_eq!("JSON".parse(), Ok(Format::Json));
    assert!("xml".parse::<Format>().unwrap_err().contains("json, csv, arrow or parquet"));
}
