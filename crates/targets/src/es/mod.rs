//! Elasticsearch 5 to 8 and OpenSearch: bulk loads and searches, the counterpart of esrally's track `geonames`.

mod admin;
mod answers;
mod checks;
mod corpus;
mod driver;
mod mapping;
mod options;
mod protocol;
mod queries;
mod server;

pub(crate) use driver::KIND;
