//! The HTTP door: device API, REST and WebSocket in ThingsBoard's shapes, metrics, and the dashboard's files.
//!
//! HTTP/1.1 without TLS. An answer 2xx to telemetry leaves after the store has made it as durable as the device's
//! profile asks. Reads run on blocking threads, a bounded number at a time; every refusal is JSON of one shape
//! (`error`), counted by reason.
//!
//! What it does not do: attributes, RPC, alarms, rules, customers, and changing the profile of a device.

mod admin;
mod answers;
mod auth;
mod bodies;
mod bulk;
mod columns_text;
mod compression;
mod crew;
mod dashboard;
mod device_api;
mod device_details;
mod devices;
pub(crate) mod error;
mod groups;
mod histories;
mod history_text;
mod json;
pub(crate) mod lane;
pub mod limits;
mod maintenance;
mod pieces;
mod request;
mod server;
mod sql;
mod stream;
mod telemetry;
mod time_text;
mod users;
mod websocket;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{from_fn, from_fn_with_state, map_response_with_state};
use axum::response::Response;
use axum::routing::{delete, get, post};
use hub::Hub;
use model::limits::Portion;
use tokio::sync::{Semaphore, watch};

use crate::budget::Budget;
use crate::seats::Stop;
use bodies::{Bodies, BodyLimits};
use error::{ApiError, ErrorCode, RefusalLabel};
use lane::Lane;
pub use maintenance::report_json;
pub use server::serve;

/// What an operator may set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Where whoever starts the door binds its listener.
    pub listen: SocketAddr,
    /// Most bytes of a telemetry request's body.
    pub body_bytes_max: usize,
    /// Whether anybody may read devices and values of the default tenant without a login.
    pub public_read: bool,
    /// Most connections at once, WebSockets included.
    pub connections_max: usize,
    /// Most connections at once from one address.
    pub connections_per_address_max: usize,
    /// Files that the process may have open; 0 when it is not known. `/readyz` warns when connections come near it.
    pub open_files_max: u64,
    /// What of the bounds in bytes that are fixed the machine's memory allows.
    pub memory: Portion,
    /// What `/api/status` tells as the version.
    pub version: &'static str,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            body_bytes_max: 4 * 1024 * 1024,
            public_read: false,
            connections_max: limits::CONNECTIONS_MAX,
            connections_per_address_max: limits::CONNECTIONS_MAX,
            open_files_max: 0,
            memory: Portion::ALL,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// What all requests share.
#[derive(Debug)]
struct Door {
    hub: Arc<Hub>,
    options: HttpOptions,
    started: Instant,
    reads: Lane,
    logins: Lane,
    changes: Lane,
    bodies: Arc<Bodies>,
    /// Answers that are in memory as a whole until their clients have taken them.
    answers: Arc<Budget>,
    /// What subscriptions and watches of WebSockets hold.
    subscriptions: Arc<Budget>,
    /// For checks and backups.
    maintenance: Arc<Semaphore>,
    stop: watch::Receiver<Stop>,
}

impl Door {
    fn new(hub: Arc<Hub>, options: HttpOptions, stop: watch::Receiver<Stop>) -> Self {
        // A body as large as the operator allows must fit, and a piece of an import.
        let memory = options.memory;
        let total =
            memory.of(limits::BODIES_BYTES_MAX).max(options.body_bytes_max).max(limits::BODIES_BYTES_MIN);
        let bodies = BodyLimits {
            total,
            device: limits::DEVICE_BODIES_BYTES_MAX.max(options.body_bytes_max).min(total),
            user: limits::USER_BODIES_BYTES_MAX.min(total),
            anonymous: memory.of(limits::ANONYMOUS_BODIES_BYTES_MAX).max(limits::LOGIN_BODY_BYTES_MAX),
        };
        Self {
            hub,
            started: Instant::now(),
            reads: Lane::new("reads", limits::READS_AT_ONCE, limits::READS_WAITING_MAX),
            logins: Lane::new("logins", limits::LOGINS_AT_ONCE, limits::LOGINS_WAITING_MAX),
            changes: Lane::new("changes", limits::CHANGES_AT_ONCE, limits::CHANGES_WAITING_MAX),
            bodies: Bodies::new(bodies),
            answers: Budget::new(limits::ANSWER_BUDGET.on(memory)),
            subscriptions: Budget::new(limits::SUBSCRIPTION_BUDGET.on(memory)),
            maintenance: Arc::new(Semaphore::new(limits::MAINTENANCE_AT_ONCE)),
            options,
            stop,
        }
    }

    /// Longest answer with values.
    fn answer_bytes_max(&self) -> usize {
        self.options.memory.of(limits::ANSWER_BYTES_MAX)
    }

    fn refused(&self, label: &'static str) {
        self.hub.metrics().refused(hub::Door::Http, label);
    }
}

fn router(door: Arc<Door>) -> Router {
    Router::new()
        .route("/api/v1/{token}/telemetry", post(device_api::telemetry))
        .route("/api/auth/login", post(auth::login))
        .route("/api/auth/login/public", post(auth::login_public))
        .route("/api/auth/token", post(auth::renew))
        .route("/api/auth/user", get(auth::user))
        .route("/api/tenant/devices", get(devices::list).layer(from_fn(compression::gzip)))
        .route("/api/device", post(devices::save))
        .route("/api/device/credentials", post(devices::set_credentials))
        .route("/api/device/{id}", get(devices::show).delete(devices::delete))
        .route("/api/device/{id}/credentials", get(devices::credentials))
        .route("/api/deviceProfileInfo/default", get(devices::default_profile))
        .route("/api/tacho/devices", post(devices::create_many))
        .route("/api/tacho/devices/{id}", get(device_details::details))
        .route("/api/tacho/refusals", get(device_details::refusals))
        .route("/api/tacho/values", post(telemetry::values_of_many))
        .route("/api/tacho/tables", get(bulk::tables).post(bulk::set_table))
        .route("/api/tacho/tables/columns", get(bulk::table_columns))
        .route("/api/tacho/export", post(bulk::export))
        .route("/api/tacho/import", post(bulk::import))
        .route("/api/tacho/import/device", get(bulk::table_of_device))
        .route("/api/tacho/check", post(maintenance::check))
        .route("/api/tacho/backup", post(maintenance::backup))
        .route("/api/tacho/users", get(users::list).post(users::add))
        .route("/api/tacho/users/{login}", delete(users::delete))
        .route("/api/tacho/users/{login}/password", post(users::set_password))
        .route("/api/tacho/users/{login}/role", post(users::set_role))
        .route("/api/tacho/session-key", post(users::rotate_key))
        .route("/api/plugins/telemetry/{kind}/{id}/keys/timeseries", get(telemetry::keys))
        .route("/api/plugins/telemetry/{kind}/{id}/values/timeseries", get(telemetry::values))
        .route("/api/ws/plugins/telemetry", get(websocket::open))
        .route("/api/sql", get(sql::get).post(sql::post))
        .route("/api/status", get(admin::status))
        .route("/healthz", get(admin::alive))
        .route("/readyz", get(admin::ready))
        .route("/metrics", get(admin::metrics).layer(from_fn(compression::gzip)))
        .method_not_allowed_fallback(wrong_method)
        .fallback(dashboard::file)
        .layer(from_fn_with_state(Arc::clone(&door), answers::count))
        .layer(map_response_with_state(Arc::clone(&door), finish))
        .with_state(door)
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{} does not take {method}; the header Allow names what it takes", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::BadRequest, "method", message)
}

/// What every answer has in common; counts refusals.
async fn finish(State(door): State<Arc<Door>>, mut response: Response) -> Response {
    if let Some(RefusalLabel(label)) = response.extensions().get() {
        door.refused(label);
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
