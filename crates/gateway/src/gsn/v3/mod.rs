//! REST v3, the interface of GSN 2.0: sensors as GeoJSON features, their rows, and logins of OAuth 2.0.

mod csv;
mod data;
mod feature;
mod field;
mod list;
mod period;
mod request;
mod stream;
mod stream_text;
#[cfg(test)]
mod tests;
mod token;
mod upload;
mod user;

pub(super) use self::request::{columns, conditions};
pub(super) use self::upload::store_rows;
use crate::http::tools::route_list::Routes;

/// The routes of this interface.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get("/api/sensors", list::sensors)
        .get("/api/sensors/search", data::search)
        .get("/api/sensors/{sensor}", list::sensor)
        .get("/api/sensors/{sensor}/data", data::data)
        .post("/api/sensors/{sensor}/data", upload::rows)
        .get("/api/sensors/{sensor}/field/{field}", field::newest)
        .get("/api/sensors/{sensor}/stream", stream::open)
        .get("/api/user", user::user)
        .post("/oauth2/token", token::token)
}
