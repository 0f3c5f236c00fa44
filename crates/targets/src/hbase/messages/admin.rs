//! Creation and deletion of tables, state of the cluster, load of the regions.

use prost::Message;

use super::names::{RegionSpecifier, ServerName, TableName, TableSchema};

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct CreateTableRequest {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) table_schema: TableSchema,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(in crate::hbase) split_keys: Vec<Vec<u8>>,
}

/// Requests of `DisableTable` and `DeleteTable`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct TableRequest {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) table_name: TableName,
}

/// Answers of `CreateTable`, `DisableTable` and `DeleteTable`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ProcedureResponse {
    #[prost(uint64, optional, tag = "1")]
    pub(in crate::hbase) proc_id: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetProcedureResultRequest {
    #[prost(uint64, required, tag = "1")]
    pub(in crate::hbase) proc_id: u64,
}

/// `GetProcedureResultResponse.State`: the procedure still runs.
pub(in crate::hbase) const PROCEDURE_RUNNING: i32 = 1;

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetProcedureResultResponse {
    #[prost(int32, required, tag = "1")]
    pub(in crate::hbase) state: i32,
    #[prost(message, optional, tag = "5")]
    pub(in crate::hbase) exception: Option<ForeignException>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ForeignException {
    #[prost(message, optional, tag = "2")]
    pub(in crate::hbase) generic_exception: Option<GenericException>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GenericException {
    #[prost(string, optional, tag = "1")]
    pub(in crate::hbase) class_name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(in crate::hbase) message: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetTableDescriptorsRequest {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) table_names: Vec<TableName>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetTableDescriptorsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) table_schema: Vec<TableSchema>,
}

/// `Option` of `GetClusterStatus`: the version of HBase.
pub(in crate::hbase) const OPTION_HBASE_VERSION: i32 = 0;
/// `Option` of `GetClusterStatus`: the names of the region servers.
pub(in crate::hbase) const OPTION_SERVERS_NAME: i32 = 10;

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetClusterStatusRequest {
    #[prost(int32, repeated, packed = "false", tag = "1")]
    pub(in crate::hbase) options: Vec<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetClusterStatusResponse {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) cluster_status: ClusterStatus,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ClusterStatus {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hbase) hbase_version: Option<HbaseVersion>,
    #[prost(message, repeated, tag = "11")]
    pub(in crate::hbase) servers_name: Vec<ServerName>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct HbaseVersion {
    #[prost(string, required, tag = "1")]
    pub(in crate::hbase) version: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct FlushRegionRequest {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) region: RegionSpecifier,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetRegionLoadRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hbase) table_name: Option<TableName>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetRegionLoadResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) region_loads: Vec<RegionLoad>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct RegionLoad {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) region_specifier: RegionSpecifier,
    #[prost(uint32, optional, tag = "3")]
    pub(in crate::hbase) storefiles: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub(in crate::hbase) storefile_size_mb: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub(in crate::hbase) mem_store_size_mb: Option<u32>,
    #[prost(uint64, optional, tag = "8")]
    pub(in crate::hbase) read_requests_count: Option<u64>,
    #[prost(uint64, optional, tag = "9")]
    pub(in crate::hbase) write_requests_count: Option<u64>,
}
