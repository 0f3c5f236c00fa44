//! The log: whatever a segment holds, the store opens, serves nothing that was not written, states what is missing, and
//! continues.
//!
//! First byte: bit 0, whether the store was closed; bit 1, which of its two segments; bit 2, whether it continues after
//! the recovery; bit 3, whether the rest of the input is the segment or a script of edits to it.

#![no_main]

use std::sync::LazyLock;

use fuzz::edits;
use fuzz::kept::{Files, ROWS, SEGMENT_BYTES, goes_on, names, open, readable};
use libfuzzer_sys::fuzz_target;

static KILLED: LazyLock<Files> = LazyLock::new(|| Files::write(ROWS, false));
static CLOSED: LazyLock<Files> = LazyLock::new(|| Files::write(ROWS, true));

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let files = if choice & 1 == 0 { &*KILLED } else { &*CLOSED };
    let segments = files.paths(".log");
    assert_eq!(segments.len(), 2);
    let path = &segments[usize::from(choice >> 1 & 1)];
    let written = files.content(path);
    let bytes = if choice & 8 == 0 { edits::apply(rest, written) } else { rest.to_vec() };
    let disk = files.disk_with(path, &bytes);
    let (store, report) = open(&disk).expect("damage to the log is not an error");
    let found = readable(&store).expect("no part is damaged");
    // The note of what was acknowledged finds rows missing at the end of the log, which is not a place in a segment.
    let log = path.parent().expect("a segment is in the directory of the log");
    let is_named = |damage| names(damage, path) || names(damage, log) || *path == segments[0];
    assert!(report.damages.iter().all(is_named), "{report:?}");
    let reported = !report.damages.is_empty() || report.torn_tail.is_some();
    // A file that ends between two frames is what a crash at that moment leaves.
    let excused = !report.clean_shutdown && (is_cut(&bytes, written) || bytes.len() as u64 >= SEGMENT_BYTES);
    assert!(found.all() || reported || excused, "missing and not reported: {found:?} {report:?}");
    if choice & 4 != 0 {
        goes_on(&disk, store, &found);
    }
});

/// Whether nothing but zeros follows after the beginning that two segments share, in the header and behind it.
fn is_cut(bytes: &[u8], written: &[u8]) -> bool {
    let header = |segment: &[u8]| segment[..segment.len().min(64)].to_vec();
    begins(&header(bytes), &header(written)) && begins(after_header(bytes), after_header(written))
}

fn begins(bytes: &[u8], written: &[u8]) -> bool {
    let same = bytes.iter().zip(written).take_while(|(one, other)| one == other).count();
    bytes[same..].iter().all(|byte| *byte == 0)
}

fn after_header(segment: &[u8]) -> &[u8] {
    segment.get(64..).unwrap_or_default()
}
