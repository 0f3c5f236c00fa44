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
    assert_eq!((number("synchronous"), number("foreign_keys"), number("user_version")), (2, 1, 10));
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

/// A registry of an earlier version, with a tenant, an administrator, a viewer and two devices.
fn old_registry(fixture: &Fixture, version: usize) {
    let schemas = [
        include_str!("../schema_v1.sql"),
        include_str!("../schema_v2.sql"),
        include_str!("../schema_v3.sql"),
        include_str!("../schema_v4.sql"),
        include_str!("../schema_v5.sql"),
        include_str!("../schema_v6.sql"),
        include_str!("../schema_v7.sql"),
        include_str!("../schema_v8.sql"),
    ];
    // The rows have the form of version 4; a release with a later version has migrated them.
    let (before, after) = schemas[..version].split_at(version.min(4));
    let connection = Connection::open(fixture.path()).unwrap();
    before.iter().for_each(|schema| connection.execute_batch(schema).unwrap());
    connection
        .execute_batch(
            "INSERT INTO tenant VALUES (randomblob(16), 'default');
             INSERT INTO setting VALUES ('session_secret', randomblob(32));
             INSERT INTO profile SELECT randomblob(16), id, 'default', 'telemetry', 'fsync' FROM tenant;
             INSERT INTO profile SELECT randomblob(16), id, 'truck', 'trucks', 'os' FROM tenant;
             INSERT INTO user (id, tenant, login, authority, password_hash, password_changed_at)
                 SELECT randomblob(16), id, 'admin@tachograph.local', 'TENANT_ADMIN', '!', 7 FROM tenant;
             INSERT INTO user (id, tenant, login, authority, password_hash, password_changed_at)
                 SELECT randomblob(16), id, 'eve@example.org', 'CUSTOMER_USER', '!', 8 FROM tenant;
             INSERT INTO device (id, tenant, name, profile, created_at)
                 SELECT randomblob(16), tenant, 'of ' || name, id, 9 FROM profile;
             INSERT INTO access_token SELECT id, 'token ' || name FROM device;",
        )
        .unwrap();
    if version >= 3 {
        let key = "INSERT INTO api_key SELECT randomblob(16), id, 'reports', randomblob(32), 'viewer', 5, 6 FROM user";
        connection.execute_batch(key).unwrap();
    }
    if version >= 4 {
        connection.execute_batch("UPDATE device SET gateway = 1 WHERE name = 'of truck'").unwrap();
    }
    after.iter().for_each(|schema| connection.execute_batch(schema).unwrap());
    let header = format!("PRAGMA application_id = 0x54414348; PRAGMA user_version = {version}");
    connection.execute_batch(&header).unwrap();
}

#[test]
fn registries_of_all_earlier_versions_open_with_what_they_have() {
    for version in 1..=8 {
        let fixture = Fixture::new();
        old_registry(&fixture, version);
        let check = |registry: &Registry| {
            let tenant = registry.default_tenant();
            let users = registry.users(tenant);
            let roles: Vec<_> = users.iter().map(|user| (user.login.as_str(), user.role)).collect();
            let expected = [(ADMIN_LOGIN, Role::Administrator), ("eve@example.org", Role::Viewer)];
            assert_eq!(roles, expected, "{version}");
            assert!(users.iter().all(|user| user.enabled && user.customer.is_none() && user.version == 1));
            let profiles = registry.profiles(tenant);
            let defaults: Vec<_> = profiles.iter().map(|one| (one.name.as_str(), one.is_default)).collect();
            assert_eq!(defaults, [("default", true), ("truck", false)]);
            let asset_profile = registry.default_asset_profile(tenant).unwrap();
            let id = asset_profile.id;
            assert_eq!((asset_profile.name.as_str(), id.get_version_num()), ("default", 4), "{id}");
            let truck = registry.device_by_token("token of truck").unwrap();
            assert_eq!(
                (truck.profile.table.name(), truck.created_at.millis(), truck.version),
                ("trucks", 9, 1)
            );
            assert_eq!((truck.gateway, &truck.label, truck.customer), (version >= 4, &None, None));
            let credentials = registry.credentials_of(truck.id).unwrap();
            assert_eq!(credentials.token().map(|token| &**token), Some("token of truck"));
            assert_eq!(registry.api_keys(users[1].id).len(), usize::from(version >= 3));
            // A session of the administrator as an earlier release would have opened it.
            let pair = registry.open_session(&users[0], Timestamp::from_micros(0));
            assert!(registry.check_session(&pair.token, Timestamp::from_micros(0)).is_ok());
            registry.problems().unwrap()
        };
        let registry = fixture.open();
        assert_eq!(check(&registry), Vec::<String>::new(), "{version}");
        let fields = AssetFields { name: "depot", ..AssetFields::default() };
        registry.add_asset(registry.default_tenant(), fields).unwrap();
        drop(registry);
        assert_eq!(check(&fixture.open()), Vec::<String>::new(), "{version}");
    }
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
