//! Calls of procedures of devices in ThingsBoard's shapes.

mod calls;
mod stored_calls;

use crate::http::tools::route_list::Routes;

/// The routes of calls.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/rpc/oneway/{id}", calls::one_way)
        .post("/api/rpc/twoway/{id}", calls::two_way)
        .post("/api/plugins/rpc/oneway/{id}", calls::one_way_v1)
        .post("/api/plugins/rpc/twoway/{id}", calls::two_way_v1)
        .get("/api/rpc/persistent/{id}", stored_calls::show)
        .delete("/api/rpc/persistent/{id}", stored_calls::delete)
        .get("/api/rpc/persistent/device/{id}", stored_calls::list)
}
