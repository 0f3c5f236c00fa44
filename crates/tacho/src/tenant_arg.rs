//! The argument `--tenant` of commands that may open a data directory themselves.

use anyhow::bail;
use clap::Args;
use hub::registry::Registry;
use uuid::Uuid;

/// The tenant that a command on a data directory is about.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TenantArg {
    /// Tenant, if no server runs on the data directory [default: default]. On a server the login decides (--user)
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
}

impl TenantArg {
    /// The tenant in the registry of a directory.
    pub(crate) fn of(&self, registry: &Registry) -> anyhow::Result<Uuid> {
        match &self.tenant {
            None => Ok(registry.default_tenant()),
            Some(name) => Ok(registry.tenant_by_name(name)?.id),
        }
    }

    /// Refuses the argument for a server.
    pub(crate) fn check_server(&self) -> anyhow::Result<()> {
        match self.tenant {
            None => Ok(()),
            Some(_) => bail!(
                "--tenant does not apply: a server runs, and there the login decides; log in as a user of the tenant with --user"
            ),
        }
    }
}
