//! The entity in the paths of ThingsBoard's telemetry interface: `{entityType}/{entityId}`.

use hub::registry::Entity;
use hub::{EntityId, EntityKind, SeriesOwner, ShownSeries};
use uuid::Uuid;

use super::tools::session::Session;
use super::tools::state::HttpState;
use crate::error::ApiError;

/// The entity that the session sees.
pub(super) fn entity(state: &HttpState, session: &Session, kind: &str, id: &str) -> Result<Entity, ApiError> {
    Ok(state.hub.visible_entity(session.caller(), parse(kind, id)?)?)
}

/// The device or asset that the session sees, with its series.
pub(super) fn series_owner(
    state: &HttpState,
    session: &Session,
    kind: &str,
    id: &str,
) -> Result<SeriesOwner<'static>, ApiError> {
    Ok(state.hub.series_owner(session.caller(), parse(kind, id)?)?)
}

/// The series that the session reads under a device, an asset or an entity view.
pub(super) fn shown_series(
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
