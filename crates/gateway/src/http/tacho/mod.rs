//! Our own interface: `/api/tacho`, SQL, the pages of operators, and the dashboard.

mod admin;
mod api_keys;
mod bulk;
pub(crate) mod dashboard;
mod databases;
mod devices;
mod maintenance;
mod metrics;
pub(crate) mod openapi;
mod process_series;
mod sql;
mod tenant_limits;
mod tenants;
mod users;
mod virtual_sensors;

pub use self::maintenance::{report_json, rewritten_json};
use crate::http::tools::route_list::Routes;

/// The routes of this interface. The dashboard answers what has no route.
pub(crate) fn routes() -> Routes {
    managing()
        .merge(tables())
        .merge(operating())
        .merge(databases::routes())
        .merge(virtual_sensors::routes())
        .merge(openapi::routes())
        .get("/api/sql", sql::get)
        .post("/api/sql", sql::post)
}

/// Devices, users, keys and tenants.
fn managing() -> Routes {
    Routes::default()
        .post("/api/tacho/devices", devices::create_many)
        .get("/api/tacho/devices/{id}", devices::details)
        .get("/api/tacho/refusals", devices::refusals)
        .get("/api/tacho/users", users::list)
        .post("/api/tacho/users", users::add)
        .delete("/api/tacho/users/{login}", users::delete)
        .post("/api/tacho/users/{login}/password", users::set_password)
        .post("/api/tacho/users/{login}/role", users::set_role)
        .get("/api/tacho/api-keys", api_keys::list)
        .post("/api/tacho/api-keys", api_keys::add)
        .delete("/api/tacho/api-keys/{id}", api_keys::delete)
        .get("/api/tacho/tenants", tenants::list)
        .post("/api/tacho/tenants", tenants::add)
        .delete("/api/tacho/tenants/{name}", tenants::delete)
        .post("/api/tacho/tenants/{name}/limits", tenant_limits::set)
        .post("/api/tacho/session-key", users::rotate_key)
}

fn tables() -> Routes {
    Routes::default()
        .get("/api/tacho/tables", bulk::tables)
        .post("/api/tacho/tables", bulk::set_table)
        .get("/api/tacho/tables/columns", bulk::table_columns)
        .delete("/api/tacho/tables/columns", bulk::drop_key)
        .post("/api/tacho/export", bulk::export)
        .post("/api/tacho/import", bulk::import)
        .get("/api/tacho/import/device", bulk::table_of_device)
}

/// Maintenance, and the pages of operators.
fn operating() -> Routes {
    Routes::default()
        .post("/api/tacho/check", maintenance::check)
        .post("/api/tacho/backup", maintenance::backup)
        .post("/api/tacho/maintenance/flush", maintenance::flush)
        .post("/api/tacho/maintenance/compact", maintenance::compact)
        .get("/api/status", admin::status)
        .get("/healthz", admin::alive)
        .get("/readyz", admin::ready)
        .get_compressed("/metrics", metrics::metrics)
}
