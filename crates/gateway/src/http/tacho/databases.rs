//! Databases of the time-series interfaces.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::error::ApiError;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, PathOf};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of databases.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/tacho/databases", list)
        .post("/api/tacho/databases", create)
        .delete("/api/tacho/databases/{name}", drop_database)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDatabase {
    name: String,
}

/// `GET /api/tacho/databases`: the names of the databases, the tenant's own one first.
async fn list(State(state): State<Arc<HttpState>>, session: Session) -> Result<Response, ApiError> {
    let databases = state.hub.databases(session.caller())?;
    let names: Vec<_> = databases.iter().map(|database| json!({ "name": database.name() })).collect();
    Ok(Json(json!({ "databases": names })).into_response())
}

/// `POST /api/tacho/databases`: a database that is there already is not an error.
async fn create(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<NewDatabase>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&state.hub);
    let database = state.changes.run(move || hub.create_database(session.caller(), &new.name)).await??;
    Ok(Json(json!({ "name": database.name() })).into_response())
}

/// `DELETE /api/tacho/databases/{name}`: drops a database with its tables.
async fn drop_database(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(name): PathOf<String>,
) -> Result<(), ApiError> {
    let hub = Arc::clone(&state.hub);
    state
        .changes
        .run(move || {
            hub.database(session.caller(), &name)?;
            hub.drop_database(session.caller(), &name)
        })
        .await??;
    Ok(())
}
