//! The probe of Elasticsearch and OpenSearch: their REST interface.

mod indexes;
mod nodes;
mod probe;
mod quantity;
mod shards;

#[cfg(test)]
mod tests;

pub(super) use probe::connect;
