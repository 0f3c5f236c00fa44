//! Prometheus remote write 1.0.
//!
//! Labels are tags, the label `__name__` is the table, and a sample is the field `value`. `docs/protocol/prometheus.md` describes what
//! differs.

mod rows;
mod write;

use crate::http::tools::route_list::Routes;

/// The routes of this interface.
pub(crate) fn routes() -> Routes {
    Routes::default().post("/api/v1/write", write::write)
}
