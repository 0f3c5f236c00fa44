//! Creates the devices of a request, all or none.

use super::defaults::DEFAULT_NAME;
use super::entity::Provisioned;
use super::error::RegistryError;
use super::handle::Registry;
use super::new_devices::{Request, Wanted};
use super::save;
use super::system_time::now_ms;

impl Registry {
    /// Creates the devices of a request in one transaction: all or none. Waits for the disk.
    pub(super) fn provision(
        &self,
        request: &Request<'_>,
        wanted: impl Iterator<Item = Wanted>,
    ) -> Result<Vec<Provisioned>, RegistryError> {
        let mut writer = self.writer.lock();
        let devices = self.plan(request, wanted)?;
        if devices.iter().any(|new| new.created) {
            self.commit(&mut writer, "add devices", |transaction| insert(transaction, &devices))?;
            self.index.write().put_devices(&devices);
        }
        Ok(devices)
    }

    /// Plans a request: the devices to create and the existing ones. Fails if the request must be refused.
    pub(super) fn plan(
        &self,
        request: &Request<'_>,
        wanted: impl Iterator<Item = Wanted>,
    ) -> Result<Vec<Provisioned>, RegistryError> {
        self.check_tenant(request.tenant)?;
        self.check_customer(request.tenant, request.kind.customer)?;
        let index = self.index.read();
        let profile = match request.profile {
            Some(name) => index.profiles.by_name(request.tenant, name),
            None => index.default_profile(request.tenant),
        };
        let unknown = || RegistryError::unknown("profile", request.profile.unwrap_or(DEFAULT_NAME));
        let profile = profile.ok_or_else(unknown)?;
        let now = now_ms();
        wanted.map(|wanted| wanted.plan(&index, request, profile, now)).collect()
    }
}

/// Inserts the devices that a plan creates.
pub(super) fn insert(
    transaction: &rusqlite::Transaction<'_>,
    devices: &[Provisioned],
) -> rusqlite::Result<()> {
    devices.iter().filter(|new| new.created).try_for_each(|new| {
        save::device(transaction, &new.device)?;
        save::credentials(transaction, new.device.id, &new.credentials)
    })
}
