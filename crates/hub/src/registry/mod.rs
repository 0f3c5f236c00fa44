//! Tenants, users, devices, profiles and their credentials.
//!
//! One SQLite file holds them (write-ahead log, every commit synced). An index in memory answers all lookups, so no lookup
//! reads the file. The rows that devices report are in the store, not here.
//!
//! Invariants:
//! 1. A change is in the index only after its commit, and both happen under the lock of the one writer.
//! 2. While a registry is open no other process can write the file (SQLite's exclusive locking mode).
//! 3. A name is unique in its tenant; an access token and a login are unique in the installation.
//!
//! Every change waits for the disk, and every operation with a password takes tens of milliseconds of a core. Call both on a
//! thread that may block.

mod api_keys;
mod defaults;
mod devices;
mod entity;
mod error;
mod file;
mod first_start;
mod handle;
mod index;
mod maintenance;
mod open;
mod password;
mod profiles;
mod random;
mod settings;
mod tenants;
#[cfg(test)]
mod tests;
mod users;

pub use api_keys::{API_KEY_PREFIX, NewApiKey};
pub use defaults::{ADMIN_LOGIN, DEFAULT_NAME, DEFAULT_TABLE};
pub use entity::{
    ApiKey, Authority, BulkDevices, Device, DeviceChange, NewDevice, Page, PageRequest, Profile, Provisioned,
    Tenant, User,
};
pub use error::RegistryError;
pub use first_start::{ADMIN_PASSWORD_FILE, FirstStart};
pub use handle::Registry;
pub use maintenance::{copy_for_backup, problems_of};
