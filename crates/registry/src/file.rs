//! The registry's file: opens it, and fills a new one.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use model::Durability;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use uuid::Uuid;

use super::defaults::{ADMIN_LOGIN, DEFAULT_NAME, DEFAULT_TABLE};
use super::error::RegistryError;
use super::{password, random};
use crate::permission::Role;
use crate::system_time::system_now;

/// "TACH" in the header of the file. It distinguishes a registry from other databases.
const APPLICATION_ID: i32 = 0x5441_4348;

/// The tables of a new registry.
const SCHEMA: &str = include_str!("schema.sql");

/// The version of the schema, in the header of the file.
const VERSION: i32 = 11;

/// The oldest version that this code makes the newest of. Versions 1 to 9 are of the time before the first release; commit
/// [`LAST_MIGRATING_COMMIT`] reads them and makes version 10 of them.
const OLDEST_VERSION: i32 = 10;

/// What makes version 11 of version 10: limits of tenants.
const TO_VERSION_11: &str = "
    ALTER TABLE tenant ADD COLUMN tables_max INTEGER CHECK (tables_max > 0);
    ALTER TABLE tenant ADD COLUMN series_max INTEGER CHECK (series_max > 0);
    ALTER TABLE tenant ADD COLUMN columns_max INTEGER CHECK (columns_max > 0);
    ALTER TABLE tenant ADD COLUMN sessions_max INTEGER CHECK (sessions_max > 0);
    ALTER TABLE tenant ADD COLUMN subscriptions_max INTEGER CHECK (subscriptions_max > 0);
";

/// The last commit that reads versions before [`OLDEST_VERSION`].
const LAST_MIGRATING_COMMIT: &str = "ad6acc8b";

/// How long to wait for another process that has the file open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens the file, created as needed.
pub(super) fn open(path: &Path) -> Result<Connection, RegistryError> {
    create_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(RegistryError::sqlite("open the registry", path))?;
    configure(&connection).map_err(not_a_database(path))?;
    prepare(&mut connection, path)?;
    Ok(connection)
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
            RegistryError::NotARegistry { path: path.into(), reason: "it is not a SQLite database".into() }
        }
        _ => RegistryError::sqlite("open the registry", path)(error),
    }
}

/// Fills an empty file, brings an older one to the newest version, and refuses one of another version. All or nothing: a crash leaves
/// the file as it was.
fn prepare(connection: &mut Connection, path: &Path) -> Result<(), RegistryError> {
    let failed = || RegistryError::sqlite("fill the new registry", path);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed())?;
    let (found, known) = (version(&transaction, path)?, VERSION);
    match found {
        0 => create(&transaction).map_err(failed())?,
        VERSION => {}
        OLDEST_VERSION => migrate(&transaction).map_err(failed())?,
        1..OLDEST_VERSION => {
            let commit = LAST_MIGRATING_COMMIT;
            return Err(RegistryError::TooOld { path: path.into(), found, known, commit });
        }
        _ => return Err(RegistryError::TooNew { path: path.into(), found, known }),
    }
    transaction.commit().map_err(failed())
}

fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    fill(transaction)
}

pub(super) fn migrate(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(TO_VERSION_11)?;
    transaction.pragma_update(None, "user_version", VERSION)
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

/// Fills a new registry: one tenant, one profile of devices and one of assets, one administrator without a password.
fn fill(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let (tenant, profile, asset_profile, admin) = (new_id(), new_id(), new_id(), new_id());
    let now = system_now().millis();
    let sql = "INSERT INTO tenant (id, name, created_at) VALUES (?1, ?2, ?3)";
    transaction.execute(sql, (tenant, DEFAULT_NAME, now))?;
    transaction.execute(
        "INSERT INTO profile (id, tenant, name, data_table, durability, created_at, is_default) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)",
        (profile, tenant, DEFAULT_NAME, DEFAULT_TABLE, Durability::Fsync.name(), now),
    )?;
    transaction.execute(
        "INSERT INTO asset_profile (id, tenant, name, is_default, created_at) VALUES (?1, ?2, ?3, 1, ?4)",
        (asset_profile, tenant, DEFAULT_NAME, now),
    )?;
    transaction.execute(
        "INSERT INTO user (id, tenant, login, role, password_hash, password_changed_at, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
        (admin, tenant, ADMIN_LOGIN, Role::Administrator.name(), password::UNUSABLE, now),
    )?;
    let sql = "INSERT INTO setting (key, value) VALUES ('session_secret', ?1), ('admin_pending', ?2)";
    transaction.execute(sql, (new_session_secret(), ADMIN_LOGIN))?;
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
