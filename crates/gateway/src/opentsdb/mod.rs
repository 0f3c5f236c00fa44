//! The interface of OpenTSDB 2.4 and HiTSDB: points in, over HTTP and in lines; queries, lists of names and
//! annotations out.
//!
//! `docs/protocol/opentsdb.md` describes what is supported and what differs.

mod annotation;
mod annotation_body;
mod annotation_query;
mod answers;
mod body;
mod fields;
mod hitsdb;
mod last;
mod lenient;
mod limits;
mod names;
mod outcome;
mod put;
mod query;
mod query_answer;
mod query_body;
mod query_params;
mod query_request;
mod refused_members;
mod request;
mod rows;
mod server_info;
pub(crate) mod telnet;
mod version;

use crate::http::tools::route_list::Routes;

/// The routes of this interface.
pub(crate) fn routes() -> Routes {
    let routes = writing().merge(annotation::routes()).merge(looking_after());
    routes.merge(reading()).merge(about_the_server()).compressed()
}

fn writing() -> Routes {
    Routes::default()
        .post("/api/put", put::values)
        .put("/api/put", put::values)
        .post("/api/mput", put::fields)
}

fn looking_after() -> Routes {
    Routes::default()
        .get("/api/ttl", hitsdb::ttl)
        .post("/api/ttl", hitsdb::set_ttl)
        .post("/api/delete_data", hitsdb::delete_data)
        .post("/api/delete_meta", hitsdb::delete_meta)
}

fn reading() -> Routes {
    Routes::default()
        .get("/api/query", query::get)
        .post("/api/query", query::post)
        .delete("/api/query", query::delete)
        .get("/api/query/last", last::get)
        .post("/api/query/last", last::post)
        .post("/api/query/mlast", fields::last)
        .post("/api/mquery", fields::query)
        .get("/api/suggest", names::suggest)
        .post("/api/suggest", names::suggest_by_body)
        .get("/api/search/lookup", names::lookup)
        .post("/api/search/lookup", names::lookup_by_body)
        .post("/api/dump_meta", names::dump_meta)
}

fn about_the_server() -> Routes {
    Routes::default()
        .get("/api/version", version::version)
        .post("/api/version", version::version)
        .get("/api/tscount", version::series_count)
        .get("/api/aggregators", server_info::aggregators)
        .post("/api/aggregators", server_info::aggregators)
        .get("/api/config", server_info::config)
        .post("/api/config", server_info::config)
        .get("/api/config/filters", server_info::filters)
        .post("/api/config/filters", server_info::filters)
        .get("/api/stats", server_info::stats)
        .post("/api/stats", server_info::stats)
        .get("/api/dropcaches", server_info::drop_caches)
        .delete("/api/dropcaches", server_info::drop_caches)
        .get("/api/uid/{operation}", server_info::uid)
        .post("/api/uid/{operation}", server_info::uid)
        .put("/api/uid/{operation}", server_info::uid)
        .delete("/api/uid/{operation}", server_info::uid)
}
