//! Tests of `check`: it finds every damaged byte, names the affected rows, and changes no file.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{SeriesKey, Value};
use store::conformance::batch_of;
use store::{CheckReport, Durability, Maintenance, Severity, Writer};
use store_local::check;
use testkit::{FaultyDisk, Survivors};

use crate::support::{DIR, keep_in_the_end, open, reached, tiny, tiny_manual};

const DAY: i64 = 86_400_000_000;

/// Two tables over two days in parts, some rows in the log, after a kill.
fn filled() -> FaultyDisk {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    for n in 0..40_i64 {
        let key = SeriesKey::device(["t", "u"][(n % 2) as usize], &format!("device {}", n % 5)).unwrap();
        let series = store.series(&key).unwrap();
        let fields = [
            ("n", Value::I64(n)),
            ("text", Value::String(format!("text {n}"))),
            ("ok", Value::Bool(n % 3 == 0)),
            ("x", if n % 4 == 0 { Value::F64(0.5) } else { Value::Json("[1]".into()) }),
        ];
        let batch = batch_of(series, &[(n % 2 * DAY + n, &fields)]);
        let ticket = store.append(&batch, Durability::Fsync).unwrap();
        assert!(reached(&store, Durability::Fsync, ticket));
        if n == 15 || n == 30 {
            store.flush().unwrap();
        }
    }
    drop(store);
    disk.reboot(Survivors::Synced)
}

fn check_of(disk: &FaultyDisk) -> CheckReport {
    check(disk, Path::new(DIR), tiny_manual().segment_bytes, &mut |_, _| ControlFlow::Continue(())).unwrap()
}

fn files(disk: &FaultyDisk, part_of_name: &str) -> Vec<PathBuf> {
    disk.paths().into_iter().filter(|path| path.to_string_lossy().contains(part_of_name)).collect()
}

/// A copy of the disk with one changed byte in a file.
fn flipped(disk: &FaultyDisk, path: &Path, position: usize) -> FaultyDisk {
    let copy = disk.reboot(Survivors::All);
    let mut bytes = copy.content(path);
    bytes[position] ^= 0x20;
    copy.set_content(path, bytes);
    copy
}

#[test]
fn a_healthy_store_has_no_findings_and_is_not_changed() {
    let disk = filled();
    let before = (disk.operations(), disk.paths());
    let mut last = (0, 0);
    let report = check(&disk, Path::new(DIR), tiny_manual().segment_bytes, &mut |done, total| {
        assert!(done >= last.0 && done <= total, "{done} of {total}");
        last = (done, total);
        ControlFlow::Continue(())
    });
    let report = report.unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.part_rows, report.log_rows, report.tables), (31, 9, 2));
    assert_eq!((report.series, report.interrupted), (10, false));
    assert!(report.parts >= 4 && last.0 == last.1 && last.0 > 0, "{report:?} {last:?}");
    assert_eq!((disk.operations(), disk.paths()), before);
}

#[test]
fn every_flipped_byte_of_a_part_is_found_with_its_place_and_rows() {
    let disk = filled();
    for path in files(&disk, ".parquet").into_iter().take(2) {
        for position in 0..disk.content(&path).len() {
            let report = check_of(&flipped(&disk, &path, position));
            let [finding] = report.findings.as_slice() else {
                panic!("{} byte {position}: {:?}", path.display(), report.findings)
            };
            assert_eq!((finding.severity, &finding.path), (Severity::Damage, &path));
            assert_eq!(finding.offset, Some(0), "all of these parts are one block");
            assert!(matches!(finding.table.as_deref(), Some("t" | "u")));
            assert!(finding.rows.is_some_and(|rows| rows > 0) && finding.means.contains("acknowledged"));
            assert!(finding.action.contains("backup"), "{finding:?}");
        }
    }
}

#[test]
fn every_flipped_byte_of_manifest_and_series_is_found() {
    let disk = filled();
    for name in ["manifest", "series"] {
        let path = Path::new(DIR).join(name);
        let bytes = disk.content(&path);
        // A flip in the last record of a file may look like an unfinished write. Then the check reports a note.
        let last = bytes.windows(4).rposition(|window| window == b"TREC").unwrap();
        for position in 0..bytes.len() {
            let report = check_of(&flipped(&disk, &path, position));
            let worst = report.findings.iter().map(|finding| finding.severity).max();
            let allowed_note = name == "manifest" && position >= last;
            assert!(
                worst == Some(Severity::Damage) || allowed_note && worst == Some(Severity::Note),
                "{name} byte {position}: {:?}",
                report.findings
            );
            assert!(report.findings.iter().any(|finding| finding.path == path), "{:?}", report.findings);
        }
    }
}

#[test]
fn every_flipped_byte_of_the_log_is_damage_a_torn_end_or_padding() {
    let disk = filled();
    let segments = files(&disk, ".log");
    for (index, path) in segments.iter().enumerate() {
        let bytes = disk.content(path);
        let last = bytes.windows(4).rposition(|window| window == b"TFRM").unwrap();
        let is_last = index + 1 == segments.len();
        let mut found = 0;
        for position in 64..bytes.len() {
            let report = check_of(&flipped(&disk, path, position));
            match report.findings.iter().map(|finding| finding.severity).max() {
                Some(Severity::Damage) => found += 1,
                Some(Severity::Note) => assert!(is_last && position >= last, "byte {position}: {report:?}"),
                // Padding, or a frame whose rows are in parts.
                None => {
                    assert!(report.log_rows == 9, "byte {position}: rows are missing and nothing says so")
                }
            }
        }
        assert!(!is_last || found > 0, "damage in the middle of {} is damage", path.display());
    }
}

#[test]
fn a_missing_part_is_named_with_its_rows() {
    let disk = filled();
    for path in files(&disk, ".parquet") {
        let copy = disk.reboot(Survivors::All);
        store_local::Disk::remove(&copy, &path).unwrap();
        let report = check_of(&copy);
        let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
        assert_eq!((&finding.path, finding.what.as_str()), (&path, "the file is missing"));
        assert!(finding.rows.is_some() && finding.table.is_some());
        assert!(report.part_rows < 31);
    }
}

#[test]
fn a_part_of_another_length_is_named() {
    let disk = filled();
    let path = files(&disk, ".parquet").remove(0);
    for change in [-1_i64, 1] {
        let copy = disk.reboot(Survivors::All);
        let mut bytes = copy.content(&path);
        bytes.resize((bytes.len() as i64 + change) as usize, 7);
        copy.set_content(&path, bytes);
        let report = check_of(&copy);
        assert!(report.is_damaged() && report.findings[0].path == path, "{:?}", report.findings);
        assert!(report.findings[0].what.contains("bytes instead of"), "{:?}", report.findings);
    }
}

#[test]
fn leftovers_and_strangers_are_notes() {
    let disk = filled();
    let names =
        ["parts/00000000000000ff.parquet", "parts/x.tmp", "log/spare.tmp", "holiday.jpg", "manifest.tmp"];
    for name in names {
        disk.put(&Path::new(DIR).join(name), vec![1, 2, 3]);
    }
    let report = check_of(&disk);
    assert!(!report.is_damaged(), "{:?}", report.findings);
    let mut found: Vec<_> = report.findings.iter().map(|finding| finding.path.clone()).collect();
    let mut expected: Vec<_> = names.iter().map(|name| Path::new(DIR).join(name)).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_missing_manifest_or_series_file_is_named() {
    for name in ["manifest", "series"] {
        let disk = filled();
        let path = Path::new(DIR).join(name);
        store_local::Disk::remove(&disk, &path).unwrap();
        let report = check_of(&disk);
        assert!(report.is_damaged() && report.findings[0].path == path, "{:?}", report.findings);
    }
}

#[test]
fn an_open_store_and_a_missing_directory_are_refused() {
    let disk = filled();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let run = |dir: &str| check(&disk, Path::new(dir), 4096, &mut |_, _| ControlFlow::Continue(()));
    assert!(matches!(run(DIR), Err(store::StoreError::InUse { .. })));
    assert!(matches!(run("/elsewhere"), Err(store::StoreError::Io { .. })));
    drop(store);
}

#[test]
fn who_watches_can_end_it() {
    let disk = filled();
    let report = check(&disk, Path::new(DIR), 4096, &mut |_, _| ControlFlow::Break(())).unwrap();
    assert!(report.interrupted && report.part_rows == 0, "{report:?}");
}

#[test]
fn a_store_is_checked_while_it_takes_rows_and_flushes() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny()).unwrap();
    let store = Arc::new(store);
    let stop = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let (store, stop) = (store.clone(), stop.clone());
        move || {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) && n < 20_000 {
                let key = SeriesKey::device("t", &format!("d{}", n % 7)).unwrap();
                let series = store.series(&key).unwrap();
                keep_in_the_end(&store, series, n % 3 * DAY + n, n);
                n += 1;
            }
        }
    });
    let mut checks = 0;
    while checks < 20 || store.status().parts < 20 {
        let report = store.check(&mut |_, _| ControlFlow::Continue(())).unwrap();
        assert!(!report.is_damaged(), "{:?}", report.findings);
        checks += 1;
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    let report = store.check(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(report.part_rows > 0 && report.findings.is_empty(), "{:?}", report.findings);
    // All parts: some may be leftovers of merges.
    for path in files(&disk, ".parquet") {
        let mut bytes = disk.content(&path);
        // A part that is being written may still be empty.
        bytes.iter_mut().take(1).for_each(|byte| *byte ^= 1);
        disk.set_content(&path, bytes);
    }
    let report = store.check(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(report.is_damaged() && report.findings[0].what.contains("checksum"), "{:?}", report.findings);
}
