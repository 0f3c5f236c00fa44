//! Health, metrics and status for operators and their tools.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub::registry::DEFAULT_NAME;
use serde_json::{Map, Value, json};

use crate::error::RETRY_BUSY_S;
use crate::http::tools::error_response::RefusalLabel;
use crate::http::tools::json::Json;
use crate::http::tools::state::HttpState;

/// `GET /healthz`: 200 while the process runs.
pub(crate) async fn alive() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// `GET /readyz`: 200 if the store accepts writes, else 503 with the reasons.
pub(crate) async fn ready(State(state): State<Arc<HttpState>>) -> Response {
    let status = state.hub.status();
    let sealed = status.sealed.map(|cause| format!("the store is read-only since a write failed: {cause}"));
    let busy = status.busy.map(|cause| format!("writes must wait: {cause}"));
    let reasons = [sealed, busy, state.hub.keys_status().not_ready()];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    if reasons.is_empty() {
        return match few_files_left(&state) {
            Some(warning) => Json(json!({ "status": "ready", "warnings": [warning] })).into_response(),
            None => Json(json!({ "status": "ready" })).into_response(),
        };
    }
    let message = reasons.join("; ");
    let body = json!({ "status": 503, "message": message, "errorCode": 2, "reasons": reasons,
                       "timestamp": hub::clock::system_now().millis() });
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_BUSY_S.into());
    response.extensions_mut().insert(RefusalLabel("not_ready"));
    response
}

/// A warning before the process runs out of file descriptors for connections.
fn few_files_left(state: &HttpState) -> Option<String> {
    let metrics = state.hub.metrics();
    let open: u64 =
        hub::Door::ALL.iter().map(|door| metrics.door(*door).connections.get().max(0).cast_unsigned()).sum();
    let max = state.options.open_files_max;
    (max > 0 && open >= max / 10 * 9).then(|| {
        format!(
            "{open} connections are open and the process may have {max} files: raise the open-file limit (LimitNOFILE=, \
             ulimit -n) before new connections are refused"
        )
    })
}

/// `GET /api/status`: version, counters, sizes and some settings of the server.
pub(crate) async fn status(State(state): State<Arc<HttpState>>) -> Response {
    let registry = state.hub.registry();
    let profile = registry.profile(registry.default_tenant(), DEFAULT_NAME);
    let store = state.hub.status();
    let metrics = state.hub.metrics();
    let connections: Map<String, Value> = hub::Door::ALL
        .iter()
        .map(|door| (door.name().to_owned(), metrics.door(*door).connections.get().into()))
        .collect();
    let body = json!({
        "version": state.options.version,
        "durability": profile.map(|profile| profile.durability.name()),
        "uptime_s": state.started.elapsed().as_secs(),
        "devices": registry.device_count(),
        // With the number of devices it shows whether a list of devices is out of date.
        "devices_generation": registry.generation(),
        "connections": connections,
        "points_total": metrics.points.get(),
        "settings": state.options.settings,
        "store": {
            "sealed": store.sealed,
            "busy": store.busy,
            "flush_held": store.flush_held,
            "tables": store.tables,
            "series": store.series,
            "rows_appended": store.rows_appended,
            "log_pending_bytes": store.log_pending_bytes,
            "log_bytes": store.log_bytes,
            "memtable_bytes": store.memtable_bytes,
            "parts": store.parts,
            "parts_overlap_max": store.parts_overlap_max,
            "part_bytes": store.part_bytes,
        },
    });
    Json(body).into_response()
}
