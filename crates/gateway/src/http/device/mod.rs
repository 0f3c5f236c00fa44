//! ThingsBoard's HTTP API for devices: the path of a request has the access token of the device.
//!
//! `docs/protocol/device-http.md` describes it.

mod attributes;
mod claim;
mod login;
mod packages;
mod provision;
mod rpc;
mod telemetry;

use crate::http::tools::route_list::Routes;

/// The routes of this interface.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/v1/provision", provision::provision)
        .post("/api/v1/{token}/telemetry", telemetry::telemetry)
        .get("/api/v1/{token}/attributes", attributes::read)
        .post("/api/v1/{token}/attributes", attributes::set)
        .get("/api/v1/{token}/attributes/updates", attributes::updates)
        .get("/api/v1/{token}/rpc", rpc::poll)
        .post("/api/v1/{token}/rpc", rpc::call)
        .post("/api/v1/{token}/rpc/{id}", rpc::answer)
        .post("/api/v1/{token}/claim", claim::offer)
        .merge(packages::routes())
}
