//! InfluxDB's interface: `/write` and `/query` of version 1, `/api/v2/write` of version 2, `/ping` and `/health`.
//!
//! `docs/protocol/influx.md` describes what is supported and what differs.

mod answers;
mod fields;
pub(crate) mod limits;
mod ping;
mod query;
mod refused_lines;
mod rows;
mod write;

use crate::http::tools::route_list::Routes;

/// The routes of this interface.
pub(crate) fn routes() -> Routes {
    let queries = Routes::default().get("/query", query::v1).post("/query", query::v1).compressed();
    queries
        .post("/write", write::v1)
        .post("/api/v2/write", write::v2)
        .post("/api/v2/query", query::v2)
        .get("/ping", ping::ping)
        .get("/health", ping::health)
}
