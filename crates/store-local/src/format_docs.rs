//! Compares the byte examples of docs/format with the output of the code, and reads them.

use std::path::{Path, PathBuf};

use model::{FieldType, ValueRef};

use crate::catalog::Catalog;
use crate::chunk::Numbers;
use crate::codec::Reader;
use crate::entry::{Entry, put_run};
use crate::log::acknowledged::note_of;
use crate::log::frame::{
    FRAME_HEADER_BYTES, FrameHeader, FrameKind, SegmentState, check_segment, frame_at, seal_frame,
    segment_header,
};
use crate::log::recover::Covered;
use crate::manifest::Edit;
use crate::part::{PartInfo, PartLayout};
use crate::record::{FileKind, file_header, put_record, read_records};
use crate::row;

/// The bytes of the first ```hex block after `heading` in a page of docs/format.
fn example(page: &str, heading: &str) -> Vec<u8> {
    let text = page_text(page);
    let section = text.split_once(heading).unwrap_or_else(|| panic!("{page} has no {heading:?}")).1;
    let block = section.split("```hex\n").nth(1).unwrap_or_else(|| panic!("{heading:?} has no example"));
    let block = block.split("```").next().unwrap();
    let digits =
        block.lines().flat_map(|line| line.split("  #").next().unwrap_or_default().split_whitespace());
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

pub(crate) fn page_text(page: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/format", page].iter().collect();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn check(page: &str, heading: &str, bytes: &[u8]) {
    let hex = |bytes: &[u8]| {
        let line = |line: &[u8]| line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        bytes.chunks(16).map(line).collect::<Vec<_>>().join("\n")
    };
    let written = example(page, heading);
    assert_eq!(hex(&written), hex(bytes), "the example under {heading:?} in {page} should be the right side");
}

const TABLE: Entry<'_> = Entry::Table { id: 0, name: "telemetry" };
const TAG: Entry<'_> = Entry::Tag { table: 0, tag: 0, name: "device", physical: "device" };
const COLUMN: Entry<'_> =
    Entry::Column { table: 0, key: 0, field_type: FieldType::F64, name: "speed", physical: "speed" };
const TEXT_COLUMN: Entry<'_> = Entry::Column {
    table: 0,
    key: 0,
    field_type: FieldType::String,
    name: "speed",
    physical: "speed:string",
};
const SERIES: Entry<'_> = Entry::Series { id: 0, table: 0, tags: &[0, 4, b'v', b'a', b'n', b'1'] };

fn body() -> Vec<u8> {
    let mut body = Vec::new();
    row::put_field(&mut body, 0, ValueRef::F64(52.5));
    row::put_field(&mut body, 1, ValueRef::I64(-3));
    row::put_field(&mut body, 20, ValueRef::Bool(true));
    row::put_field(&mut body, 0, ValueRef::String("fast"));
    body
}

fn encoded(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    entries.iter().for_each(|entry| entry.put(&mut bytes));
    bytes
}

#[test]
fn entries() {
    let body = body();
    let row = Entry::Row { series: 0, ts: 1_700_000_000_000_000, body: &body };
    for (heading, entry) in [
        ("### Table", TABLE),
        ("### Column", TEXT_COLUMN),
        ("### Tag", TAG),
        ("### Series", SERIES),
        ("### Time to live", Entry::Ttl { table: 0, ttl_us: 30 * 86_400 * 1_000_000 }),
        ("### Dropped key", Entry::DroppedKey { table: 0, key: 3 }),
        (
            "### Deletion",
            Entry::Deletion { table: 0, ts: (0, 86_400_000_000), keys: &[1], series: &[0, 0, 6, 2] },
        ),
        ("### Dropped series", Entry::DroppedSeries { table: 0, series: &[7, 0] }),
        ("### Dropped table", Entry::DroppedTable { table: 3 }),
        ("### Time of retention", Entry::Retention { ts: 1_700_000_000_000_000 }),
        ("### Row", row),
    ] {
        check("README.md", heading, &encoded(&[entry]));
        let bytes = example("README.md", heading);
        assert_eq!(Entry::read(&mut Reader::new(&bytes)), Ok(entry));
    }
    let mut run = Vec::new();
    let (series, ts, values) = (&[300, 301], &[1_700_000_000_000_000; 2], &[52.5, -1.25]);
    put_run(&mut run, Numbers { key: 0, series, ts, values });
    check("README.md", "### Run", &run);
    let bytes = example("README.md", "### Run");
    let Ok(Entry::Run(run)) = Entry::read(&mut Reader::new(&bytes)) else {
        panic!("the example is a run");
    };
    assert_eq!(run.rows().collect::<Vec<_>>(), [(300, ts[0], 52.5), (301, ts[1], -1.25)]);

    check("README.md", "### Fields", &body);
    let bytes = example("README.md", "### Fields");
    let fields: Vec<_> = row::fields(&bytes).collect();
    assert_eq!(fields[1], (1, ValueRef::I64(-3)));
    assert_eq!(fields[3], (0, ValueRef::String("fast")));
}

#[test]
fn log() {
    check("log.md", "## Segment header", &segment_header(5));
    assert_eq!(check_segment(&example("log.md", "## Segment header"), 5), SegmentState::Valid);

    let mut body = Vec::new();
    row::put_field(&mut body, 0, ValueRef::F64(52.5));
    let row = Entry::Row { series: 0, ts: 1_700_000_000_000_000, body: &body };
    let mut bytes = vec![0; FRAME_HEADER_BYTES];
    bytes.extend(encoded(&[TABLE, TAG, SERIES, COLUMN, row]));
    let header =
        FrameHeader { kind: FrameKind::Commit, number: 2, rows: 1, first_sequence: 1, durable_before: 0 };
    seal_frame(&mut bytes, 5, &header);
    check("log.md", "## Frame", &bytes);
    check("log.md", "## Acknowledged rows", &note_of(26));
    let bytes = example("log.md", "## Frame");
    let frame = frame_at(&bytes, 0, 5).unwrap();
    assert_eq!((frame.header, frame.end), (header, bytes.len()));
    let mut reader = Reader::new(frame.payload);
    let found: Vec<_> = std::iter::from_fn(|| Entry::read(&mut reader).ok()).collect();
    assert_eq!(found, [TABLE, TAG, SERIES, COLUMN, row]);
}

#[test]
fn series() {
    let mut bytes = file_header(FileKind::Series).to_vec();
    put_record(&mut bytes, 1, &encoded(&[SERIES]));
    check("series.md", "## Example", &bytes);
    let bytes = example("series.md", "## Example");
    let records = read_records(Path::new("series"), FileKind::Series, &bytes).unwrap().records;
    let mut catalog = Catalog::default();
    catalog.apply(TABLE).unwrap();
    catalog.apply(TAG).unwrap();
    assert_eq!(catalog.apply(Entry::read(&mut Reader::new(records[0].2)).unwrap()), Ok(true));
    assert_eq!(catalog.find_series(&model::SeriesKey::device("telemetry", "van1").unwrap()), Some(0));
}

#[test]
fn manifest() {
    let part = PartInfo {
        id: 1,
        layout: PartLayout::Wide,
        tables: (0, 0),
        partition: (1_699_920_000_000_000, 1_700_006_400_000_000),
        rows: 1,
        bytes: 1_500,
        series: (0, 0),
        ts: (1_700_000_000_000_000, 1_700_000_000_000_000),
        sequence: (1, 1),
        applied: 1,
        points: 1,
        raw_bytes: 16,
        shares: Vec::new(),
        block_crcs: vec![0x1234_5678],
    };
    let edit = Edit {
        covered: Covered { frame: 3, sequence: 1, segment: 5 },
        series_bytes: 43,
        definitions: encoded(&[TABLE, TAG, COLUMN]),
        added: vec![part],
        dropped: Vec::new(),
        deletions: Vec::new(),
        ended: Vec::new(),
    };
    let mut bytes = file_header(FileKind::Manifest).to_vec();
    put_record(&mut bytes, 1, &edit.encode());
    put_record(&mut bytes, 2, &[]);
    check("manifest.md", "## Example", &bytes);
    let bytes = example("manifest.md", "## Example");
    let records = read_records(Path::new("manifest"), FileKind::Manifest, &bytes).unwrap().records;
    assert_eq!(records.iter().map(|record| record.1).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(Edit::read(records[0].2), Ok(edit));
}

/// part.md has the Parquet schema and the footer pairs of a part of the fixture.
#[test]
fn part() {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/v5/parts/0000000000000002.parquet");
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let metadata = reader.metadata().file_metadata();
    let mut schema = Vec::new();
    parquet::schema::printer::print_schema(&mut schema, metadata.schema());
    let mut expected = String::from_utf8(schema).unwrap();
    for pair in metadata.key_value_metadata().unwrap() {
        expected += &format!("{} = {}\n", pair.key, pair.value.as_deref().unwrap_or_default());
    }
    let text = page_text("part.md");
    let written = text.split("```text\n").nth(1).and_then(|block| block.split("```").next()).unwrap();
    assert_eq!(written, expected, "the example in part.md should be the right side:\n{expected}");
}
