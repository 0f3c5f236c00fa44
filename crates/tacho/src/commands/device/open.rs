//! Opens the registrar of a data directory or of the server that has it.

use super::offline::OfflineDevices;
use super::registrar::Registrar;
use super::running::Running;
use crate::client::ServerArgs;
use crate::config::Config;
use crate::data_directory::{Access, registry_access};
use crate::tenant_arg::TenantArg;

/// The devices of the server or the directory that the arguments name.
pub(super) fn open_registrar(
    server: &ServerArgs,
    config: &Config,
    tenant: &TenantArg,
    create: bool,
) -> anyhow::Result<Box<dyn Registrar>> {
    Ok(match registry_access(server, config, create)? {
        Access::Server(api) => {
            tenant.check_server()?;
            Box::new(Running::new(api))
        }
        Access::Directory(locked) => {
            let tenant = tenant.of(&locked.registry)?;
            Box::new(OfflineDevices::new(locked, tenant))
        }
    })
}
