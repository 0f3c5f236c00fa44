//! The frames of a connection: headers, exceptions, cell blocks.

use prost::Message;

/// Who uses a connection.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hbase) struct UserInformation {
    #[prost(string, required, tag = "1")]
    pub(in crate::hbase) effective_user: String,
}

/// The version of the client. A server reads it to decide which answers the client understands.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hbase) struct VersionInfo {
    #[prost(string, required, tag = "1")]
    pub(in crate::hbase) version: String,
    #[prost(string, required, tag = "2")]
    pub(in crate::hbase) url: String,
    #[prost(string, required, tag = "3")]
    pub(in crate::hbase) revision: String,
    #[prost(string, required, tag = "4")]
    pub(in crate::hbase) user: String,
    #[prost(string, required, tag = "5")]
    pub(in crate::hbase) date: String,
    #[prost(string, required, tag = "6")]
    pub(in crate::hbase) src_checksum: String,
    #[prost(uint32, optional, tag = "7")]
    pub(in crate::hbase) version_major: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub(in crate::hbase) version_minor: Option<u32>,
}

/// The first message of a connection.
#[derive(Clone, PartialEq, Message)]
pub(in crate::hbase) struct ConnectionHeader {
    #[prost(message, optional, tag = "1")]
    pub(in crate::hbase) user_info: Option<UserInformation>,
    #[prost(string, optional, tag = "2")]
    pub(in crate::hbase) service_name: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub(in crate::hbase) cell_block_codec_class: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(in crate::hbase) version_info: Option<VersionInfo>,
}

/// The size of a cell block.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(in crate::hbase) struct CellBlockMeta {
    #[prost(uint32, optional, tag = "1")]
    pub(in crate::hbase) length: Option<u32>,
}

/// An exception instead of an answer.
#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ExceptionResponse {
    #[prost(string, optional, tag = "1")]
    pub(in crate::hbase) exception_class_name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub(in crate::hbase) stack_trace: Option<String>,
    /// The server that a region has moved to.
    #[prost(string, optional, tag = "3")]
    pub(in crate::hbase) hostname: Option<String>,
    #[prost(int32, optional, tag = "4")]
    pub(in crate::hbase) port: Option<i32>,
    #[prost(bool, optional, tag = "5")]
    pub(in crate::hbase) do_not_retry: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct RequestHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(in crate::hbase) call_id: Option<u32>,
    #[prost(string, optional, tag = "3")]
    pub(in crate::hbase) method_name: Option<String>,
    #[prost(bool, optional, tag = "4")]
    pub(in crate::hbase) request_param: Option<bool>,
    #[prost(message, optional, tag = "5")]
    pub(in crate::hbase) cell_block_meta: Option<CellBlockMeta>,
    /// Milliseconds.
    #[prost(uint32, optional, tag = "7")]
    pub(in crate::hbase) timeout: Option<u32>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(in crate::hbase) struct ResponseHeader {
    #[prost(uint32, optional, tag = "1")]
    pub(in crate::hbase) call_id: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub(in crate::hbase) exception: Option<ExceptionResponse>,
    #[prost(message, optional, tag = "3")]
    pub(in crate::hbase) cell_block_meta: Option<CellBlockMeta>,
}
