//! Tests of changed and lost bytes on the disk: the store reports them or they are harmless; it never serves them.

use std::path::Path;

use model::SeriesKey;
use store::{Durability, Maintenance, Reader, StoreError, Writer};
use store_local::{LocalStore, Options, RecoveryReport};
use testkit::{FaultyDisk, Survivors};

use crate::support::{files, keep, numbers, open, put, reached, tiny_manual};

const ROWS: i64 = 12;

/// A store whose last `in_log` rows are in the log and the others in parts, after the end of its process.
fn filled(in_log: i64, close: bool) -> FaultyDisk {
    ended(in_log, close).reboot(Survivors::Synced)
}

fn ended(in_log: i64, close: bool) -> FaultyDisk {
    let disk = FaultyDisk::new();
    // A slow machine must not write the record of a series before its first row: each record has one row.
    let options = Options { lazy_write_us: 3_600_000_000, ..tiny_manual() };
    let (store, _) = open(&disk, options).unwrap();
    for n in 0..ROWS {
        let device = ["a", "b"][(n % 2) as usize];
        let series = store.series(&SeriesKey::device("t", device).unwrap()).unwrap();
        keep(&store, series, n, n).unwrap();
        if n == ROWS - in_log - 1 {
            store.flush().unwrap();
        }
    }
    if close {
        store.close().unwrap();
    }
    drop(store);
    disk
}

/// The readable rows, each of which must be right, or the first error.
fn readable(store: &LocalStore) -> Result<Vec<i64>, StoreError> {
    let mut found = Vec::new();
    for (device, rest) in [("a", 0), ("b", 1)] {
        if let Some(series) = store.find_series(&SeriesKey::device("t", device).unwrap()) {
            for (ts, n) in numbers(store, series)? {
                assert!(ts == n && n % 2 == rest && n < ROWS, "wrong data: {device} {ts} {n}");
                found.push(n);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn all() -> Vec<i64> {
    (0..ROWS).collect()
}

fn names(error: &StoreError, file: &Path) -> bool {
    matches!(error, StoreError::Corrupt { path, .. } if path == file)
}

/// Opens a copy of the disk with other bytes in one file.
fn with(disk: &FaultyDisk, path: &Path, bytes: Vec<u8>) -> Result<(LocalStore, RecoveryReport), StoreError> {
    let copy = disk.reboot(Survivors::All);
    copy.set_content(path, bytes);
    open(&copy, tiny_manual())
}

#[test]
fn a_log_whose_end_was_cut_is_told_once_and_not_after_a_power_cut() {
    for close in [false, true] {
        let disk = ended(ROWS, close);
        let path = files(&disk, ".log").remove(0);
        let bytes = disk.content(&path);
        let frames: Vec<usize> =
            (64..bytes.len()).step_by(8).filter(|at| bytes[*at..].starts_with(b"TFRM")).collect();
        assert!(frames.len() >= ROWS as usize, "{}", frames.len());
        for cut in &frames[1..ROWS as usize] {
            let mut zeros = bytes[..*cut].to_vec();
            zeros.resize(bytes.len(), 0);
            for left in [bytes[..*cut].to_vec(), zeros] {
                let copy = disk.reboot(Survivors::All);
                copy.set_content(&path, left.clone());
                let (store, report) = open(&copy, tiny_manual()).unwrap();
                let found = readable(&store).unwrap();
                assert!(found.len() < ROWS as usize && found == all()[..found.len()], "{found:?}");
                let told: Vec<String> = report.damages.iter().map(ToString::to_string).collect();
                assert!(told.len() == 1 && told[0].contains("acknowledged are rows up to 12"), "{told:?}");
                drop(store);
                for survivors in [Survivors::Synced, Survivors::All] {
                    let (store, report) = open(&copy.reboot(survivors), tiny_manual()).unwrap();
                    assert!(report.damages.is_empty(), "{survivors:?}: {report:?}");
                    assert_eq!(readable(&store).unwrap(), found, "{survivors:?}");
                }
                // The note is not synced: after a power cut it is gone, and lost rows look as if they were never written.
                let without = disk.reboot(Survivors::Synced);
                without.set_content(&path, left);
                let (_, report) = open(&without, tiny_manual()).unwrap();
                assert!(report.damages.is_empty(), "{report:?}");
            }
        }
    }
}

#[test]
fn a_log_cut_at_every_byte_of_its_last_record_loses_that_record_only() {
    let disk = filled(ROWS, false);
    let path = files(&disk, ".log").remove(0);
    let bytes = disk.content(&path);
    // Frames are 8-byte aligned and each holds one row; the last one begins where its magic is.
    let last = bytes.windows(4).rposition(|window| window == b"TFRM").unwrap();
    let mut torn = 0;
    for len in last..bytes.len() {
        let (store, report) = with(&disk, &path, bytes[..len].to_vec()).unwrap();
        let found = readable(&store).unwrap();
        // The padding after the frame does not belong to it.
        let whole = found.len() as i64 == ROWS;
        assert!(
            whole && bytes.len() - len < 8 || found == all()[..ROWS as usize - 1],
            "cut at {len}: {found:?}"
        );
        assert!(report.damages.is_empty() && !report.clean_shutdown, "cut at {len}: {report:?}");
        if let Some(tail) = &report.torn_tail {
            assert_eq!((tail.path.as_path(), tail.offset), (path.as_path(), last as u64));
            torn += 1;
        }
        let series = store.series(&SeriesKey::device("t", "b").unwrap()).unwrap();
        keep(&store, series, ROWS - 1, ROWS - 1).unwrap();
        assert_eq!(readable(&store).unwrap(), all());
    }
    assert!(torn > 40, "a torn record is reported: {torn}");
}

#[test]
fn every_flipped_byte_of_a_log_is_found_or_harmless() {
    for close in [false, true] {
        let disk = filled(ROWS, close);
        let path = files(&disk, ".log").remove(0);
        let bytes = disk.content(&path);
        let mut damaged = 0;
        let frames: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"TFRM")).collect();
        let (first, first_two) = (frames[1], frames[2]);
        for position in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[position] ^= 1 << (position % 8);
            let (store, report) = match with(&disk, &path, flipped) {
                Ok(opened) => opened,
                Err(error) => panic!("byte {position}: {error}"),
            };
            let found = readable(&store).unwrap();
            assert!(report.damages.iter().all(|damage| names(damage, &path)), "byte {position}: {report:?}");
            // Without the mark of a closed store the last record may look like an unfinished write.
            let excused = !report.damages.is_empty() || !close && report.torn_tail.is_some();
            assert!(found == all() || excused, "byte {position}: {} rows, {report:?}", found.len());
            damaged += usize::from(!report.damages.is_empty());
            if close {
                // The first two records also define the series, and the first the column that all rows have.
                let one_lost = found.len() + 1 >= ROWS as usize;
                let series_lost = found.len() * 2 >= ROWS as usize && position < first_two;
                assert!(one_lost || series_lost || position < first, "byte {position}, {found:?}");
            }
        }
        assert!(damaged > bytes.len() / 2, "{damaged} of {}", bytes.len());
    }
}

#[test]
fn every_flipped_byte_of_a_part_is_found_and_other_parts_are_read() {
    let disk = filled(0, true);
    {
        let (store, _) = open(&disk, tiny_manual()).unwrap();
        let series = store.series(&SeriesKey::device("t", "c").unwrap()).unwrap();
        keep(&store, series, 5, 5).unwrap();
        store.flush().unwrap();
        store.close().unwrap();
    }
    let parts = files(&disk, ".parquet");
    assert_eq!(parts.len(), 2);
    let bytes = disk.content(&parts[0]);
    for position in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1 << (position % 8);
        let (store, report) = with(&disk, &parts[0], flipped).unwrap();
        assert!(report.damages.is_empty(), "parts are checked when they are read");
        let refused = readable(&store).unwrap_err();
        assert!(names(&refused, &parts[0]), "byte {position}: {refused}");
        let latest = store.latest(store.find_series(&SeriesKey::device("t", "a").unwrap()).unwrap(), None);
        assert!(latest.is_err_and(|error| names(&error, &parts[0])));
        let other = store.find_series(&SeriesKey::device("t", "c").unwrap()).unwrap();
        assert_eq!(numbers(&store, other).unwrap(), [(5, 5)]);
    }
    for len in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        let (store, report) = with(&disk, &parts[0], bytes[..len].to_vec()).unwrap();
        assert!(names(&report.damages[0], &parts[0]), "{report:?}");
        assert!(readable(&store).is_err());
    }
}

#[test]
fn every_flipped_byte_of_manifest_and_series_file_is_found_or_harmless() {
    let disk = filled(4, true);
    for name in ["manifest", "series"] {
        let path = files(&disk, name).remove(0);
        let bytes = disk.content(&path);
        let mut refused = 0;
        for position in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[position] ^= 1 << (position % 8);
            match with(&disk, &path, flipped) {
                Ok((store, _)) => assert_eq!(readable(&store).unwrap(), all(), "{name} byte {position}"),
                Err(error) => {
                    assert!(names(&error, &path), "{name} byte {position}: {error}");
                    refused += 1;
                }
            }
        }
        assert!(refused * 10 > bytes.len() * 8, "{name}: {refused} of {}", bytes.len());
    }
}

#[test]
fn a_missing_manifest_does_not_make_orphans_of_parts() {
    let disk = filled(4, true);
    let paths = disk.paths();
    let copy = FaultyDisk::new();
    for path in paths.iter().filter(|path| !path.ends_with("manifest")) {
        copy.put(path, disk.content(path));
    }
    let refused = open(&copy, tiny_manual()).err().unwrap();
    assert!(refused.to_string().contains("manifest"), "{refused}");
    assert_eq!(files(&copy, ".parquet").len(), files(&disk, ".parquet").len());
}

#[test]
fn rows_of_a_lost_segment_are_reported() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let series = store.series(&SeriesKey::device("t", "a").unwrap()).unwrap();
    for n in 0..200 {
        put(&store, series, n, n, Durability::Fsync).unwrap();
        // One commit per row, because with fewer commits the same rows may fill fewer segments.
        reached(&store, Durability::Fsync, n as u64 + 1);
    }
    store.close().unwrap();
    drop(store);
    let segments = files(&disk, ".log");
    assert!(segments.len() > 2);
    let (store, report) = with(&disk, &segments[1], Vec::new()).unwrap();
    assert_eq!(report.damages.len(), 1, "{report:?}");
    assert!(report.damages[0].to_string().contains("durable rows"), "{report:?}");
    let found = numbers(&store, store.find_series(&SeriesKey::device("t", "a").unwrap()).unwrap()).unwrap();
    assert!(found.len() < 200 && found.last() == Some(&(199, 199)), "later segments are applied");
}

/// A manifest without its end must not cause the removal of series file and parts, because an operator could still save
/// their rows by hand, unless the log has all of them.
#[test]
fn a_manifest_cut_anywhere_costs_no_row_that_only_a_part_holds() {
    let disk = filled(3, true);
    let manifest = files(&disk, "manifest").remove(0);
    let series = files(&disk, "series").remove(0);
    let content = disk.content(&manifest);
    let part = files(&disk, ".parquet").remove(0);
    for len in 0..content.len() {
        let copy = disk.reboot(Survivors::Synced);
        copy.set_content(&manifest, content[..len].to_vec());
        match open(&copy, tiny_manual()) {
            Err(error) => {
                assert!(names(&error, &manifest), "{len}: {error}");
                assert_eq!(copy.content(&series), disk.content(&series), "{len}");
                assert_eq!(copy.content(&part), disk.content(&part), "{len}");
            }
            Ok((store, report)) => {
                let aside = part.with_extension("parquet.kept");
                let there = [&part, &aside].into_iter().any(|path| copy.paths().contains(path));
                let complete = readable(&store).unwrap() == all();
                assert!(complete || there, "{len}: rows and part are gone: {report:?}");
            }
        }
    }
}

/// A refused open changes nothing: it cuts no file before manifest and series file are known to be good.
#[test]
fn a_refused_directory_is_left_as_it_was() {
    let disk = filled(4, true);
    let (manifest, series) = (files(&disk, "/manifest").remove(0), files(&disk, "/series").remove(0));
    let mut damaged = disk.content(&series);
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let torn = |content: &[u8]| [content, b"TREC and no more".as_slice()].concat();
    disk.set_content(&series, torn(&damaged));
    disk.set_content(&manifest, torn(&disk.content(&manifest)));
    let before = disk.paths().into_iter().map(|path| (path.clone(), disk.content(&path))).collect::<Vec<_>>();
    let refused = open(&disk, tiny_manual()).err().unwrap();
    assert!(names(&refused, &series), "{refused}");
    for (path, content) in before {
        assert_eq!(disk.content(&path), content, "{}", path.display());
    }

    damaged[last] ^= 1;
    disk.set_content(&series, torn(&damaged));
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    assert_eq!(readable(&store).unwrap(), all());
    assert_eq!(disk.content(&series), damaged, "the unfinished write is cut off");
}

#[test]
fn a_segment_of_bytes_that_nobody_wrote_is_reported() {
    let disk = filled(0, true);
    let written = files(&disk, ".log").remove(0);
    let header = disk.content(&written)[..64].to_vec();
    let next = written.with_file_name("00000000000000ff.log");
    let mut flipped = header.clone();
    flipped[13] ^= 1;
    for (content, reported) in [
        (b"garbage".to_vec(), true),
        (flipped, true),
        (vec![0xff; 4096], true),
        (vec![0; 40], false),
        (header[..12].to_vec(), false),
        (header, false),
        (Vec::new(), false),
    ] {
        let copy = disk.reboot(Survivors::All);
        copy.put(&next, content.clone());
        let (store, report) = open(&copy, tiny_manual()).unwrap();
        assert_eq!(
            report.damages.iter().any(|damage| names(damage, &next)),
            reported,
            "{content:?} {report:?}"
        );
        assert_eq!(report.damages.is_empty(), !reported, "{report:?}");
        assert_eq!(readable(&store).unwrap(), all());
    }
}
