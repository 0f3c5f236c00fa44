//! The commands of `tacho`, a module each. No command imports another.

pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod device;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod maintenance;
pub(crate) mod sensor;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod sql;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod tenant;
pub(crate) mod tls;
pub(crate) mod tune;
pub(crate) mod user;
