//! `tacho check`, `tacho backup`, `tacho restore`, `tacho flush` and `tacho compact`: maintenance of a data directory, with or without a running server.

mod backup;
mod check;
mod finding;
mod restore;
mod rewrite;

pub(crate) use backup::BackupArgs;
pub(crate) use backup::run as back_up;
pub(crate) use check::CheckArgs;
pub(crate) use check::run as check;
pub(crate) use restore::RestoreArgs;
pub(crate) use restore::run as restore;
pub(crate) use rewrite::{CompactArgs, FlushArgs, compact, flush};
