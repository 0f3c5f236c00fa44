use super::*;

const DIR: &str = "/d";

fn disk() -> FaultyDisk {
    let disk = FaultyDisk::new();
    disk.create_dir(Path::new(DIR)).expect("a healthy disk makes directories");
    disk
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn write(disk: &FaultyDisk, name: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    let file = disk.open(&path(name), OpenMode::Create).expect("a healthy disk creates files");
    file.write_at(bytes, 0).expect("a healthy disk writes");
    file
}

#[test]
fn a_name_survives_only_after_its_directory_was_synced() {
    let disk = disk();
    write(&disk, "a", b"1").sync_data().expect("healthy");
    assert!(disk.reboot(Survivors::Synced).paths().is_empty());
    let disk = self::disk();
    write(&disk, "a", b"1").sync_data().expect("healthy");
    disk.sync_dir(Path::new(DIR)).expect("healthy");
    assert_eq!(disk.reboot(Survivors::Synced).content(&path("a")), b"1");
}

#[test]
fn bytes_survive_only_after_their_file_was_synced() {
    let disk = disk();
    let file = write(&disk, "a", b"12");
    file.sync_data().expect("healthy");
    disk.sync_dir(Path::new(DIR)).expect("healthy");
    file.write_at(b"34", 2).expect("healthy");
    assert_eq!(disk.reboot(Survivors::All).content(&path("a")), b"1234");
    assert_eq!(disk.reboot(Survivors::Synced).content(&path("a")), b"12");
    assert!(file.read_at(&mut [0], 0).is_err(), "handles do not outlive the power");
}

#[test]
fn a_rename_is_both_names_or_none() {
    let disk = disk();
    write(&disk, "a", b"new").sync_data().expect("healthy");
    write(&disk, "b", b"old").sync_data().expect("healthy");
    disk.sync_dir(Path::new(DIR)).expect("healthy");
    disk.rename(&path("a"), &path("b")).expect("healthy");
    assert_eq!(disk.paths(), [path("b")]);
    let before = disk.reboot(Survivors::Synced);
    assert_eq!((before.content(&path("a")), before.content(&path("b"))), (b"new".to_vec(), b"old".to_vec()));
    let after = disk.reboot(Survivors::All);
    assert_eq!(after.content(&path("b")), b"new");
}

#[test]
fn the_power_fails_at_the_chosen_operation() {
    let disk = disk();
    let file = write(&disk, "a", b"1");
    disk.cut_power_at(disk.operations() + 1);
    file.write_at(b"2", 1).expect("before the cut");
    assert!(file.sync_data().is_err());
    assert!(file.write_at(b"3", 2).is_err());
    assert_eq!(disk.reboot(Survivors::All).content(&path("a")), b"12");
}

#[test]
fn a_failed_sync_loses_the_unsynced_bytes() {
    let disk = disk();
    let file = write(&disk, "a", b"1");
    disk.sync_dir(Path::new(DIR)).expect("healthy");
    disk.fail_syncs(true);
    assert!(file.sync_data().is_err());
    disk.fail_syncs(false);
    file.sync_data().expect("healthy again");
    assert!(disk.reboot(Survivors::Synced).content(&path("a")).is_empty());
}

#[test]
fn a_full_disk_accepts_writes_that_do_not_grow_a_file() {
    let disk = disk();
    let file = write(&disk, "a", b"1234");
    disk.set_capacity(Some(4));
    file.write_at(b"9", 0).expect("no growth");
    assert_eq!(file.write_at(b"5", 4).map_err(|error| error.kind()), Err(ErrorKind::StorageFull));
    disk.set_capacity(None);
    file.write_at(b"5", 4).expect("space came back");
    assert_eq!(disk.content(&path("a")), b"92345");
}

#[test]
fn the_second_lock_is_refused_until_the_first_is_gone() {
    let disk = disk();
    let lock = disk.lock(&path("LOCK")).map_err(|_| "held").expect("free");
    assert!(matches!(disk.lock(&path("LOCK")), Err(LockError::Held(_))));
    drop(lock);
    assert!(disk.lock(&path("LOCK")).is_ok());
}
