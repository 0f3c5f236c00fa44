//! The entity in the paths of ThingsBoard's telemetry interface: `{entityType}/{entityId}`.

use hub::registry::Entity;
use hub::{EntityId, EntityKind, SeriesOwner, ShownSeries};
use uuid::Uuid;

use crate::error::ApiError;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The entity that the session sees.
pub(crate) fn entity(state: &HttpState, session: &Session, kind: &str, id: &str) -> Result<Entity, ApiError> {
    Ok(state.hub.visible_entity(session.caller(), parse(kind, id)?)?)
}

/// The device or asset that the session sees, with its series.
pub(crate) fn series_owner(
    state: &HttpState,
    session: &Session,
    kind: &str,
    id: &str,
) -> Result<SeriesOwner<'static>, ApiError> {
    Ok(state.hub.series_owner(session.caller(), parse(kind, id)?)?)
}

/// The series that the session reads under a device, an asset or an entity view.
pub(crate) fn shown_series(
    state: &HttpState,
    session: &Session,
    kind: &str,
    id: &str,
) -> Result<ShownSeries, ApiError> {
    Ok(state.hub.shown_series(session.caller(), parse(kind, id)?)?)
}

fn parse(kind: &str, id: &str) -> Result<EntityId, ApiError> {
    let kind: EntityKind = kind.parse().map_err(ApiError::argument)?;
    let wrong = |_| ApiError::argument(format!("{id:?} is not the id of a {}; ids are UUIDs", kind.words()));
    Ok(EntityId { kind, id: Uuid::parse_str(id).map_err(wrong)? })
}
