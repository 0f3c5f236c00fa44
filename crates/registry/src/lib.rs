//! The registry: tenants, customers, users, devices, assets, profiles, entity views, relations, credentials, and the callers
//! that log in with them.
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
//!
//! This crate is the only one that sees SQLite, hashes of passwords and signatures of session tokens. It knows no rows, no
//! key-value store, no queries, no async runtime and no protocol.

mod activations;
mod any_entity;
mod api_keys;
mod asset;
mod assets;
pub mod caller;
pub mod certificate;
mod certificate_chain;
mod checks;
mod contact;
mod creation_queue;
mod creations;
mod credentials;
mod credentials_kind;
mod customer;
mod customers;
mod database;
mod databases;
mod defaults;
mod device_logins;
mod devices;
mod directory;
mod entity;
mod entity_id;
mod entity_view;
mod entity_views;
mod error;
mod file;
mod first_start;
mod handle;
mod identity;
mod index;
mod kind;
pub mod limits;
mod load;
mod lookup;
mod maintenance;
mod namespace;
mod new_devices;
mod open;
mod own_tables;
mod package_ids;
mod page;
mod password;
mod permission;
mod profiles;
mod provision_gateways;
mod provision_terms;
mod provisioning;
mod random;
mod relation;
mod relations;
mod save;
pub mod session_token;
mod sessions;
mod settings;
mod system_time;
mod tenant_limits;
mod tenants;
#[cfg(test)]
mod tests;
mod topic_rights;
mod user;
mod users;

pub use any_entity::Entity;
pub use api_keys::{API_KEY_PREFIX, NewApiKey};
pub use asset::{Asset, AssetFields, AssetProfile};
pub use certificate_chain::CertificateChain;
pub use contact::Contact;
pub use credentials::Credentials;
pub use credentials_kind::CredentialsKind;
pub use customer::{Customer, CustomerFields};
pub use database::namespace_of_database;
pub use database::{Database, OWN_DATABASE};
pub use defaults::{ADMIN_LOGIN, DEFAULT_NAME, DEFAULT_TABLE, PROVISION_USER_NAME};
pub use device_logins::DeviceCredentialsFault;
pub use device_logins::is_equal_secret;
pub use entity::{BulkDevices, Device, DeviceChange, NewDevice, Profile, ProfileFields, Provisioned, Tenant};
pub use entity_id::{EntityId, EntityKind};
pub use entity_view::{EntityView, EntityViewFields};
pub use error::RegistryError;
pub use first_start::{ADMIN_PASSWORD_FILE, FirstStart};
pub use handle::Registry;
pub use kind::Kind;
pub use maintenance::{copy_for_backup, problems_of};
pub use namespace::own_table;
pub use own_tables::{AUDIT_TABLE, DEAD_LETTER_TABLE};
pub use package_ids::{PackageChange, PackageIds, PackageKind};
pub use page::page_of_all;
pub use page::{Listed, Page, PageRequest, SortProperty};
pub use provision_gateways::{PROVISION_GATEWAYS_MEMBER, provisions_gateways};
pub use provision_terms::{ProvisionStrategy, ProvisionTerms};
pub use random::token as random_name;
pub use relation::{Relation, RelationKey};
pub use system_time::system_now;
pub use tenant_limits::{TenantLimit, TenantLimits};
pub use tenants::TenantFields;
pub use topic_rights::{Names, TOPICS_MEMBER, TopicRights, check_pattern, fill};
pub use user::{Activation, ApiKey, NewUser, User, UserFacts};
