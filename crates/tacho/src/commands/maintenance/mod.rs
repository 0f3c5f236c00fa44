//! `tacho check`, `tacho backup` and `tacho restore`: maintenance of a data directory, with or without a running server.

mod backup;
mod check;
mod finding;
mod restore;

pub(crate) use backup::BackupArgs;
pub(crate) use backup::run as back_up;
pub(crate) use check::CheckArgs;
pub(crate) use check::run as check;
pub(crate) use restore::RestoreArgs;
pub(crate) use restore::run as restore;
