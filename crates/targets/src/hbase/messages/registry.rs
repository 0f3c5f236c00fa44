//! The registries: which servers have the meta table and the master.

use prost::Message;

use super::names::{RegionLocation, ServerName};

/// A message without fields: requests of the registry.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in crate::hbase) struct Empty {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetActiveMasterResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hbase) server_name: Option<ServerName>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetMetaRegionLocationsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) meta_locations: Vec<RegionLocation>,
}

/// Contents of the znodes `meta-region-server` and `master`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ZnodeServer {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) server: ServerName,
}
