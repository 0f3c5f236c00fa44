//! The application: authenticate, validate, limit, append, then fan out.
//!
//! Every door calls this crate and no crate below it. This crate knows devices, rows and durability. It knows no socket, no
//! packet and no HTTP type.
//!
//! The files of `operations` add the methods of [`Hub`], by subject. All other modules are domain modules: they hold state and decide, and
//! do not name `Hub`. `hub.rs` puts the domain modules together.

pub mod alarms;
pub mod annotations;
pub mod attributes;
mod audit;
pub mod blocking_append;
pub mod bulk;
pub mod claims;
pub mod clock;
pub mod csv;
mod databases;
mod dead_letter;
pub mod device_messages;
pub mod device_state;
pub mod entity_query;
mod error;
mod fan_out;
pub mod gateways;
pub mod history;
mod hub;
mod keys_dump;
mod kv_progress;
pub mod live;
pub mod logins;
pub mod metrics;
mod new_columns;
mod operations;
pub mod ota;
pub mod points;
mod provision_rates;
pub mod refusals;
pub mod relations;
pub mod retention;
pub mod rpc;
mod series_owner;
mod table_scan;
pub mod taps;
pub mod tenant_loads;
mod tenant_shares;
mod thread_end;
mod ttls;
mod visible;

pub use attributes::AttributeError;
pub use audit::AUDIT_TABLE;
pub use databases::OpenDatabase;
pub use dead_letter::{DEAD_LETTER_TABLE, DeadLetter};
pub use device_state::{DevicePresence, DeviceState};
pub use error::Error;
pub use hub::Hub;
pub use metrics::{Door, MadeParts, Metrics};
// The broker, the registry and the callers are a part of the interface of the hub.
pub use broker;
pub use operations::devices::{OwnAttributes, provisioning, stored_calls};
pub use operations::installation::{audit_log, maintenance};
pub use operations::packages::PackageUpload;
pub use operations::rows::ShownSeries;
pub use operations::rows::message::{self, Message, MessageRefusal, RefusedPart, StoredMessage};
pub use operations::tables::{ParquetImport, sql, sql_deletion, time_series};
pub use registry;
pub use registry::{Entity, EntityId, EntityKind, caller, certificate, session_token};
pub use series_owner::{ASSETS_TABLE, SeriesOwner};
pub use thread_end::ThreadEnd;
// The doors must not use the crates `store` and `kv`; these types are part of the interface of the hub.
pub use kv::KvError;
pub use model::wake;
pub use store::backup::BackupList;
pub use store::{
    Blame, ByClass, CheckReport, Durability, Finding, LatestValue, Order, Progress, ProgressWatcher,
    RefusedRow, RefusedRows, Rewritten, Sequence, Severity, Ticket, ValueColumn,
};

pub use kv::{Progress as KvProgress, ProgressWatcher as KvProgressWatcher};

/// An error of the store, as the doors see it.
pub type IngestError = store::StoreError;
