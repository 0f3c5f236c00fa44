//! Parts: a damaged one is refused by name when it is read, and takes nothing else with it.
//!
//! First byte: bit 0, which of two parts; bit 1, whether the rest of the input is the part or a script of edits to it.

#![no_main]

use std::sync::LazyLock;

use fuzz::edits;
use fuzz::kept::{Files, names, open, readable};
use libfuzzer_sys::fuzz_target;

static FILES: LazyLock<Files> = LazyLock::new(|| Files::write(4, true));

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let parts = FILES.paths(".parquet");
    assert_eq!(parts.len(), 2);
    let path = &parts[usize::from(choice & 1)];
    let written = FILES.content(path);
    let bytes = if choice & 2 == 0 { edits::apply(rest, written) } else { rest.to_vec() };
    let (store, report) = open(&FILES.disk_with(path, &bytes)).expect("a damaged part is not an error");
    let named = report.damages.len() == 1 && names(&report.damages[0], path);
    assert!(if bytes.len() == written.len() { report.damages.is_empty() } else { named }, "{report:?}");
    match readable(&store) {
        // Only what the checksums cover is served, so the bytes must be there; more may follow them.
        Ok(found) => assert!(found.all() && bytes.starts_with(written), "{found:?}"),
        Err(refusal) => assert!(names(&refusal, path) && bytes != written, "{refusal}"),
    }
});
