//! Tests of backups: a backup has every row that was acknowledged before, and no power cut makes an unfinished one look
//! complete.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use model::{SeriesKey, TimeRange, Value};
use store::backup::{BACKUP_LIST, BackupList, Digest, Extra, write_stream};
use store::conformance::batch_of;
use store::{Deletion, Durability, Maintenance, Reader, SeriesSet, StoreError, StoreFiles, Writer};
use store_local::backup::{
    BackupError, BackupReport, BackupTarget, RESTORE_MARKER, ReceiveOptions, RestoreOptions, RestoreReport,
    Restored, read_list as read_wanted_list, restore_directory, restore_stream, stopped_files, verify_stream,
};
use store_local::{LocalStore, check_unlocked};
use testkit::{FaultyDisk, Survivors};

use crate::support::{DIR, keep, keep_in_the_end, numbers, open, put, reached, tiny, tiny_manual};

const BACKUP: &str = "/backup";
const RESTORED: &str = "/restored";
const DEVICES: [&str; 3] = ["a", "b", "c"];

fn go_on(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Rows `from..to`, each acknowledged, with flushes in between.
fn fill(store: &LocalStore, rows: std::ops::Range<i64>) {
    for n in rows {
        let key = SeriesKey::device("t", DEVICES[(n % 3) as usize]).unwrap();
        let series = store.series(&key).unwrap();
        let fields = [("n", Value::I64(n)), ("x", Value::F64(n as f64 / 2.0))];
        let ticket = store.append(&batch_of(series, &[(n, &fields)]), Durability::Fsync).unwrap();
        assert!(reached(store, Durability::Fsync, ticket));
        if n % 10 == 9 {
            store.flush().unwrap();
        }
    }
}

fn rows_of(store: &LocalStore) -> BTreeMap<i64, i64> {
    let mut rows = BTreeMap::new();
    for device in DEVICES {
        if let Some(series) = store.find_series(&SeriesKey::device("t", device).unwrap()) {
            rows.extend(numbers(store, series).unwrap());
        }
    }
    rows
}

fn stream_of(files: &dyn StoreFiles, have: &BackupList) -> Vec<u8> {
    stream_with(files, have, &[])
}

fn extra(path: &str, content: &'static [u8]) -> Extra {
    Extra { path: path.to_owned(), bytes: content.len() as u64, content: Box::new(content), known: None }
}

/// A stream that also has these files of the key-value engine. Tables that the receiver has are not sent.
fn stream_with(files: &dyn StoreFiles, have: &BackupList, keys: &[(&str, &'static [u8])]) -> Vec<u8> {
    let mut extras = vec![extra("registry", b"admin")];
    for (path, content) in keys {
        let known = have.find(path).filter(|known| known.sha256 == Digest::of(content)).cloned();
        extras.push(Extra { known, ..extra(path, content) });
    }
    let mut stream = Vec::new();
    write_stream(files, extras, have, 7_000_000, &mut stream).unwrap();
    stream
}

fn back_up(
    files: &dyn StoreFiles,
    target: &FaultyDisk,
    dir: &str,
    base: Option<&str>,
) -> Result<BackupReport, BackupError> {
    let target = BackupTarget::open(target, Path::new(dir), base.map(Path::new))?;
    let stream = stream_of(files, &target.have());
    target.receive(&mut stream.as_slice(), ReceiveOptions::default(), stream.len() as u64, &mut go_on)
}

const OPTIONS: RestoreOptions<'static> =
    RestoreOptions { beside: &["registry"], required: &["registry"], digest: None };

fn restore(from: &FaultyDisk, backup: &str, to: &FaultyDisk) -> Result<RestoreReport, BackupError> {
    restore_directory(from, Path::new(backup), to, Path::new(RESTORED), OPTIONS, &mut go_on)?.finish()
}

fn restore_tar(
    bytes: &[u8],
    options: RestoreOptions<'_>,
    to: &FaultyDisk,
) -> Result<RestoreReport, BackupError> {
    let name = (Path::new("a.tar"), bytes.len() as u64);
    restore_stream(&mut &*bytes, name, to, Path::new(RESTORED), options, &mut go_on)?.finish()
}

fn read_list(disk: &FaultyDisk, dir: &Path) -> Result<BackupList, BackupError> {
    read_wanted_list(disk, dir, None)
}

/// Opens a restored directory.
fn reopen(disk: &FaultyDisk) -> LocalStore {
    let dir = Path::new(RESTORED).join("store");
    let (store, report) = LocalStore::open(Arc::new(disk.clone()), &dir, tiny_manual()).unwrap();
    assert!(
        report.damages.is_empty() && report.torn_tail.is_none() && report.orphans.is_empty(),
        "{report:?}"
    );
    store
}

fn restored_rows(from: &FaultyDisk, backup: &str) -> BTreeMap<i64, i64> {
    let disk = FaultyDisk::new();
    restore(from, backup, &disk).unwrap();
    assert_eq!(disk.content(&Path::new(RESTORED).join("registry")), b"admin");
    rows_of(&reopen(&disk))
}

fn all(rows: std::ops::Range<i64>) -> BTreeMap<i64, i64> {
    rows.map(|n| (n, n)).collect()
}

fn stopped(disk: &FaultyDisk) -> Box<dyn StoreFiles> {
    let (files, damages) = stopped_files(Arc::new(disk.clone()), Path::new(DIR), 4096).unwrap();
    assert_eq!(damages, []);
    files
}

/// A store with rows 0..35 in parts and in the log, after a kill.
fn killed() -> FaultyDisk {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    fill(&store, 0..35);
    drop(store);
    disk.reboot(Survivors::Synced)
}

#[test]
fn a_stopped_store_comes_back_with_its_log_and_is_not_touched() {
    let (disk, target) = (killed(), FaultyDisk::new());
    let before = (disk.operations(), disk.paths());
    let report = back_up(stopped(&disk).as_ref(), &target, BACKUP, None).unwrap();
    assert_eq!((disk.operations(), disk.paths()), before);
    assert_eq!((report.rows, report.parts, report.kept_bytes), (30, 3, 0));
    assert_eq!(restored_rows(&target, BACKUP), all(0..35));
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let taken = stopped_files(Arc::new(disk.clone()), Path::new(DIR), 4096);
    assert!(matches!(taken, Err(StoreError::InUse { .. })));
    drop(store);
}

#[test]
fn a_serving_store_is_saved_with_every_row_acknowledged_before() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny()).unwrap();
    let store = Arc::new(store);
    let (stop, acked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(-1)));
    let writer = std::thread::spawn({
        let (store, stop, acked) = (store.clone(), stop.clone(), acked.clone());
        move || {
            let mut n = 0;
            while !stop.load(Ordering::SeqCst) && n < 100_000 {
                let key = SeriesKey::device("t", DEVICES[(n % 3) as usize]).unwrap();
                let series = store.series(&key).unwrap();
                keep_in_the_end(&store, series, n, n);
                acked.store(n, Ordering::SeqCst);
                n += 1;
            }
            n
        }
    });
    let target = FaultyDisk::new();
    let mut kept = 0;
    for round in 0..5 {
        while acked.load(Ordering::SeqCst) < round * 200 {
            std::thread::yield_now();
        }
        let before = acked.load(Ordering::SeqCst);
        let files = store.files().unwrap();
        let report = back_up(files.as_ref(), &target, BACKUP, None).unwrap();
        kept += report.kept_bytes;
        drop(files);
        let rows = restored_rows(&target, BACKUP);
        assert!((0..=before).all(|n| rows.get(&n) == Some(&n)), "round {round}: an acked row is missing");
        let sent = acked.load(Ordering::SeqCst) + 1;
        assert!(rows.iter().all(|(ts, n)| ts == n && *n <= sent), "round {round}: a row was invented");
    }
    stop.store(true, Ordering::SeqCst);
    writer.join().unwrap();
    assert!(kept > 0, "later backups keep the parts of earlier ones");
}

#[test]
fn a_second_backup_brings_only_what_is_new() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    fill(&store, 0..40);
    let target = FaultyDisk::new();
    let first = back_up(store.files().unwrap().as_ref(), &target, BACKUP, None).unwrap();
    fill(&store, 40..60);
    let second = back_up(store.files().unwrap().as_ref(), &target, BACKUP, None).unwrap();
    assert_eq!((first.kept_bytes, second.parts), (0, 6));
    let part_bytes = |list: &BackupList| {
        list.files.iter().filter(|file| file.path.ends_with(".parquet")).map(|file| file.bytes).sum::<u64>()
    };
    assert!(
        second.kept_bytes > 0
            && second.kept_bytes < part_bytes(&read_list(&target, Path::new(BACKUP)).unwrap())
    );
    assert_eq!(restored_rows(&target, BACKUP), all(0..60));
    // Into another directory, with the first one as its base: parts are linked, and outlive the base.
    fill(&store, 60..70);
    let third = back_up(store.files().unwrap().as_ref(), &target, "/other", Some(BACKUP)).unwrap();
    assert!(third.kept_bytes >= second.kept_bytes, "{third:?}");
    for path in target.paths().into_iter().filter(|path| path.starts_with(BACKUP)) {
        store_local::Disk::remove(&target, &path).unwrap();
    }
    assert_eq!(restored_rows(&target, "/other"), all(0..70));
    let listed = read_list(&target, Path::new("/other")).unwrap().files.len();
    assert_eq!(target.paths().len(), listed + 1, "nothing lies about: {:?}", target.paths());
}

/// Tables of the key-value engine are kept like parts, if they have the same bytes. Its other files come each time.
#[test]
fn a_second_backup_keeps_the_tables_of_the_keys() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    fill(&store, 0..10);
    let files = store.files().unwrap();
    let target = FaultyDisk::new();
    let back_up = |dir: &str, base: Option<&str>, keys: &[(&str, &'static [u8])]| {
        let place = BackupTarget::open(&target, Path::new(dir), base.map(Path::new)).unwrap();
        let stream = stream_with(files.as_ref(), &place.have(), keys);
        place.receive(&mut stream.as_slice(), ReceiveOptions::default(), stream.len() as u64, &mut go_on)
    };
    let restored = |dir: &str, keys: &[(&str, &'static [u8])]| {
        let disk = FaultyDisk::new();
        restore(&target, dir, &disk).unwrap();
        for (path, content) in keys {
            assert_eq!(disk.content(&Path::new(RESTORED).join(path)), *content, "{path}");
        }
        let names =
            disk.paths().into_iter().filter(|path| path.starts_with(Path::new(RESTORED).join("keys")));
        assert_eq!(names.count(), keys.len());
    };
    const ONE: (&str, &[u8]) = ("keys/keyspaces/1/tables/1", &[1; 1_000]);
    const TWO: (&str, &[u8]) = ("keys/keyspaces/1/tables/2", &[2; 2_000]);
    // Another opening of the engine has given the name to another table of the same length.
    const ONE_CHANGED: (&str, &[u8]) = ("keys/keyspaces/1/tables/1", &[3; 1_000]);
    let first = [ONE, TWO, ("keys/0.jnl", b"journal"), ("keys/lock", b"")];
    let report = back_up(BACKUP, None, &first).unwrap();
    assert_eq!(report.kept_bytes, 0);
    restored(BACKUP, &first);
    let second = [ONE_CHANGED, TWO, ("keys/0.jnl", b"another"), ("keys/lock", b"")];
    let part_bytes = disk_bytes_of_parts(&target);
    assert_eq!(back_up(BACKUP, None, &second).unwrap().kept_bytes, part_bytes + 2_000);
    restored(BACKUP, &second);
    // Into another directory the table is linked. It outlives the base.
    assert_eq!(back_up("/other", Some(BACKUP), &second).unwrap().kept_bytes, part_bytes + 3_000);
    for path in target.paths().into_iter().filter(|path| path.starts_with(BACKUP)) {
        store_local::Disk::remove(&target, &path).unwrap();
    }
    restored("/other", &second);
    // A sender that leaves out a table that nobody has.
    let mut have = BackupList::default();
    have.files.push(store::backup::BackupFile {
        path: ONE.0.to_owned(),
        stored: ONE.0.to_owned(),
        bytes: 1_000,
        crc: 0,
        sha256: Digest::of(ONE.1),
    });
    let stream = stream_with(files.as_ref(), &have, &[ONE]);
    let place = BackupTarget::open(&target, Path::new("/third"), None).unwrap();
    let refused =
        place.receive(&mut stream.as_slice(), ReceiveOptions::default(), 0, &mut go_on).unwrap_err();
    assert!(refused.to_string().contains("did not come"), "{refused}");
}

fn disk_bytes_of_parts(target: &FaultyDisk) -> u64 {
    let list = read_list(target, Path::new(BACKUP)).unwrap();
    list.files.iter().filter(|file| file.path.ends_with(".parquet")).map(|file| file.bytes).sum()
}

/// A file that ends early must not be in a backup.
#[test]
fn a_stream_ends_with_an_error_if_a_file_of_the_installation_ends_early() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    let short = Extra { bytes: 9, ..extra("registry", b"admin") };
    let files = store.files().unwrap();
    let error =
        write_stream(files.as_ref(), vec![short], &BackupList::default(), 0, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("registry: it ends 4 bytes too early"), "{error}");
}

/// Cuts the power at every operation of a second backup into a directory.
#[test]
fn a_power_cut_leaves_the_last_finished_backup_or_the_new_one() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    fill(&store, 0..20);
    let first = store.files().unwrap();
    let prepared = || {
        let target = FaultyDisk::new();
        back_up(first.as_ref(), &target, BACKUP, None).unwrap();
        target.reboot(Survivors::Synced)
    };
    fill(&store, 20..40);
    let second = store.files().unwrap();
    let target = prepared();
    back_up(second.as_ref(), &target, BACKUP, None).unwrap();
    let operations = target.operations();
    assert!(operations > 20, "{operations}");
    let mut outcomes = [0, 0];
    for operation in 0..operations {
        let target = prepared();
        target.cut_power_at(operation);
        let done = back_up(second.as_ref(), &target, BACKUP, None).is_ok();
        for survivors in [
            Survivors::Synced,
            Survivors::All,
            Survivors::Random(operation),
            Survivors::Random(operation + 9_999),
        ] {
            let when = format!("cut at {operation} of {operations}, {survivors:?}");
            let target = target.reboot(survivors);
            let rows = restored_rows(&target, BACKUP);
            let new = rows.len() == 40;
            assert!(rows == all(0..20) && !done || rows == all(0..40), "{when}: {rows:?}");
            outcomes[usize::from(new)] += 1;
            back_up(second.as_ref(), &target, BACKUP, None).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert_eq!(restored_rows(&target, BACKUP), all(0..40), "{when}, then again");
        }
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "{outcomes:?}");
}

#[test]
fn a_first_backup_that_a_power_cut_ends_is_recognised_and_can_be_made_again() {
    let disk = killed();
    let files = stopped(&disk);
    let target = FaultyDisk::new();
    back_up(files.as_ref(), &target, BACKUP, None).unwrap();
    for operation in 0..target.operations() {
        let target = FaultyDisk::new();
        target.cut_power_at(operation);
        let done = back_up(files.as_ref(), &target, BACKUP, None).is_ok();
        for survivors in [Survivors::Synced, Survivors::All, Survivors::Random(operation)] {
            let when = format!("cut at {operation}, {survivors:?}");
            let target = target.reboot(survivors);
            match restore(&target, BACKUP, &FaultyDisk::new()) {
                Ok(_) => assert_eq!(restored_rows(&target, BACKUP), all(0..35), "{when}"),
                Err(BackupError::NotABackup { .. }) => assert!(!done, "{when}"),
                Err(other) => panic!("{when}: {other}"),
            }
            back_up(files.as_ref(), &target, BACKUP, None).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert_eq!(restored_rows(&target, BACKUP), all(0..35), "{when}, then again");
        }
    }
}

#[test]
fn a_power_cut_of_the_source_ends_in_an_error_or_in_a_whole_backup() {
    let acked = Cell::new(0);
    let workload = |disk: &FaultyDisk| -> Option<BTreeMap<i64, i64>> {
        acked.set(0);
        let (store, _) = open(disk, tiny_manual()).ok()?;
        let series = store.series(&SeriesKey::device("t", "a").unwrap()).ok()?;
        for n in 0..4 {
            keep(&store, series, n, n)?;
            acked.set(n + 1);
        }
        put(&store, series, 4, 4, Durability::Memory).ok()?;
        let target = FaultyDisk::new();
        let files = store.files().ok()?;
        back_up(files.as_ref(), &target, BACKUP, None).ok()?;
        Some(restored_rows(&target, BACKUP))
    };
    let disk = FaultyDisk::new();
    assert_eq!(workload(&disk), Some(all(0..5)));
    for operation in 0..disk.operations() {
        let disk = FaultyDisk::new();
        disk.cut_power_at(operation);
        let rows = workload(&disk);
        assert!(rows.is_none() || rows == Some(all(0..5)), "cut at {operation}: {rows:?}");
        // The store itself is as after any power cut, whatever step the backup was at.
        for survivors in [Survivors::Synced, Survivors::All, Survivors::Random(operation)] {
            let (store, _) = open(&disk.reboot(survivors), tiny_manual()).unwrap();
            let (kept, acked) = (rows_of(&store), acked.get());
            let when = format!("cut at {operation}, {survivors:?}");
            assert!(all(0..acked).iter().all(|(n, value)| kept.get(n) == Some(value)), "{when}: {kept:?}");
            assert!(kept.len() <= 5 && kept.iter().all(|(n, value)| n == value), "{when}: {kept:?}");
        }
    }
}

#[test]
fn a_power_cut_during_a_restore_leaves_a_mark_or_a_whole_store() {
    let source = FaultyDisk::new();
    back_up(stopped(&killed()).as_ref(), &source, BACKUP, None).unwrap();
    let target = FaultyDisk::new();
    restore(&source, BACKUP, &target).unwrap();
    let marker = Path::new(RESTORED).join(RESTORE_MARKER);
    for operation in 0..target.operations() {
        let target = FaultyDisk::new();
        target.cut_power_at(operation);
        let done = restore(&source, BACKUP, &target).is_ok();
        for survivors in [Survivors::Synced, Survivors::All, Survivors::Random(operation)] {
            let target = target.reboot(survivors);
            let when = format!("cut at {operation}, {survivors:?}");
            if target.paths().contains(&marker) {
                assert!(!done, "{when}");
                let again = restore(&source, BACKUP, &target);
                assert!(matches!(again, Err(BackupError::Refused { .. })), "{when}: {again:?}");
            } else if target.paths().is_empty() {
                assert!(!done, "{when}");
            } else {
                assert_eq!(rows_of(&reopen(&target)), all(0..35), "{when}");
            }
        }
    }
}

#[test]
fn a_full_disk_is_told_and_leaves_the_last_backup() {
    let disk = FaultyDisk::new();
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    fill(&store, 0..20);
    let target = FaultyDisk::new();
    back_up(store.files().unwrap().as_ref(), &target, BACKUP, None).unwrap();
    fill(&store, 20..40);
    let used = target.used_bytes();
    for room in [0, 100, 3_000] {
        target.set_capacity(Some(used + room));
        let error = back_up(store.files().unwrap().as_ref(), &target, BACKUP, None).unwrap_err();
        let full = matches!(&error, BackupError::Store(StoreError::Io { source, .. }) if source.kind() == ErrorKind::StorageFull);
        assert!(full && error.to_string().contains(BACKUP), "{error}");
        assert_eq!(restored_rows(&target, BACKUP), all(0..20));
    }
    target.set_capacity(None);
    back_up(store.files().unwrap().as_ref(), &target, BACKUP, None).unwrap();
    assert_eq!(restored_rows(&target, BACKUP), all(0..40));
}

#[test]
fn a_damaged_or_missing_part_is_refused_by_name_or_left_out() {
    let disk = killed();
    let parts: Vec<PathBuf> =
        disk.paths().into_iter().filter(|path| path.to_string_lossy().ends_with(".parquet")).collect();
    for missing in [false, true] {
        let copy = disk.reboot(Survivors::All);
        match missing {
            true => store_local::Disk::remove(&copy, &parts[1]).unwrap(),
            false => {
                let mut bytes = copy.content(&parts[1]);
                bytes[100] ^= 1;
                copy.set_content(&parts[1], bytes);
            }
        }
        let (files, _) = stopped_files(Arc::new(copy), Path::new(DIR), 4096).unwrap();
        let target = FaultyDisk::new();
        let error = back_up(files.as_ref(), &target, BACKUP, None).unwrap_err();
        let name = parts[1].file_name().unwrap().to_str().unwrap();
        assert!(matches!(&error, BackupError::Damaged(_)) && error.to_string().contains(name), "{error}");
        assert!(read_list(&target, Path::new(BACKUP)).is_err(), "it was not finished");
        let stream = stream_of(files.as_ref(), &BackupList::default());
        let taken = BackupTarget::open(&target, Path::new(BACKUP), None).unwrap();
        let options = ReceiveOptions { leave_out_damaged: true };
        let report = taken.receive(&mut stream.as_slice(), options, 0, &mut go_on).unwrap();
        assert_eq!((report.parts, report.rows, report.left_out.len()), (2, 20, 1));
        let list = read_list(&target, Path::new(BACKUP)).unwrap();
        assert!(list.left_out[0].contains(name), "{list:?}");
        let mut expected = all(0..35);
        expected.retain(|n, _| !(10..20).contains(n));
        assert_eq!(restored_rows(&target, BACKUP), expected);
    }
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let source = FaultyDisk::new();
    back_up(stopped(&killed()).as_ref(), &source, BACKUP, None).unwrap();
    for path in source.paths() {
        let bytes = source.content(&path);
        for position in [0, bytes.len() / 2, bytes.len() - 1] {
            let copy = source.reboot(Survivors::All);
            let mut flipped = bytes.clone();
            flipped[position] ^= 4;
            copy.set_content(&path, flipped);
            let target = FaultyDisk::new();
            let error = restore(&copy, BACKUP, &target).unwrap_err();
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
            let begun = target.paths().iter().any(|path| path.ends_with("store/manifest"));
            assert!(!begun || target.paths().iter().any(|path| path.ends_with(RESTORE_MARKER)));
        }
    }
}

#[test]
fn a_tar_file_is_restored_and_a_cut_one_is_not() {
    let disk = killed();
    let stream = stream_of(stopped(&disk).as_ref(), &BackupList::default());
    let run = |bytes: &[u8], disk: &FaultyDisk| restore_tar(bytes, OPTIONS, disk);
    let target = FaultyDisk::new();
    let report = run(&stream, &target).unwrap();
    assert_eq!((report.list.created_us, report.check.part_rows, report.check.log_rows), (7_000_000, 30, 5));
    assert_eq!(rows_of(&reopen(&target)), all(0..35));
    let list =
        stream.windows(BACKUP_LIST.len()).rposition(|window| window == BACKUP_LIST.as_bytes()).unwrap();
    for len in [0, 100, 512, 4_000, stream.len() / 2, list, list + 600] {
        let target = FaultyDisk::new();
        assert!(run(&stream[..len], &target).is_err(), "{len}");
        assert!(verify_stream(&mut &stream[..len], 0, &mut go_on).is_err(), "{len}");
        assert!(!target.paths().iter().any(|path| path.ends_with("store/manifest")), "{len}");
    }
    for position in (600..list).step_by(997) {
        let mut flipped = stream.clone();
        flipped[position] ^= 8;
        let target = FaultyDisk::new();
        // Bytes between the end of a file and the next header have no meaning.
        if run(&flipped, &target).is_ok() {
            assert_eq!(rows_of(&reopen(&target)), all(0..35), "{position}");
        }
    }
}

#[test]
fn strangers_are_refused() {
    let disk = killed();
    let files = stopped(&disk);
    let target = FaultyDisk::new();
    store_local::Disk::create_dir(&target, Path::new(BACKUP)).unwrap();
    target.put(&Path::new(BACKUP).join("thesis.tex"), vec![1]);
    let error = back_up(files.as_ref(), &target, BACKUP, None).unwrap_err();
    assert!(matches!(error, BackupError::Refused { .. }) && target.paths().len() == 1);
    let source = FaultyDisk::new();
    back_up(files.as_ref(), &source, BACKUP, None).unwrap();
    let report = check_unlocked(&source, &Path::new(BACKUP).join("store"), u64::MAX, &mut go_on).unwrap();
    assert!(!report.is_damaged() && report.part_rows == 30, "{report:?}");
    store_local::Disk::create_dir(&target, Path::new(RESTORED)).unwrap();
    target.put(&Path::new(RESTORED).join("x"), vec![1]);
    assert!(matches!(restore(&source, BACKUP, &target), Err(BackupError::Refused { .. })));
}

/// A disk with the directory of `testdata`.
fn fixture() -> FaultyDisk {
    let disk = FaultyDisk::new();
    copy_to(&disk, &Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/v5"), Path::new(DIR));
    disk
}

/// A directory that an earlier build wrote, before its first open.
#[test]
fn a_directory_of_an_earlier_build_is_saved_whole_and_without_a_damaged_part() {
    let disk = fixture();
    let target = FaultyDisk::new();
    let files = stopped_files(Arc::new(disk.clone()), Path::new(DIR), 64 << 20).unwrap().0;
    let whole = back_up(files.as_ref(), &target, BACKUP, None).unwrap();
    drop(files);
    let restored = FaultyDisk::new();
    restore(&target, BACKUP, &restored).unwrap();
    let rows = |store: &LocalStore| store.tables().unwrap().iter().map(|table| table.rows).sum::<u64>();
    let of_restored = rows(&reopen(&restored));
    let (store, _) = open(&fixture(), tiny_manual()).unwrap();
    assert_eq!(of_restored, rows(&store));
    assert!(whole.rows > 0 && of_restored >= whole.rows, "{whole:?}");
    drop(store);

    let part = Path::new(DIR).join("parts/0000000000000002.parquet");
    let mut bytes = disk.content(&part);
    bytes[100] ^= 1;
    disk.set_content(&part, bytes);
    let files = stopped_files(Arc::new(disk), Path::new(DIR), 64 << 20).unwrap().0;
    let stream = stream_of(files.as_ref(), &BackupList::default());
    // The earlier backup has the part intact.
    for (target, lost) in [(FaultyDisk::new(), 1), (target, 0)] {
        let taken = BackupTarget::open(&target, Path::new(BACKUP), None).unwrap();
        let options = ReceiveOptions { leave_out_damaged: true };
        let report = taken.receive(&mut stream.as_slice(), options, 0, &mut go_on).unwrap();
        assert_eq!((report.parts, report.left_out.len()), (whole.parts - lost, lost as usize));
        let restored = FaultyDisk::new();
        restore(&target, BACKUP, &restored).unwrap();
        assert_eq!(rows(&reopen(&restored)), of_restored - (whole.rows - report.rows));
    }
}

/// The backup that an earlier build made of the directory of `testdata`.
#[test]
fn a_backup_of_an_earlier_build_is_restored() {
    let source = earlier_backup();
    let listed = read_list(&source, Path::new(BACKUP)).unwrap();
    assert!(listed.files.len() >= 3, "{listed:?}");
    let restored = FaultyDisk::new();
    let report = restore(&source, BACKUP, &restored).unwrap();
    assert_eq!(report.files, listed.files.len() as u64, "{report:?}");
    assert_eq!(restored.content(&Path::new(RESTORED).join("registry")), b"a registry");
    let store = reopen(&restored);
    crate::fixtures::check_numbers(&store, "restored");
    let tables = |store: &LocalStore| -> Vec<_> {
        store.tables().unwrap().into_iter().map(|table| (table.table, table.series)).collect()
    };
    let (of_directory, _) = open(&fixture(), tiny_manual()).unwrap();
    assert_eq!(tables(&store), tables(&of_directory));
}

fn earlier_backup() -> FaultyDisk {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/backup-v2");
    let source = FaultyDisk::new();
    copy_to(&source, &from, Path::new(BACKUP));
    source
}

/// The digest of a list is the one that other programs compute (`sha256sum`).
#[test]
fn a_digest_that_was_asked_for_is_that_of_the_list() {
    let of_list: Digest = "ee71a44f5e3ff22bb174e3d42346c9f006f9eb79dbd00df011fdb363dc95bcf3".parse().unwrap();
    let with = |digest| {
        let options = RestoreOptions { digest: Some(digest), ..OPTIONS };
        let (source, target) = (earlier_backup(), FaultyDisk::new());
        let restored =
            restore_directory(&source, Path::new(BACKUP), &target, Path::new(RESTORED), options, &mut go_on);
        let report = restored.and_then(Restored::finish)?;
        assert_eq!(report.digest, digest);
        Ok::<_, BackupError>(())
    };
    with(of_list).unwrap();
    assert!(matches!(with(Digest::of(b"another list")), Err(BackupError::AnotherBackup { .. })));
}

/// The mark stays until the caller has checked the other files.
#[test]
fn a_restored_directory_is_marked_until_it_is_finished() {
    let (source, target) = (earlier_backup(), FaultyDisk::new());
    let restored =
        restore_directory(&source, Path::new(BACKUP), &target, Path::new(RESTORED), OPTIONS, &mut go_on);
    let restored = restored.unwrap();
    let is_marked = || target.paths().contains(&Path::new(RESTORED).join(RESTORE_MARKER));
    assert!(is_marked());
    restored.finish().unwrap();
    assert!(!is_marked());
    // An unknown file, and a required one.
    let nothing = RestoreOptions { beside: &[], ..OPTIONS };
    let more = RestoreOptions { required: &["registry", "registry.sqlite"], ..OPTIONS };
    for (options, reason) in [(nothing, "\"registry\""), (more, "does not name registry.sqlite")] {
        let target = FaultyDisk::new();
        let refused =
            restore_directory(&source, Path::new(BACKUP), &target, Path::new(RESTORED), options, &mut go_on);
        let refused = refused.map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(reason) && target.paths().is_empty(), "{refused}: {:?}", target.paths());
    }
}

fn copy_to(disk: &FaultyDisk, from: &Path, to: &Path) {
    store_local::Disk::create_dir(disk, to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_to(disk, &entry.path(), &to);
        } else {
            disk.put(&to, std::fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn a_backup_has_the_deletions_that_were_acknowledged_before() {
    let (disk, target) = (FaultyDisk::new(), FaultyDisk::new());
    let (store, _) = open(&disk, tiny_manual()).unwrap();
    fill(&store, 0..20);
    let device = |name: &str| store.find_series(&SeriesKey::device("t", name).unwrap()).unwrap();
    let deletion = Deletion::of_series(device("a"), TimeRange::ALL).unwrap();
    store.delete_rows(&deletion, Durability::Fsync).unwrap();
    let ticket =
        store.delete_series(&SeriesSet::from_iter([device("b").0 as u32]), Durability::Fsync).unwrap();
    assert!(reached(&store, Durability::Fsync, ticket));
    let expected = rows_of(&store);
    assert!(expected.keys().all(|n| n % 3 == 2) && expected.len() == 6, "{expected:?}");
    back_up(store.files().unwrap().as_ref(), &target, BACKUP, None).unwrap();
    let restored = FaultyDisk::new();
    restore(&target, BACKUP, &restored).unwrap();
    let dir = Path::new(RESTORED).join("store");
    let report = check_unlocked(&restored, &dir, u64::MAX, &mut go_on).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let again = reopen(&restored);
    assert_eq!(rows_of(&again), expected);
    assert_eq!(again.find_series(&SeriesKey::device("t", "b").unwrap()), None);
}
