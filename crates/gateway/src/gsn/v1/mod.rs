//! `/rest`, the REST interface of GSN 1.1: sensors and their rows as GeoJSON, JSON or CSV.

mod data;
mod format;
mod list;
mod refusal;
mod summary;
#[cfg(test)]
mod tests;
mod text;

use self::format::Format;
use crate::http::tools::route_list::Routes;

/// The routes of this interface.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get("/rest/sensors", list::sensors)
        .get("/rest/sensors/{sensor}", data::rows)
        .get("/rest/sensors/{sensor}/{field}", data::rows_of_field)
        .get("/rest/sensors/{sensor}/{field}/minmax", summary::extremes)
        .get("/rest/preview/{sensor}/{field}", summary::preview)
        .get("/rest/grid/{sensor}", list::grid)
}
