//! A data directory: what is in it, who may use it, and how a command gets at it, with or without a running server.

mod access;
mod contents;
mod initialise;
mod keys;
mod layout;
mod lock;
mod permission;
mod registry;
mod store;

pub(crate) use access::{Access, directory_or_server, directory_or_server_within};
pub(crate) use initialise::initialise;
pub(crate) use keys::{open_copy_of_keys, open_keys};
pub(crate) use layout::{REGISTRY_FILE, create_directory, keys_directory, store_directory};
pub(crate) use lock::holder;
pub(crate) use permission::{Permission, check as check_permission};
pub(crate) use registry::{LockedRegistry, open_registry, registry_access};
pub(crate) use store::{open as open_store_with, open_store, report_when_sealed};
