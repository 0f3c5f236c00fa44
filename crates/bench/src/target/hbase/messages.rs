//! The messages of HBase's RPC, with the fields that this driver uses. Names and numbers are those of the `.proto` files
//! of HBase 2.6 (`hbase-protocol-shaded`: RPC, Client, HBase, Cell, Registry, Master, Admin, ClusterStatus, Filter,
//! ZooKeeper, ErrorHandling). A reader skips all other fields.

use prost::Message;

/// Who uses a connection.
#[derive(Clone, PartialEq, Message)]
pub(super) struct UserInformation {
    #[prost(string, required, tag = "1")]
    pub(super) effective_user: String,
}

/// The version of the client. A server reads it to decide which answers the client understands.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionInfo {
    #[prost(string, required, tag = "1")]
    pub(super) version: String,
    #[prost(string, required, tag = "2")]
    pub(super) url: String,
    #[prost(string, required, tag = "3")]
    pub(super) revision: String,
    #[prost(string, required, tag = "4")]
    pub(super) user: String,
    #[prost(string, required, tag = "5")]
    pub(super) date: String,
    #[prost(string, required, tag = "6")]
    pub(super) src_checksum: String,
    #[prost(uint32, optional, tag = "7")]
    pub(super) version_major: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub(super) version_minor: Option<u32>,
}

/// The first message of a connection.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ConnectionHeader {
    #[prost(message, optional, tag = "1")]
    pub(super) user_info: Option<UserInformation>,
    #[prost(string, optional, tag = "2")]
    pub(super) service_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) cell_block_codec_class: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) version_info: Option<VersionInfo>,
}

/// The size of a cell block.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct CellBlockMeta {
    #[prost(uint32, optional, tag = "1")]
    pub(super) length: Option<u32>,
}

/// An exception instead of an answer.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ExceptionResponse {
    #[prost(string, optional, tag = "1")]
    pub(super) exception_class_name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) stack_trace: Option<String>,
    /// The server that a region has moved to.
    #[prost(string, optional, tag = "3")]
    pub(super) hostname: Option<String>,
    #[prost(int32, optional, tag = "4")]
    pub(super) port: Option<i32>,
    #[prost(bool, optional, tag = "5")]
    pub(super) do_not_retry: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RequestHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(super) call_id: Option<u32>,
    #[prost(string, optional, tag = "3")]
    pub(super) method_name: Option<String>,
    #[prost(bool, optional, tag = "4")]
    pub(super) request_param: Option<bool>,
    #[prost(message, optional, tag = "5")]
    pub(super) cell_block_meta: Option<CellBlockMeta>,
    /// Milliseconds.
    #[prost(uint32, optional, tag = "7")]
    pub(super) timeout: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResponseHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(super) call_id: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(super) exception: Option<ExceptionResponse>,
    #[prost(message, optional, tag = "3")]
    pub(super) cell_block_meta: Option<CellBlockMeta>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TableName {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(super) namespace: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "2")]
    pub(super) qualifier: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct BytesBytesPair {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(super) first: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "2")]
    pub(super) second: Vec<u8>,
}

/// The class of an exception with its text.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct NameBytesPair {
    #[prost(string, required, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) value: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ColumnFamilySchema {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(super) name: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub(super) attributes: Vec<BytesBytesPair>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TableSchema {
    #[prost(message, optional, tag = "1")]
    pub(super) table_name: Option<TableName>,
    #[prost(message, repeated, tag = "3")]
    pub(super) column_families: Vec<ColumnFamilySchema>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RegionInfo {
    #[prost(uint64, required, tag = "1")]
    pub(super) region_id: u64,
    #[prost(message, required, tag = "2")]
    pub(super) table_name: TableName,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) start_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(super) end_key: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "5")]
    pub(super) offline: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    pub(super) split: Option<bool>,
}

/// The kind of a region's name: its full name.
pub(super) const REGION_NAME: i32 = 1;

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RegionSpecifier {
    #[prost(int32, required, tag = "1")]
    pub(super) kind: i32,
    #[prost(bytes = "vec", required, tag = "2")]
    pub(super) value: Vec<u8>,
}

impl RegionSpecifier {
    /// A region by its full name.
    pub(super) fn named(name: &[u8]) -> Self {
        Self { kind: REGION_NAME, value: name.to_vec() }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Message)]
pub(super) struct ServerName {
    #[prost(string, required, tag = "1")]
    pub(super) host_name: String,
    #[prost(uint32, optional, tag = "2")]
    pub(super) port: Option<u32>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) start_code: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RegionLocation {
    #[prost(message, required, tag = "1")]
    pub(super) region_info: RegionInfo,
    #[prost(message, optional, tag = "2")]
    pub(super) server_name: Option<ServerName>,
}

/// A message without fields: requests of the registry.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Empty {}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetActiveMasterResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) server_name: Option<ServerName>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetMetaRegionLocationsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) meta_locations: Vec<RegionLocation>,
}

/// Contents of the znodes `meta-region-server` and `master`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ZnodeServer {
    #[prost(message, required, tag = "1")]
    pub(super) server: ServerName,
}

/// A cell within a message. Servers send cells in cell blocks where a connection has a codec.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct PbCell {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) row: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) family: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) qualifier: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(super) value: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Column {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(super) family: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(super) qualifier: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Get {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(super) row: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub(super) column: Vec<Column>,
    #[prost(bool, optional, tag = "7")]
    pub(super) cache_blocks: Option<bool>,
}

/// Cells of a row: in the message, or the number of those in the cell block.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct CellResult {
    #[prost(message, repeated, tag = "1")]
    pub(super) cell: Vec<PbCell>,
    #[prost(int32, optional, tag = "2")]
    pub(super) associated_cell_count: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetRequest {
    #[prost(message, required, tag = "1")]
    pub(super) region: RegionSpecifier,
    #[prost(message, required, tag = "2")]
    pub(super) get: Get,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) result: Option<CellResult>,
}

/// `MutationProto.Durability`: the log is not written.
pub(super) const SKIP_WAL: i32 = 1;
/// `MutationProto.Durability`: the log is written before the answer.
pub(super) const SYNC_WAL: i32 = 3;
/// `MutationProto.MutationType` of a put.
pub(super) const PUT: i32 = 2;

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Mutation {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) row: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub(super) mutate_type: Option<i32>,
    #[prost(int32, optional, tag = "6")]
    pub(super) durability: Option<i32>,
    #[prost(int32, optional, tag = "8")]
    pub(super) associated_cell_count: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct MutateRequest {
    #[prost(message, required, tag = "1")]
    pub(super) region: RegionSpecifier,
    #[prost(message, required, tag = "2")]
    pub(super) mutation: Mutation,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct MutateResponse {
    #[prost(bool, optional, tag = "2")]
    pub(super) processed: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Action {
    #[prost(uint32, optional, tag = "1")]
    pub(super) index: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(super) mutation: Option<Mutation>,
    #[prost(message, optional, tag = "3")]
    pub(super) get: Option<Get>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RegionAction {
    #[prost(message, required, tag = "1")]
    pub(super) region: RegionSpecifier,
    #[prost(message, repeated, tag = "3")]
    pub(super) action: Vec<Action>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct MultiRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) region_action: Vec<RegionAction>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ResultOrException {
    #[prost(uint32, optional, tag = "1")]
    pub(super) index: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(super) result: Option<CellResult>,
    #[prost(message, optional, tag = "3")]
    pub(super) exception: Option<NameBytesPair>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RegionActionResult {
    #[prost(message, repeated, tag = "1")]
    pub(super) result_or_exception: Vec<ResultOrException>,
    /// An exception for all actions of the region.
    #[prost(message, optional, tag = "2")]
    pub(super) exception: Option<NameBytesPair>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct MultiResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) region_action_result: Vec<RegionActionResult>,
}

/// A filter by its class, with its own message.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Filter {
    #[prost(string, required, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) serialized_filter: Option<Vec<u8>>,
}

/// All filters of the list must let a row pass.
pub(super) const MUST_PASS_ALL: i32 = 1;

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FilterList {
    #[prost(int32, required, tag = "1")]
    pub(super) operator: i32,
    #[prost(message, repeated, tag = "2")]
    pub(super) filters: Vec<Filter>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WhileMatchFilter {
    #[prost(message, required, tag = "1")]
    pub(super) filter: Filter,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PageFilter {
    #[prost(int64, required, tag = "1")]
    pub(super) page_size: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Scan {
    #[prost(message, repeated, tag = "1")]
    pub(super) column: Vec<Column>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(super) start_row: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(super) stop_row: Option<Vec<u8>>,
    #[prost(message, optional, tag = "5")]
    pub(super) filter: Option<Filter>,
    #[prost(bool, optional, tag = "8")]
    pub(super) cache_blocks: Option<bool>,
    #[prost(uint64, optional, tag = "10")]
    pub(super) max_result_size: Option<u64>,
    #[prost(uint32, optional, tag = "17")]
    pub(super) caching: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ScanRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) region: Option<RegionSpecifier>,
    #[prost(message, optional, tag = "2")]
    pub(super) scan: Option<Scan>,
    #[prost(uint64, optional, tag = "3")]
    pub(super) scanner_id: Option<u64>,
    #[prost(uint32, optional, tag = "4")]
    pub(super) number_of_rows: Option<u32>,
    #[prost(bool, optional, tag = "5")]
    pub(super) close_scanner: Option<bool>,
    #[prost(uint64, optional, tag = "6")]
    pub(super) next_call_seq: Option<u64>,
    #[prost(bool, optional, tag = "7")]
    pub(super) client_handles_partials: Option<bool>,
    #[prost(bool, optional, tag = "8")]
    pub(super) client_handles_heartbeats: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ScanResponse {
    #[prost(uint32, repeated, packed = "false", tag = "1")]
    pub(super) cells_per_result: Vec<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(super) scanner_id: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub(super) more_results: Option<bool>,
    #[prost(message, repeated, tag = "5")]
    pub(super) results: Vec<CellResult>,
    #[prost(bool, optional, tag = "8")]
    pub(super) more_results_in_region: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct CreateTableRequest {
    #[prost(message, required, tag = "1")]
    pub(super) table_schema: TableSchema,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(super) split_keys: Vec<Vec<u8>>,
}

/// Requests of `DisableTable` and `DeleteTable`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TableRequest {
    #[prost(message, required, tag = "1")]
    pub(super) table_name: TableName,
}

/// Answers of `CreateTable`, `DisableTable` and `DeleteTable`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ProcedureResponse {
    #[prost(uint64, optional, tag = "1")]
    pub(super) proc_id: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct GetProcedureResultRequest {
    #[prost(uint64, required, tag = "1")]
    pub(super) proc_id: u64,
}

/// `GetProcedureResultResponse.State`: the procedure still runs.
pub(super) const PROCEDURE_RUNNING: i32 = 1;

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetProcedureResultResponse {
    #[prost(int32, required, tag = "1")]
    pub(super) state: i32,
    #[prost(message, optional, tag = "5")]
    pub(super) exception: Option<ForeignException>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ForeignException {
    #[prost(message, optional, tag = "2")]
    pub(super) generic_exception: Option<GenericException>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GenericException {
    #[prost(string, optional, tag = "1")]
    pub(super) class_name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(super) message: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetTableDescriptorsRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) table_names: Vec<TableName>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetTableDescriptorsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) table_schema: Vec<TableSchema>,
}

/// `Option` of `GetClusterStatus`: the version of HBase.
pub(super) const OPTION_HBASE_VERSION: i32 = 0;
/// `Option` of `GetClusterStatus`: the names of the region servers.
pub(super) const OPTION_SERVERS_NAME: i32 = 10;

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetClusterStatusRequest {
    #[prost(int32, repeated, packed = "false", tag = "1")]
    pub(super) options: Vec<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetClusterStatusResponse {
    #[prost(message, required, tag = "1")]
    pub(super) cluster_status: ClusterStatus,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ClusterStatus {
    #[prost(message, optional, tag = "1")]
    pub(super) hbase_version: Option<HbaseVersion>,
    #[prost(message, repeated, tag = "11")]
    pub(super) servers_name: Vec<ServerName>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct HbaseVersion {
    #[prost(string, required, tag = "1")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FlushRegionRequest {
    #[prost(message, required, tag = "1")]
    pub(super) region: RegionSpecifier,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetRegionLoadRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) table_name: Option<TableName>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct GetRegionLoadResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) region_loads: Vec<RegionLoad>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RegionLoad {
    #[prost(message, required, tag = "1")]
    pub(super) region_specifier: RegionSpecifier,
    #[prost(uint32, optional, tag = "3")]
    pub(super) storefiles: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) storefile_size_mb: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub(super) mem_store_size_mb: Option<u32>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) read_requests_count: Option<u64>,
    #[prost(uint64, optional, tag = "9")]
    pub(super) write_requests_count: Option<u64>,
}
