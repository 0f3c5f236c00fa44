//! The application: authenticate, validate, limit, append, then fan out.
//!
//! Every door calls this crate and no crate below it. This crate knows devices, rows and durability. It knows no socket, no
//! packet and no HTTP type.

pub mod alarms;
pub mod annotations;
mod api_keys;
mod assets;
pub mod attributes;
mod audit;
pub mod audit_log;
mod behind_gateways;
pub mod blocking_append;
pub mod bulk;
mod calls;
pub mod claims;
pub mod clock;
pub mod csv;
mod customers;
mod databases;
mod dead_letter;
mod deletion;
mod device_activity;
mod device_attributes;
pub mod device_messages;
pub mod device_state;
mod devices;
mod each_batch;
pub mod entity_query;
mod entity_views;
mod error;
mod fan_out;
pub mod gateways;
pub mod history;
mod hub;
mod ingest;
mod key_values;
mod keys_dump;
mod kv_progress;
pub mod live;
pub mod logins;
pub mod maintenance;
pub mod message;
pub mod metrics;
mod namespace;
mod new_columns;
pub mod ota;
pub mod points;
mod profiles;
pub mod provisioning;
mod reads;
pub mod refusals;
pub mod relations;
pub mod retention;
pub mod rpc;
mod series_owner;
mod shown_series;
pub mod sql;
pub mod sql_deletion;
mod stopped;
pub mod stored_calls;
mod tables;
pub mod taps;
pub mod tenant_loads;
mod tenants;
pub mod time_series;
mod to_devices;
mod ttls;
mod users;
mod visible;

pub use attributes::AttributeError;
pub use audit::AUDIT_TABLE;
pub use databases::OpenDatabase;
pub use dead_letter::{DEAD_LETTER_TABLE, DeadLetter};
pub use device_attributes::OwnAttributes;
pub use device_state::{DevicePresence, DeviceState};
pub use error::Error;
pub use hub::Hub;
pub use message::{Kept, Message, MessageRefusal, RefusedPart};
pub use metrics::{Door, Made, Metrics};
// The broker, the registry and the callers are a part of the interface of the hub.
pub use broker;
pub use registry;
pub use registry::{Entity, EntityId, EntityKind, caller, certificate, protobuf, session_token};
pub use series_owner::{ASSETS_TABLE, SeriesOwner};
pub use shown_series::ShownSeries;
pub use stopped::Stopped;
pub use tables::ParquetImport;
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
