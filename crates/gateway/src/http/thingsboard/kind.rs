//! What the kinds of entities have in common over REST: handlers that show one, save one from a body, and delete one.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::Hub;
use hub::caller::{Action, Caller};
use hub::registry::RegistryError;
use serde::de::DeserializeOwned;
use serde_json::Value as JsonValue;
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, PathOf, path_id};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

pub(crate) type Find<T> = fn(&Hub, &Caller, Uuid) -> Result<Arc<T>, RegistryError>;
pub(crate) type Delete<T> = fn(&Hub, &Caller, Uuid) -> Result<Arc<T>, hub::Error>;

/// A kind of entities.
pub(crate) trait Shown: Sized + Send + Sync + 'static {
    /// Finds one that the caller sees.
    const FIND: Find<Self>;
    const DELETE: Delete<Self>;

    fn json(&self, caller: &Caller) -> JsonValue;
}

/// The body of a request that adds an entity, or changes the one with the `id` of the body.
pub(crate) trait Saved: DeserializeOwned + Send + 'static {
    type Kind: Shown;
    const NEEDS: Action = Action::ManageEntities;

    /// Refuses what can be refused without a look at other entities.
    fn check(&self) -> Result<(), ApiError> {
        Ok(())
    }

    /// Waits for the disk.
    fn store(self, hub: &Hub, caller: &Caller) -> Result<Arc<Self::Kind>, ApiError>;
}

/// `GET /api/customer/{id}`
pub(crate) async fn show<T: Shown>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let found = (T::FIND)(&state.hub, session.caller(), path_id(&id)?)?;
    Ok(Json(found.json(session.caller())).into_response())
}

/// `POST /api/customer`: adds an entity, or changes it if the body has an `id`.
pub(crate) async fn save<B: Saved>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(new): JsonBody<B>,
) -> Answer {
    session.check(B::NEEDS)?;
    new.check()?;
    let hub = Arc::clone(&state.hub);
    let store = move || {
        let stored = new.store(&hub, session.caller())?;
        Ok(Json(stored.json(session.caller())).into_response())
    };
    state.changes.run(store).await?
}

/// `DELETE /api/customer/{id}`
pub(crate) async fn delete<T: Shown>(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Result<(), ApiError> {
    let (hub, id) = (Arc::clone(&state.hub), path_id(&id)?);
    state.changes.run(move || (T::DELETE)(&hub, session.caller(), id).map(drop)).await??;
    Ok(())
}
