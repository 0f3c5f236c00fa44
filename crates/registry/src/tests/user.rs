use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model::Timestamp;

use super::*;
use crate::permission::Action;
use crate::session_token::TokenError;
use crate::system_time::system_now;

fn later(seconds: i64) -> Timestamp {
    system_now().saturating_add_micros(seconds * 1_000_000)
}

#[test]
fn the_first_start_creates_an_administrator_and_keeps_the_password_once() {
    let fixture = Fixture::new();
    let (registry, first_start) = Registry::open(&fixture.path()).unwrap();
    let first_start = first_start.unwrap();
    assert_eq!((first_start.login.as_str(), first_start.password.len()), (ADMIN_LOGIN, 24));
    assert!(!format!("{first_start:?}").contains(&first_start.password));
    let admin = registry.authenticate(&first_start.login, &first_start.password).unwrap().unwrap();
    assert_eq!((admin.role, admin.tenant), (Role::Administrator, registry.default_tenant()));

    let file = first_start.keep(&registry, fixture.directory.path()).unwrap();
    assert_eq!(file, fixture.directory.path().join("admin-password"));
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{}\n", first_start.password));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    drop(registry);
    let (registry, again) = Registry::open(&fixture.path()).unwrap();
    assert!(again.is_none());
    assert!(registry.authenticate(ADMIN_LOGIN, &first_start.password).unwrap().is_some());
}

#[test]
fn an_interrupted_first_start_locks_nobody_out() {
    let fixture = Fixture::new();
    let (registry, first) = Registry::open(&fixture.path()).unwrap();
    drop(registry);
    // An earlier attempt left both of its files, readable by everybody.
    for name in ["admin-password", "admin-password.tmp"] {
        let path = fixture.directory.path().join(name);
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let (registry, second) = Registry::open(&fixture.path()).unwrap();
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_ne!(first.password, second.password);
    assert!(registry.authenticate(ADMIN_LOGIN, &first.password).unwrap().is_none());
    let file = second.keep(&registry, fixture.directory.path()).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(file).unwrap().trim_end(), second.password);
    assert!(!fixture.directory.path().join("admin-password.tmp").exists());
}

#[test]
fn a_password_set_by_hand_ends_the_first_start() {
    let fixture = Fixture::new();
    let (registry, first_start) = Registry::open(&fixture.path()).unwrap();
    assert!(first_start.is_some());
    registry.set_password("Admin@Tachograph.local", "my own password").unwrap();
    drop(registry);
    let (registry, first_start) = Registry::open(&fixture.path()).unwrap();
    assert!(first_start.is_none());
    assert!(registry.authenticate(ADMIN_LOGIN, "my own password").unwrap().is_some());
}

#[test]
fn only_the_right_password_of_a_known_login_opens() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let user = registry.add_user(tenant, "Driver@Example.org", "pass word Ω", Role::Viewer).unwrap();
    let try_login = |login, password| registry.authenticate(login, password).unwrap();
    assert_eq!(try_login("driver@example.org", "pass word Ω"), Some(user.clone()));
    assert_eq!(try_login("DRIVER@example.org", "pass word Ω"), Some(user.clone()));
    assert_eq!(try_login("driver@example.org", "pass word ω"), None);
    assert_eq!(try_login("driver@example.org", ""), None);
    assert_eq!(try_login("nobody@example.org", "pass word Ω"), None);
    let add = |login, password| registry.add_user(tenant, login, password, Role::Viewer);
    let error = add("driver@EXAMPLE.org", "another password").unwrap_err().to_string();
    assert!(error.contains("the user \"driver@example.org\" exists already"), "{error}");
    assert!(add("", "long enough").unwrap_err().to_string().contains("login is empty"));
    assert!(add("a b", "long enough").unwrap_err().to_string().contains("blanks"));
    assert!(add("a@b", "short").unwrap_err().to_string().contains("8 characters"));
    assert!(
        registry
            .set_password("nobody@example.org", "long enough")
            .unwrap_err()
            .to_string()
            .contains("no user")
    );
    let logins: Vec<_> = registry.users(tenant).iter().map(|user| user.login.clone()).collect();
    assert_eq!(logins, ["admin@tachograph.local", "driver@example.org"]);
    drop(registry);
    assert_eq!(fixture.open().authenticate("driver@example.org", "pass word Ω").unwrap(), Some(user));
}

#[test]
fn sessions_outlive_a_restart_but_not_a_new_password() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let admin = registry.users(registry.default_tenant())[0].clone();
    let pair = registry.open_session(&admin, later(0));
    drop(registry);
    let registry = fixture.open();
    let caller = registry.check_session(&pair.token, later(10)).unwrap();
    assert_eq!(
        (caller.user_id(), caller.login(), caller.role()),
        (Some(admin.id), ADMIN_LOGIN, Role::Administrator)
    );
    let renewed = registry.renew_session(&pair.refresh_token, later(10)).unwrap();
    assert!(registry.check_session(&renewed.token, later(9_000)).is_ok());
    assert_eq!(registry.check_session(&pair.token, later(9_001)), Err(TokenError::Expired));
    assert_eq!(registry.check_session(&pair.refresh_token, later(0)), Err(TokenError::WrongKind));

    let old = registry.open_session(&admin, later(0));
    let changes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&changes);
    registry.on_session_change(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    assert!(registry.check_session(&old.token, later(0)).is_ok());
    registry.set_password(ADMIN_LOGIN, "a new password").unwrap();
    assert_eq!(changes.load(Ordering::Relaxed), 1);
    assert_eq!(registry.check_session(&old.token, later(0)), Err(TokenError::Ended));
    assert_eq!(registry.renew_session(&old.refresh_token, later(0)), Err(TokenError::Ended));
    assert_eq!(registry.check_caller(&caller), Err(TokenError::Ended));
    let admin = registry.authenticate(ADMIN_LOGIN, "a new password").unwrap().unwrap();
    let fresh = registry.open_session(&admin, later(-3_600));
    assert!(registry.check_session(&fresh.token, later(0)).is_ok(), "the clock was set back");
}

#[test]
fn a_session_of_a_user_of_another_registry_is_refused() {
    let fixtures = [Fixture::new(), Fixture::new()];
    let [here, there] = fixtures.each_ref().map(Fixture::open);
    let admin = there.users(there.default_tenant())[0].clone();
    let foreign = there.open_session(&admin, later(0));
    assert_eq!(here.check_session(&foreign.token, later(0)), Err(TokenError::Invalid));
    let stranger = here.open_session(&admin, later(0));
    assert_eq!(here.check_session(&stranger.token, later(0)), Err(TokenError::Ended));
}

#[test]
fn public_sessions_read_and_are_renewed_as_public_ones() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let pair = registry.open_public_session(registry.default_tenant(), later(0));
    let renewed = registry.renew_session(&pair.refresh_token, later(0)).unwrap();
    let caller = registry.check_session(&renewed.token, later(0)).unwrap();
    assert_eq!((caller.role(), caller.tenant()), (Role::Public, registry.default_tenant()));
    assert!(registry.check_caller(&caller).is_ok());
}

#[test]
fn a_new_role_ends_the_sessions_and_holds_after_a_restart() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    let ann = registry.add_user(tenant, "ann@example.org", "long enough", Role::Administrator).unwrap();
    let pair = registry.open_session(&ann, later(0));
    let same = registry.set_role("Ann@example.org", Role::Administrator).unwrap();
    assert_eq!(same, ann);
    assert!(registry.check_session(&pair.token, later(0)).is_ok(), "nothing has changed");
    let ann = registry.set_role("ann@example.org", Role::Viewer).unwrap();
    assert_eq!(registry.check_session(&pair.token, later(0)), Err(TokenError::Ended));
    let pair = registry.open_session(&ann, later(0));
    drop(registry);
    let registry = fixture.open();
    let caller = registry.check_session(&pair.token, later(0)).unwrap();
    assert_eq!(caller.role(), Role::Viewer);
    let refused = caller.check(Action::SeeCredentials).unwrap_err().to_string();
    assert!(
        refused.contains("ann@example.org has the role viewer") && refused.contains("administrator"),
        "{refused}"
    );
}

#[test]
fn the_last_administrator_stays() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let tenant = registry.default_tenant();
    registry.add_user(tenant, "viewer@example.org", "long enough", Role::Viewer).unwrap();
    let refused = |result: Result<_, RegistryError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, RegistryError::LastAdministrator { .. }), "{error}");
    };
    refused(registry.delete_user(ADMIN_LOGIN));
    refused(registry.set_role(ADMIN_LOGIN, Role::Viewer));
    let second = registry.add_user(tenant, "second@example.org", "long enough", Role::Administrator).unwrap();
    let pair = registry.open_session(&second, later(0));
    registry.delete_user(ADMIN_LOGIN).unwrap();
    refused(registry.delete_user("second@example.org"));
    assert!(registry.check_session(&pair.token, later(0)).is_ok());
    drop(registry);
    let registry = fixture.open();
    let logins: Vec<_> = registry.users(tenant).iter().map(|user| user.login.clone()).collect();
    assert_eq!(logins, ["second@example.org", "viewer@example.org"]);
    registry.delete_user("viewer@example.org").unwrap();
    let again = registry.add_user(tenant, "viewer@example.org", "long enough", Role::Viewer).unwrap();
    assert_eq!(again.login, "viewer@example.org");
}

#[test]
fn a_user_added_under_the_login_of_a_deleted_one_does_not_inherit_its_sessions() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let add = || registry.add_user(registry.default_tenant(), "a@b", "long enough", Role::Viewer).unwrap();
    let pair = registry.open_session(&add(), later(0));
    registry.delete_user("a@b").unwrap();
    add();
    assert_eq!(registry.check_session(&pair.token, later(0)), Err(TokenError::Ended));
}

#[test]
fn a_new_key_ends_all_sessions() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let admin = registry.users(registry.default_tenant())[0].clone();
    let pairs = [
        registry.open_session(&admin, later(0)),
        registry.open_public_session(registry.default_tenant(), later(0)),
    ];
    registry.rotate_session_key().unwrap();
    let fresh = registry.open_session(&admin, later(0));
    let check = |registry: &Registry| {
        for pair in &pairs {
            assert_eq!(registry.check_session(&pair.token, later(0)), Err(TokenError::Invalid));
            assert_eq!(registry.renew_session(&pair.refresh_token, later(0)), Err(TokenError::Invalid));
        }
        assert!(registry.check_session(&fresh.token, later(0)).is_ok());
    };
    check(&registry);
    drop(registry);
    check(&fixture.open());
}

#[test]
fn the_file_with_the_first_password_is_removed_when_the_password_changes() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let file = fixture.directory.path().join(ADMIN_PASSWORD_FILE);
    registry.add_user(registry.default_tenant(), "a@b", "long enough", Role::Viewer).unwrap();
    registry.set_password("a@b", "another one").unwrap();
    assert!(file.exists());
    registry.set_password(ADMIN_LOGIN, "another one").unwrap();
    assert!(!file.exists());
}
