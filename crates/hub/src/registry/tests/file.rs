use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::Timestamp;
use rusqlite::Connection;
use store::Blame;

use super::*;

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// A copy of the files while the registry is open, as kill -9 would leave them.
fn killed(fixture: &Fixture) -> Fixture {
    let copy = Fixture::new();
    for entry in fs::read_dir(fixture.directory.path()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.directory.path().join(entry.file_name())).unwrap();
    }
    copy
}

fn write_ahead_log(fixture: &Fixture) -> PathBuf {
    fixture.directory.path().join("registry.db-wal")
}

#[test]
fn acknowledged_changes_survive_a_kill() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    for n in 0..20 {
        registry.add_device(tenant, new_device(&format!("d{n}"))).unwrap();
        registry.set_password(ADMIN_LOGIN, &format!("password {n}")).unwrap();
        let after = killed(&fixture).open();
        assert_eq!(everything(&after), everything(&registry));
        assert!(after.authenticate(ADMIN_LOGIN, &format!("password {n}")).unwrap().is_some());
    }
}

#[test]
fn a_truncated_bulk_request_is_recovered_in_full_or_not_at_all() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let before = fs::metadata(write_ahead_log(&fixture)).unwrap().len();
    let bulk = BulkDevices { count: 300, prefix: "d", ..Default::default() };
    registry.add_devices(registry.default_tenant(), bulk).unwrap();
    let after = fs::metadata(write_ahead_log(&fixture)).unwrap().len();
    let mut seen = [0, 0];
    for length in (before..=after).rev().step_by(3_001) {
        let cut = killed(&fixture);
        fs::File::options().write(true).open(write_ahead_log(&cut)).unwrap().set_len(length).unwrap();
        let count = cut.open().device_count();
        assert!(count == 0 || count == 300, "{count} devices in a log of {length} of {after} bytes");
        seen[count / 300] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn commits_are_synced_and_foreign_keys_hold() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let writer = registry.writer.lock();
    let number = |pragma| writer.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((number("synchronous"), number("foreign_keys"), number("user_version")), (2, 1, 4));
    let journal: String = writer.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(journal, "wal");
}

#[test]
fn a_failed_commit_changes_nothing_in_memory() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let bulk = BulkDevices { count: 2_000, prefix: "d", ..Default::default() };
    let limit = |pages: i64| {
        let writer = registry.writer.lock();
        writer.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    };
    limit(40);
    let full = registry.add_devices(tenant, bulk).unwrap_err();
    assert_eq!(full.blame(), Blame::Busy, "{full}");
    assert!(full.to_string().contains("registry.db"), "{full}");
    assert_eq!(registry.device_count(), 0);
    limit(1_000_000);
    assert_eq!(registry.add_devices(tenant, bulk).unwrap().len(), 2_000);
}

#[test]
fn only_the_owner_can_read_the_file() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let add = |name| registry.add_device(registry.default_tenant(), new_device(name));
    add("d").unwrap();
    for entry in fs::read_dir(fixture.directory.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    drop(registry);
    fs::set_permissions(fixture.path(), fs::Permissions::from_mode(0o644)).unwrap();
    drop(fixture.open());
    assert_eq!(mode(&fixture.path()), 0o600);
}

#[test]
fn an_empty_file_becomes_a_registry() {
    let fixture = Fixture::new();
    fs::write(fixture.path(), "").unwrap();
    let registry = fixture.open();
    assert_eq!(registry.tenants().len(), 1);
    assert_eq!(registry.tenants()[0].name, "default");
    assert_eq!(registry.profiles(registry.default_tenant()).len(), 1);
}

#[test]
fn a_registry_of_version_1_opens_with_its_users_and_their_sessions() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let admin = registry.users(registry.default_tenant())[0].clone();
    registry.set_password(ADMIN_LOGIN, "a password").unwrap();
    // A token of a release without epochs.
    let pair =
        registry.open_session(&User { session_epoch: 0, ..User::clone(&admin) }, Timestamp::from_micros(0));
    drop(registry);
    let sql = "DROP TABLE api_key; DROP TABLE deleted_tenant; ALTER TABLE user DROP COLUMN session_epoch; \
               ALTER TABLE device DROP COLUMN gateway; ALTER TABLE device DROP COLUMN last_gateway; PRAGMA user_version = 1";
    Connection::open(fixture.path()).unwrap().execute_batch(sql).unwrap();
    let registry = fixture.open();
    assert!(registry.authenticate(ADMIN_LOGIN, "a password").unwrap().is_some());
    assert!(registry.check_session(&pair.token, Timestamp::from_micros(0)).is_ok());
    assert_eq!(registry.users(registry.default_tenant())[0].session_epoch, 0);
}

#[test]
fn other_files_and_newer_registries_are_refused_and_unchanged() {
    let refusal = |prepare: &dyn Fn(&Path)| {
        let fixture = Fixture::new();
        prepare(&fixture.path());
        let before = fs::read(fixture.path()).unwrap();
        let error = Registry::open(&fixture.path()).unwrap_err();
        assert_eq!(error.blame(), Blame::Operator);
        assert_eq!(fs::read(fixture.path()).unwrap().len(), before.len());
        error.to_string()
    };
    let text = refusal(&|path| fs::write(path, "speed,rpm\n".repeat(1_000)).unwrap());
    assert!(text.contains("no SQLite database"), "{text}");
    let sql =
        |sql: &'static str| move |path: &Path| Connection::open(path).unwrap().execute_batch(sql).unwrap();
    let foreign = refusal(&sql("CREATE TABLE mine (a)"));
    assert!(foreign.contains("another program"), "{foreign}");
    let foreign = refusal(&sql("PRAGMA user_version = 1; CREATE TABLE mine (a)"));
    assert!(foreign.contains("another program"), "{foreign}");
    let newer =
        refusal(&sql("PRAGMA application_id = 0x54414348; PRAGMA user_version = 99; CREATE TABLE t (a)"));
    assert!(newer.contains("format version 99") && newer.contains("newer release"), "{newer}");
    let gutted = refusal(&|path| {
        drop(Registry::open(path).unwrap());
        Connection::open(path).unwrap().execute("DELETE FROM setting", []).unwrap();
    });
    assert!(gutted.contains("key of the sessions"), "{gutted}");
}

#[test]
fn a_missing_directory_is_named() {
    let error = Registry::open(Path::new("/nonexistent/registry.db")).unwrap_err().to_string();
    assert!(error.contains("cannot create /nonexistent/registry.db"), "{error}");
}

#[test]
fn a_second_registry_on_the_same_file_is_refused() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let error = Registry::open(&fixture.path()).unwrap_err();
    assert!(error.to_string().contains("in use by another process"), "{error}");
    drop(registry);
    fixture.open();
}
