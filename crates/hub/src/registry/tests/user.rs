use std::fs;
use std::os::unix::fs::PermissionsExt;

use model::Timestamp;

use super::*;
use crate::clock::system_now;
use crate::session_token::TokenError;

fn later(seconds: i64) -> Timestamp {
    system_now().saturating_add_micros(seconds * 1_000_000)
}

#[test]
fn the_first_start_makes_an_administrator_whose_password_is_kept_once() {
    let fixture = Fixture::new();
    let (registry, first_start) = Registry::open(&fixture.path()).unwrap();
    let first_start = first_start.unwrap();
    assert_eq!((first_start.login.as_str(), first_start.password.len()), (ADMIN_LOGIN, 24));
    assert!(!format!("{first_start:?}").contains(&first_start.password));
    let admin = registry.authenticate(&first_start.login, &first_start.password).unwrap().unwrap();
    assert_eq!((admin.authority, admin.tenant), (Authority::TenantAdmin, registry.default_tenant()));

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
    let user =
        registry.add_user(tenant, "Driver@Example.org", "pass word Ω", Authority::CustomerUser).unwrap();
    let try_login = |login, password| registry.authenticate(login, password).unwrap();
    assert_eq!(try_login("driver@example.org", "pass word Ω"), Some(user.clone()));
    assert_eq!(try_login("DRIVER@example.org", "pass word Ω"), Some(user.clone()));
    assert_eq!(try_login("driver@example.org", "pass word ω"), None);
    assert_eq!(try_login("driver@example.org", ""), None);
    assert_eq!(try_login("nobody@example.org", "pass word Ω"), None);
    let add = |login, password| registry.add_user(tenant, login, password, Authority::CustomerUser);
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
    let claims = registry.check_session(&pair.token, later(10)).unwrap();
    assert_eq!((claims.user_id, claims.sub.as_str(), claims.may_write()), (admin.id, ADMIN_LOGIN, true));
    let renewed = registry.renew_session(&pair.refresh_token, later(10)).unwrap();
    assert!(registry.check_session(&renewed.token, later(9_000)).is_ok());
    assert_eq!(registry.check_session(&pair.token, later(9_001)), Err(TokenError::Expired));
    assert_eq!(registry.check_session(&pair.refresh_token, later(0)), Err(TokenError::WrongKind));

    let old = registry
        .open_session(&User { password_changed_at: Timestamp::default(), ..User::clone(&admin) }, later(-60));
    assert_eq!(registry.check_session(&old.token, later(0)), Err(TokenError::Ended));
    registry.set_password(ADMIN_LOGIN, "a new password").unwrap();
    assert_eq!(registry.check_session(&old.token, later(0)), Err(TokenError::Ended));
    assert_eq!(registry.renew_session(&old.refresh_token, later(0)), Err(TokenError::Ended));
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
    let claims = registry.check_session(&renewed.token, later(0)).unwrap();
    assert!(claims.is_public && !claims.may_write());
    assert_eq!(claims.tenant_id, registry.default_tenant());
}
