//! Alarms in ThingsBoard's shapes.

mod changes;
mod comments;
pub(crate) mod json;
pub(crate) mod request;
mod searches;

use crate::http::tools::route_list::Routes;

/// The routes of alarms.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .post("/api/alarm", changes::save)
        .get("/api/alarm/{id}", searches::show)
        .delete("/api/alarm/{id}", changes::delete)
        .get("/api/alarm/info/{id}", searches::show_info)
        .post("/api/alarm/{id}/ack", changes::acknowledge)
        .post("/api/alarm/{id}/clear", changes::clear)
        .post("/api/alarm/{id}/assign/{user}", changes::assign)
        .delete("/api/alarm/{id}/assign", changes::unassign)
        .post("/api/alarm/{id}/comment", comments::save)
        .get("/api/alarm/{id}/comment", comments::list)
        .delete("/api/alarm/{id}/comment/{comment}", comments::delete)
        .get("/api/alarm/{kind}/{id}", searches::of_entity)
        .get("/api/v2/alarm/{kind}/{id}", searches::of_entity_v2)
        .get("/api/alarms", searches::all)
        .get("/api/v2/alarms", searches::all_v2)
        .get("/api/alarm/highestSeverity/{kind}/{id}", searches::highest_severity)
        .get("/api/alarm/types", searches::types)
}
