//! Names of tables, regions and servers, and the schema of a table.

use prost::Message;

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct TableName {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(in crate::hbase) namespace: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "2")]
    pub(in crate::hbase) qualifier: Vec<u8>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct BytesBytesPair {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(in crate::hbase) first: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "2")]
    pub(in crate::hbase) second: Vec<u8>,
}

/// The class of an exception with its text.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct NameBytesPair {
    #[prost(string, required, tag = "1")]
    pub(in crate::hbase) name: String,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(in crate::hbase) value: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ColumnFamilySchema {
    #[prost(bytes = "vec", required, tag = "1")]
    pub(in crate::hbase) name: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub(in crate::hbase) attributes: Vec<BytesBytesPair>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct TableSchema {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hbase) table_name: Option<TableName>,
    #[prost(message, repeated, tag = "3")]
    pub(in crate::hbase) column_families: Vec<ColumnFamilySchema>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct RegionInfo {
    #[prost(uint64, required, tag = "1")]
    pub(in crate::hbase) region_id: u64,
    #[prost(message, required, tag = "2")]
    pub(in crate::hbase) table_name: TableName,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub(in crate::hbase) start_key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(in crate::hbase) end_key: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "5")]
    pub(in crate::hbase) offline: Option<bool>,
    #[prost(bool, optional, tag = "6")]
    pub(in crate::hbase) split: Option<bool>,
}

/// The kind of a region's name: its full name.
pub(in crate::hbase) const REGION_NAME: i32 = 1;

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct RegionSpecifier {
    #[prost(int32, required, tag = "1")]
    pub(in crate::hbase) kind: i32,
    #[prost(bytes = "vec", required, tag = "2")]
    pub(in crate::hbase) value: Vec<u8>,
}

impl RegionSpecifier {
    /// A region by its full name.
    pub(in crate::hbase) fn named(name: &[u8]) -> Self {
        Self { kind: REGION_NAME, value: name.to_vec() }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Message)]
pub(in crate::hbase) struct ServerName {
    #[prost(string, required, tag = "1")]
    pub(in crate::hbase) host_name: String,
    #[prost(uint32, optional, tag = "2")]
    pub(in crate::hbase) port: Option<u32>,
    #[prost(uint64, optional, tag = "3")]
    pub(in crate::hbase) start_code: Option<u64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct RegionLocation {
    #[prost(message, required, tag = "1")]
    pub(in crate::hbase) region_info: RegionInfo,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hbase) server_name: Option<ServerName>,
}
