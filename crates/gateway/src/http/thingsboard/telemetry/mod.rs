//! ThingsBoard's telemetry interface: reads, writes and deletes values and attributes of entities.

mod attributes;
mod columns_text;
mod deletion;
mod entity;
mod groups;
mod histories;
mod history_text;
pub(crate) mod read;
mod write;

use crate::http::tools::route_list::Routes;

/// The routes of this interface.
pub(crate) fn routes() -> Routes {
    read::routes().merge(write::routes()).merge(attributes::routes()).merge(deletion::routes())
}
