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
mod bodies;
mod bulk;
mod chunked_body;
mod claims;
mod columns_text;
mod compression;
mod connection;
mod counted_answers;
mod credentials;
mod customers;
mod dashboard;
mod databases;
mod deletion;
mod device_api;
mod device_attributes;
mod device_details;
mod device_login;
mod device_packages;
mod device_profiles;
mod device_rpc;
mod devices;
mod door_stream;
mod entities;
mod entity_query;
mod entity_views;
mod error_response;
mod groups;
mod gsn;
mod histories;
mod history_text;
mod influx;
mod json;
pub mod limits;
mod maintenance;
mod messages;
mod mqtt_socket;
mod openapi;
mod opentsdb;
mod options;
mod package_json;
mod package_upload;
mod packages;
mod packed;
mod page;
mod passwords;
mod pieces;
mod polls;
mod prometheus;
mod provision;
mod relations;
mod request;
mod route_list;
mod routes;
mod rpc;
mod series_caller;
mod series_rows;
mod server;
mod session;
mod sql;
mod state;
mod stored_calls;
mod stream;
mod telemetry;
mod telemetry_entity;
mod telemetry_write;
mod tenant_limits;
mod tenants;
mod thingsboard_keys;
mod thingsboard_tenants;
mod thingsboard_users;
mod users;
mod virtual_sensors;
mod websocket;

pub use maintenance::{report_json, rewritten_json};
pub use options::HttpOptions;
pub use page::{Page, PageFile};
pub use server::serve;
