//! OpenTSDB's interface for writers: `/api/put`, HiTSDB's `/api/mput`, `/api/version` and `/api/tscount`.
//!
//! `docs/protocol/opentsdb.md` says what is supported and what differs.

mod about;
mod answers;
mod limits;
mod outcome;
mod put;
mod rows;

use super::route_list::Routes;

/// The routes of this interface.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get("/api/version", about::version)
        .get("/api/tscount", about::series_count)
        .post("/api/put", put::values)
        .put("/api/put", put::values)
        .post("/api/mput", put::fields)
}
