//! The interfaces of GSN (Global Sensor Networks) 1.1 and 2.0 over the virtual sensors of this server: `/gsn`, `/multidata`, `/rest`,
//! and REST v3 under `/api/sensors`.
//!
//! `docs/protocol/gsn.md` describes what is supported and what differs.

mod aggregate;
mod answer_text;
mod condition;
mod container;
mod field;
mod java_number;
mod json_text;
mod limits;
mod live_rows;
mod multidata;
mod newest;
mod read;
mod refusal;
mod request_context;
mod sample;
mod sensor;
mod streaming;
mod time;
mod upload;
mod v1;
mod v3;
mod value;
mod xml;

use crate::http::tools::route_list::Routes;

/// The routes of these interfaces.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/multidata", multidata::rows)
        .post("/multidata", multidata::rows)
        .get("/gsn", container::answer)
        .post("/gsn", container::answer)
        .get("/field", field::value)
        .post("/field", field::value)
        .post("/upload", upload::row)
        .get("/streaming/{query}", streaming::from_now)
        .get("/streaming/{query}/{start}", streaming::from_start)
        .put("/streaming/", streaming::pushed)
        .merge(streaming::push_routes())
        .merge(v1::routes())
        .merge(v3::routes())
}
