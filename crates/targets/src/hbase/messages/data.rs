//! Gets, puts and scans.

use prost::Message;

use super::names::{NameBytesPair, RegionSpecifier};

/// A cell within a message. Servers send cells in cell blocks where a connection has a codec.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct PbCell {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(in crate::hbase) row: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(in crate::hbase) family: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(in crate::hbase) qualifier: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "6")]
    pub(in crate::hbase) value: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct Column {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(in crate::hbase) family: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub(in crate::hbase) qualifier: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct Get {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(in crate::hbase) row: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::hbase) column: Vec<Column>,
    #[prost(bool, optional, tag = "7")]
    pub(in crate::hbase) cache_blocks: Option<bool>,
}

/// Cells of a row: in the message, or the number of those in the cell block.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct CellResult {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) cell: Vec<PbCell>,
    #[prost(int32, optional, tag = "2")]
    pub(in crate::hbase) associated_cell_count: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetRequest {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) region: RegionSpecifier,
    #[prost(message, required, tag = "2")]
    pub(in crate::hbase) get: Get,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct GetResponse {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hbase) result: Option<CellResult>,
}

/// `MutationProto.Durability`: the log is not written.
pub(in crate::hbase) const SKIP_WAL: i32 = 1;
/// `MutationProto.Durability`: the log is written before the answer.
pub(in crate::hbase) const SYNC_WAL: i32 = 3;
/// `MutationProto.MutationType` of a put.
pub(in crate::hbase) const PUT: i32 = 2;

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct Mutation {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(in crate::hbase) row: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub(in crate::hbase) mutate_type: Option<i32>,
    #[prost(int32, optional, tag = "6")]
    pub(in crate::hbase) durability: Option<i32>,
    #[prost(int32, optional, tag = "8")]
    pub(in crate::hbase) associated_cell_count: Option<i32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct MutateRequest {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) region: RegionSpecifier,
    #[prost(message, required, tag = "2")]
    pub(in crate::hbase) mutation: Mutation,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in crate::hbase) struct MutateResponse {
    #[prost(bool, optional, tag = "2")]
    pub(in crate::hbase) processed: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct Action {
    #[prost(uint32, optional, tag = "1")]
    pub(in crate::hbase) index: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hbase) mutation: Option<Mutation>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::hbase) get: Option<Get>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct RegionAction {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) region: RegionSpecifier,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::hbase) action: Vec<Action>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct MultiRequest {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) region_action: Vec<RegionAction>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ResultOrException {
    #[prost(uint32, optional, tag = "1")]
    pub(in crate::hbase) index: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hbase) result: Option<CellResult>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::hbase) exception: Option<NameBytesPair>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct RegionActionResult {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) result_or_exception: Vec<ResultOrException>,
    /// An exception for all actions of the region.
    #[prost(message, optional, tag = "2")]
    pub(in crate::hbase) exception: Option<NameBytesPair>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct MultiResponse {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) region_action_result: Vec<RegionActionResult>,
}

/// A filter by its class, with its own message.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct Filter {
    #[prost(string, required, tag = "1")]
    pub(in crate::hbase) name: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(in crate::hbase) serialized_filter: Option<Vec<u8>>,
}

/// All filters of the list must let a row pass.
pub(in crate::hbase) const MUST_PASS_ALL: i32 = 1;

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct FilterList {
    #[prost(int32, required, tag = "1")]
    pub(in crate::hbase) operator: i32,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::hbase) filters: Vec<Filter>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct WhileMatchFilter {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) filter: Filter,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in crate::hbase) struct PageFilter {
    #[prost(int64, required, tag = "1")]
    pub(in crate::hbase) page_size: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct Scan {
    #[prost(message, repeated, tag = "1")]
    pub(in crate::hbase) column: Vec<Column>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(in crate::hbase) start_row: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(in crate::hbase) stop_row: Option<Vec<u8>>,
    #[prost(message, optional, tag = "5")]
    pub(in crate::hbase) filter: Option<Filter>,
    #[prost(bool, optional, tag = "8")]
    pub(in crate::hbase) cache_blocks: Option<bool>,
    #[prost(uint64, optional, tag = "10")]
    pub(in crate::hbase) max_result_size: Option<u64>,
    #[prost(uint32, optional, tag = "17")]
    pub(in crate::hbase) caching: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ScanRequest {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hbase) region: Option<RegionSpecifier>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hbase) scan: Option<Scan>,
    #[prost(uint64, optional, tag = "3")]
    pub(in crate::hbase) scanner_id: Option<u64>,
    #[prost(uint32, optional, tag = "4")]
    pub(in crate::hbase) number_of_rows: Option<u32>,
    #[prost(bool, optional, tag = "5")]
    pub(in crate::hbase) close_scanner: Option<bool>,
    #[prost(uint64, optional, tag = "6")]
    pub(in crate::hbase) next_call_seq: Option<u64>,
    #[prost(bool, optional, tag = "7")]
    pub(in crate::hbase) client_handles_partials: Option<bool>,
    #[prost(bool, optional, tag = "8")]
    pub(in crate::hbase) client_handles_heartbeats: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ScanResponse {
    #[prost(uint32, repeated, packed = "false", tag = "1")]
    pub(in crate::hbase) cells_per_result: Vec<u32>,
    #[prost(uint64, optional, tag = "2")]
    pub(in crate::hbase) scanner_id: Option<u64>,
    #[prost(bool, optional, tag = "3")]
    pub(in crate::hbase) more_results: Option<bool>,
    #[prost(message, repeated, tag = "5")]
    pub(in crate::hbase) results: Vec<CellResult>,
    #[prost(bool, optional, tag = "8")]
    pub(in crate::hbase) more_results_in_region: Option<bool>,
}
