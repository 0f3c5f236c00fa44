//! The registry's file: opens it, migrates it, fills a new one, and loads it into memory.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::{TableName, Timestamp};
use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, Transaction, TransactionBehavior};
use store::Durability;
use uuid::Uuid;

use super::defaults::{ADMIN_LOGIN, DEFAULT_NAME, DEFAULT_TABLE};
use super::entity::{ApiKey, Authority, Device, Profile, Tenant, User};
use super::error::RegistryError;
use super::index::{Account, Index};
use super::{password, random};
use crate::namespace::namespace_of;

/// "TACH" in the header of the file. It distinguishes a registry from other databases.
const APPLICATION_ID: i32 = 0x5441_4348;

/// `MIGRATIONS[n]` turns version n into n + 1. Released entries never change.
const MIGRATIONS: &[&str] = &[
    include_str!("schema_v1.sql"),
    include_str!("schema_v2.sql"),
    include_str!("schema_v3.sql"),
    include_str!("schema_v6.sql"),
];

/// How long to wait for another process that has the file open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens the file, created and brought to the newest version as needed.
pub(super) fn open(path: &Path) -> Result<Connection, RegistryError> {
    create_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(RegistryError::sqlite("open the registry", path))?;
    configure(&connection).map_err(not_a_database(path))?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Loads the whole file.
pub(super) fn load(connection: &Connection, path: &Path) -> Result<Index, RegistryError> {
    let read = || {
        let mut index = Index::default();
        index.tenants = rows(connection, "SELECT id, name FROM tenant", tenant)?;
        let default_tenant = index.default_tenant().map(|tenant| tenant.id).unwrap_or_default();
        let profiles =
            rows(connection, "SELECT id, tenant, name, data_table, durability FROM profile", |row| {
                profile(row, default_tenant)
            })?;
        let profile_of = |id: Uuid| profiles.iter().find(|profile| profile.id == id).cloned();
        let sql = "SELECT d.id, d.tenant, d.name, d.profile, d.created_at, t.token, d.gateway, d.last_gateway \
                   FROM device d JOIN access_token t ON t.device = d.id";
        for (device, token) in rows(connection, sql, |row| device(row, profile_of))? {
            index.put_device(device, token);
        }
        for profile in profiles {
            index.profiles.insert((profile.tenant, profile.name.clone()), profile);
        }
        let sql = "SELECT id, tenant, login, authority, password_hash, password_changed_at, session_epoch FROM user";
        for account in rows(connection, sql, account)? {
            index.put_account(account);
        }
        index.deleted_tenants = rows(connection, "SELECT id FROM deleted_tenant", |row| row.get(0))?;
        let sql = "SELECT id, user, name, role, created_at, expires_at, hash FROM api_key";
        for (hash, key) in rows(connection, sql, api_key)? {
            index.put_api_key(hash, key);
        }
        Ok(index)
    };
    read().map_err(RegistryError::sqlite("read the registry", path))
}

/// Creates the file if it is missing, readable by its owner only: it contains tokens and the key of session tokens. SQLite
/// gives its side files the same mode.
fn create_private(path: &Path) -> Result<(), RegistryError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            file.sync_all().map_err(RegistryError::io("sync", path))?;
            sync_directory_of(path)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => tighten(path),
        Err(error) => Err(RegistryError::io("create", path)(error)),
    }
}

/// Syncs the directory of `path`, so a new or renamed file survives a power cut.
pub(super) fn sync_directory_of(path: &Path) -> Result<(), RegistryError> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(RegistryError::io("sync the directory", directory))
}

fn tighten(path: &Path) -> Result<(), RegistryError> {
    let mode = path.metadata().map_err(RegistryError::io("look at", path))?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(RegistryError::io("restrict the permissions of", path))
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Nobody else may write while the index in memory stands for the file. Must precede the first access.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A provisioned device survives a power cut: every commit is synced.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "trusted_schema", "OFF")
}

fn not_a_database(path: &Path) -> impl FnOnce(rusqlite::Error) -> RegistryError {
    move |error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            RegistryError::NotARegistry { path: path.into(), reason: "it is no SQLite database".into() }
        }
        _ => RegistryError::sqlite("open the registry", path)(error),
    }
}

/// All or nothing: a crash leaves the file in the version it had.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), RegistryError> {
    let known = i32::try_from(MIGRATIONS.len()).expect("BUG: fewer than two thousand million migrations");
    let failed = || RegistryError::sqlite("bring the registry to the newest version", path);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed())?;
    let found = version(&transaction, path)?;
    if found > known {
        return Err(RegistryError::TooNew { path: path.into(), found, known });
    }
    for (version, sql) in (1..=known).zip(MIGRATIONS).filter(|(version, _)| *version > found) {
        apply(&transaction, version, sql).map_err(failed())?;
    }
    if found == 0 {
        fill(&transaction).map_err(failed())?;
    }
    transaction.commit().map_err(failed())
}

fn apply(transaction: &Transaction<'_>, version: i32, sql: &str) -> rusqlite::Result<()> {
    transaction.execute_batch(sql)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", version)
}

/// The file's version; 0 for an empty one.
fn version(transaction: &Transaction<'_>, path: &Path) -> Result<i32, RegistryError> {
    let number =
        |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, i32>(0)).map_err(not_a_database(path));
    let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    let empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    let ours = if version == 0 { empty } else { application == APPLICATION_ID && version > 0 };
    if ours {
        return Ok(version);
    }
    let reason = format!("it is a database of another program (application id {application:#x})");
    Err(RegistryError::NotARegistry { path: path.into(), reason })
}

/// Fills a new registry: one tenant, one profile, one administrator without a password.
fn fill(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let (tenant, profile, admin) = (new_id(), new_id(), new_id());
    transaction.execute("INSERT INTO tenant (id, name) VALUES (?1, ?2)", (tenant, DEFAULT_NAME))?;
    transaction.execute(
        "INSERT INTO profile (id, tenant, name, data_table, durability) VALUES (?1, ?2, ?3, ?4, ?5)",
        (profile, tenant, DEFAULT_NAME, DEFAULT_TABLE, Durability::Fsync.name()),
    )?;
    transaction.execute(
        "INSERT INTO user (id, tenant, login, authority, password_hash, password_changed_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, 0)",
        (admin, tenant, ADMIN_LOGIN, Authority::TenantAdmin.name(), password::UNUSABLE),
    )?;
    let sql = "INSERT INTO setting (key, value) VALUES ('session_secret', ?1), ('admin_pending', ?2)";
    transaction.execute(sql, (new_session_secret(), ADMIN_LOGIN))?;
    Ok(())
}

/// Inserts a profile.
pub(super) fn insert_profile(transaction: &Transaction<'_>, profile: &Profile) -> rusqlite::Result<()> {
    let sql = "INSERT INTO profile (id, tenant, name, data_table, durability) VALUES (?1, ?2, ?3, ?4, ?5)";
    let Profile { id, tenant, name, table, durability } = profile;
    transaction.execute(sql, (id, tenant, name, table.name(), durability.name()))?;
    Ok(())
}

/// Inserts a user.
pub(super) fn insert_user(
    transaction: &Transaction<'_>,
    user: &User,
    password_hash: &str,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO user (id, tenant, login, authority, password_hash, password_changed_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let User { id, tenant, login, authority, password_changed_at, .. } = user;
    transaction
        .execute(sql, (id, tenant, login, authority.name(), password_hash, password_changed_at.millis()))?;
    Ok(())
}

/// Inserts an API key with the hash of its secret.
pub(super) fn insert_api_key(
    transaction: &Transaction<'_>,
    key: &ApiKey,
    hash: [u8; 32],
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO api_key (id, user, name, role, created_at, expires_at, hash) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let ApiKey { id, user, name, role, created_at, expires_at } = key;
    let expires_at = expires_at.map(Timestamp::millis);
    transaction.execute(sql, (id, user, name, role.name(), created_at.millis(), expires_at, hash))?;
    Ok(())
}

/// A new key for session tokens.
pub(super) fn new_session_secret() -> [u8; 32] {
    random::bytes()
}

/// A new random id.
pub(super) fn new_id() -> Uuid {
    uuid::Builder::from_random_bytes(random::bytes()).into_uuid()
}

fn rows<T>(
    connection: &Connection,
    sql: &str,
    row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(sql)?.query_map([], row)?.collect()
}

fn tenant(row: &Row<'_>) -> rusqlite::Result<Tenant> {
    Ok(Tenant { id: row.get(0)?, name: row.get(1)? })
}

fn profile(row: &Row<'_>, default_tenant: Uuid) -> rusqlite::Result<Arc<Profile>> {
    let (tenant, table): (Uuid, String) = (row.get(1)?, row.get(3)?);
    let table = TableName::new(&namespace_of(tenant, default_tenant), &table)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(3, Type::Text, error.into()))?;
    Ok(Arc::new(Profile { id: row.get(0)?, tenant, name: row.get(2)?, table, durability: parsed(row, 4)? }))
}

fn device(
    row: &Row<'_>,
    profile_of: impl Fn(Uuid) -> Option<Arc<Profile>>,
) -> rusqlite::Result<(Arc<Device>, Arc<str>)> {
    let profile = profile_of(row.get(3)?).ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let (id, tenant, name) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (gateway, last_gateway) = (row.get(6)?, row.get(7)?);
    let device = Device { id, tenant, name, profile, created_at: time(row, 4)?, gateway, last_gateway };
    Ok((Arc::new(device), row.get(5)?))
}

fn account(row: &Row<'_>) -> rusqlite::Result<Account> {
    let user = User {
        id: row.get(0)?,
        tenant: row.get(1)?,
        login: row.get(2)?,
        authority: parsed(row, 3)?,
        password_changed_at: time(row, 5)?,
        session_epoch: row.get(6)?,
    };
    Ok(Account { user: Arc::new(user), password_hash: row.get(4)? })
}

fn api_key(row: &Row<'_>) -> rusqlite::Result<([u8; 32], Arc<ApiKey>)> {
    let expires_at = match row.get::<_, Option<i64>>(5)? {
        Some(_) => Some(time(row, 5)?),
        None => None,
    };
    let (id, user, name) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let key = ApiKey { id, user, name, role: parsed(row, 3)?, created_at: time(row, 4)?, expires_at };
    Ok((row.get(6)?, Arc::new(key)))
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Timestamp> {
    let millis = row.get(column)?;
    Timestamp::from_millis(millis).ok_or(rusqlite::Error::IntegralValueOutOfRange(column, millis))
}

fn parsed<T: std::str::FromStr<Err = String>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse()
        .map_err(|error: String| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into()))
}
