//! The HTTP door: device API, REST and WebSocket in ThingsBoard's shapes, metrics, and the dashboard's files.
//!
//! It speaks HTTP/1.1, with TLS or without. A telemetry request gets 2xx after the store has made it as durable as the device's
//! profile requires. Reads run on blocking threads, a bounded number at a time. Every refusal is JSON of one shape
//! (`error_response`), and is counted by its reason.
//!
//! `docs/protocol/thingsboard-rest.md` says which of ThingsBoard's requests are there.

mod activation;
mod admin;
mod admission;
mod alarms;
mod api_keys;
mod asset_profiles;
mod assets;
mod assigned;
mod attributes;
mod audit_log;
mod auth;
mod bulk;
mod claims;
mod columns_text;
mod counted_answers;
mod credentials;
mod customers;
mod dashboard;
mod databases;
mod deletion;
mod device_api;
mod device_attributes;
mod device_claim;
mod device_details;
mod device_login;
mod device_packages;
mod device_profiles;
mod device_rpc;
mod devices;
mod door_stream;
mod entity_query;
mod entity_views;
mod groups;
mod gsn;
mod histories;
mod history_text;
mod influx;
pub mod limits;
mod maintenance;
mod mqtt_socket;
mod openapi;
mod opentsdb;
mod options;
mod package_upload;
mod packages;
mod prometheus;
mod provision;
mod relations;
mod routes;
mod rpc;
mod server;
mod shapes;
mod sql;
mod stored_calls;
mod telemetry;
mod telemetry_entity;
mod telemetry_write;
mod tenant_limits;
mod tenants;
mod thingsboard_keys;
mod thingsboard_tenants;
mod thingsboard_users;
pub(crate) mod tools;
mod users;
mod virtual_sensors;
mod websocket;

pub use dashboard::{Page, PageFile};
pub use maintenance::{report_json, rewritten_json};
pub use options::HttpOptions;
pub use server::serve;
