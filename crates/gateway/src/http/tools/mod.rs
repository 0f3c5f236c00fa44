//! What every interface over HTTP uses: the state of a door, its list of routes, the extractors of a request (session, path, body), and
//! the writers of an answer (JSON, pieces, compression). It knows no interface.

pub(crate) mod bodies;
pub(crate) mod body_check;
pub(crate) mod chunked_body;
pub(crate) mod compression;
pub(crate) mod connection;
pub(crate) mod error_response;
pub(crate) mod json;
pub(crate) mod messages;
pub(crate) mod package_file;
pub(crate) mod passwords;
pub(crate) mod pieces;
pub(crate) mod plain_body;
pub(crate) mod polls;
pub(crate) mod request;
pub(crate) mod route_list;
pub(crate) mod series_caller;
pub(crate) mod series_rows;
pub(crate) mod session;
pub(crate) mod state;
pub(crate) mod stream;
