//! The messages of HBase's RPC, with the fields that this driver uses. Names and numbers are those of the `.proto` files
//! of HBase 2.6 (`hbase-protocol-shaded`: RPC, Client, HBase, Cell, Registry, Master, Admin, ClusterStatus, Filter,
//! ZooKeeper, ErrorHandling). A reader skips all other fields.

mod admin;
mod data;
mod frame;
mod names;
mod registry;

pub(super) use admin::*;
pub(super) use data::*;
pub(super) use frame::*;
pub(super) use names::*;
pub(super) use registry::*;
