//! Manifest and series file: a damaged one is refused by name, or it does no harm, or what is missing is reported.
//!
//! First byte: bit 0, which file; bit 1, whether the store was closed; bit 2, whether it continues after the recovery;
//! bit 3, whether the rest of the input is the file or a script of edits to it.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use fuzz::edits;
use fuzz::kept::{Files, goes_on, names, open, readable};
use libfuzzer_sys::fuzz_target;
use store::StoreError;
use testkit::FaultyDisk;

static KILLED: LazyLock<Files> = LazyLock::new(|| Files::write(4, false));
static CLOSED: LazyLock<Files> = LazyLock::new(|| Files::write(4, true));

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let files = if choice & 2 == 0 { &*KILLED } else { &*CLOSED };
    let path = files.paths(["/manifest", "/series"][usize::from(choice & 1)]).remove(0);
    let bytes = if choice & 8 == 0 { edits::apply(rest, files.content(&path)) } else { rest.to_vec() };
    let disk = files.disk_with(&path, &bytes);
    let (store, report) = match open(&disk) {
        Ok(opened) => opened,
        Err(refusal) => return refused(&disk, files, &path, &bytes, &refusal),
    };
    let found = readable(&store).expect("no part is damaged");
    let reported = !report.damages.is_empty() || !report.orphans.is_empty() || report.torn_tail.is_some();
    assert!(found.all() || reported, "missing and not reported: {found:?} {report:?}");
    if choice & 4 != 0 {
        goes_on(&disk, store, &found);
    }
});

/// A refusal leaves everything as it was, for the repair, and names the damaged file.
fn refused(disk: &FaultyDisk, files: &Files, damaged: &Path, bytes: &[u8], refusal: &StoreError) {
    for path in files.paths("") {
        let before = if path == damaged { bytes } else { files.content(&path) };
        assert!(disk.content(&path) == before, "{refusal}; changed: {path:?}");
    }
    assert!(names(refusal, damaged), "{refusal}");
}
