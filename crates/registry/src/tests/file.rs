use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::{Blame, Timestamp};
use rusqlite::Connection;

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
    assert_eq!((number("synchronous"), number("foreign_keys"), number("user_version")), (2, 1, 11));
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
fn a_registry_that_migrations_made_opens_with_what_it_has() {
    let fixture = Fixture::new();
    Connection::open(fixture.path()).unwrap().execute_batch(include_str!("version_10.sql")).unwrap();
    let check = |registry: &Registry| {
        let tenant = registry.default_tenant();
        let users = registry.users(tenant);
        let roles: Vec<_> = users.iter().map(|user| (user.login.as_str(), user.role)).collect();
        assert_eq!(roles, [(ADMIN_LOGIN, Role::Administrator), ("eve@example.org", Role::Viewer)]);
        assert!(users.iter().all(|user| user.enabled && user.customer.is_none() && user.version == 1));
        let profiles = registry.profiles(tenant);
        let defaults: Vec<_> = profiles.iter().map(|one| (one.name.as_str(), one.is_default)).collect();
        assert_eq!(defaults, [("default", true), ("truck", false)]);
        assert_eq!(registry.default_asset_profile(tenant).unwrap().name, "default");
        let truck = registry.device_by_token("token of truck").unwrap();
        assert_eq!((truck.profile.table.name(), truck.created_at.millis(), truck.version), ("trucks", 9, 1));
        assert_eq!((truck.gateway, &truck.label, truck.customer), (true, &None, None));
        let credentials = registry.credentials_of(truck.id).unwrap();
        assert_eq!(credentials.token().map(|token| &**token), Some("token of truck"));
        assert_eq!(registry.api_keys(users[1].id).len(), 1);
        // A session of the administrator as an earlier process would have opened it.
        let pair = registry.open_session(&users[0], Timestamp::from_micros(0));
        assert!(registry.check_session(&pair.token, Timestamp::from_micros(0)).is_ok());
        registry.problems().unwrap()
    };
    let registry = fixture.open();
    assert_eq!(check(&registry), Vec::<String>::new());
    let fields = AssetFields { name: "depot", ..AssetFields::default() };
    registry.add_asset(registry.default_tenant(), fields).unwrap();
    drop(registry);
    assert_eq!(check(&fixture.open()), Vec::<String>::new());
}

/// The columns of all tables, and their indexes: those of a new registry are those that migrations made.
#[test]
fn a_new_registry_has_the_schema_of_the_migrated_one() {
    let facts = |connection: &Connection| {
        let sql = "SELECT t.name || ' ' || c.cid || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || \
                   coalesce(c.dflt_value, '-') || ' ' || c.pk FROM sqlite_schema t, pragma_table_xinfo(t.name) c \
                   WHERE t.type = 'table' UNION ALL \
                   SELECT t.name || ' ' || i.origin || ' ' || i.\"unique\" || ' ' || group_concat(c.name) \
                   FROM sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c \
                   WHERE t.type = 'table' GROUP BY t.name, i.name ORDER BY 1";
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let mut migrated = Connection::open_in_memory().unwrap();
    migrated.execute_batch(include_str!("version_10.sql")).unwrap();
    let transaction = migrated.transaction().unwrap();
    crate::file::migrate(&transaction).unwrap();
    transaction.commit().unwrap();
    let fixture = Fixture::new();
    let new = fixture.open();
    let (new, migrated) = (facts(&new.writer.lock()), facts(&migrated));
    assert!(new.len() > 100, "{}", new.len());
    assert_eq!(new, migrated);
}

#[test]
fn other_files_and_registries_of_other_versions_are_refused_and_unchanged() {
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
    assert!(text.contains("not a SQLite database"), "{text}");
    let sql =
        |sql: &'static str| move |path: &Path| Connection::open(path).unwrap().execute_batch(sql).unwrap();
    let foreign = refusal(&sql("CREATE TABLE mine (a)"));
    assert!(foreign.contains("another program"), "{foreign}");
    let foreign = refusal(&sql("PRAGMA user_version = 1; CREATE TABLE mine (a)"));
    assert!(foreign.contains("another program"), "{foreign}");
    let newer =
        refusal(&sql("PRAGMA application_id = 0x54414348; PRAGMA user_version = 99; CREATE TABLE t (a)"));
    assert!(newer.contains("format version 99") && newer.contains("newer release"), "{newer}");
    for version in [1, 9] {
        let older = refusal(&|path| {
            let header = "PRAGMA application_id = 0x54414348; PRAGMA user_version = ";
            let sql = format!("{header}{version}; CREATE TABLE t (a)");
            Connection::open(path).unwrap().execute_batch(&sql).unwrap();
        });
        let names_it =
            older.contains(&format!("format version {version},")) && older.contains("commit ad6acc8b");
        assert!(names_it, "{older}");
    }
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
