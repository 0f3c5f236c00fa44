//! ThingsBoard's interfaces for applications: REST and WebSocket.
//!
//! `docs/protocol/thingsboard-rest.md` lists the supported requests of ThingsBoard. A new endpoint goes into the file of its
//! subject, whose `routes` lists it.

mod accounts;
mod alarms;
mod asset_profiles;
mod assets;
mod assigned;
mod audit_log;
mod claims;
mod credentials;
mod customers;
mod device_profiles;
mod devices;
mod entity_query;
mod entity_views;
mod kind;
mod package_upload;
mod packages;
mod relations;
mod rpc;
mod telemetry;
mod websocket;

use crate::http::tools::route_list::Routes;

/// The routes of these interfaces.
pub(crate) fn routes() -> Routes {
    accounts::routes()
        .merge(telemetry::routes())
        .merge(rpc::routes())
        .merge(websocket::routes())
        .merge(entity_query::routes())
        .merge(alarms::routes())
        .merge(credentials::routes())
        .merge(devices::routes())
        .merge(claims::routes())
        .merge(device_profiles::routes())
        .merge(packages::routes())
        .merge(assets::routes())
        .merge(asset_profiles::routes())
        .merge(customers::routes())
        .merge(relations::routes())
        .merge(entity_views::routes())
        .merge(audit_log::routes())
}
