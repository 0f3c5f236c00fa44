//! Virtual sensors for callers.

use std::sync::Arc;

use hub::Error;
use hub::caller::{Action, Caller};

use crate::files::ContainerInfo;
use crate::info::SensorInfo;
use crate::virtual_sensors::VirtualSensors;

impl VirtualSensors {
    /// The virtual sensors that the caller may read, sorted by name.
    ///
    /// # Errors
    /// The caller may not read.
    pub fn sensors(&self, caller: &Caller) -> Result<Vec<Arc<SensorInfo>>, Error> {
        caller.check(Action::Read)?;
        let mut infos = self.host.sensors.infos();
        infos.retain(|info| self.sees_sensor(caller, info));
        Ok(infos)
    }

    /// The virtual sensor with a name, in any case; `None` if there is none that the caller may read. Of several with one name the one
    /// that runs.
    ///
    /// # Errors
    /// The caller may not read.
    pub fn sensor(&self, caller: &Caller, name: &str) -> Result<Option<Arc<SensorInfo>>, Error> {
        caller.check(Action::Read)?;
        let named = self.host.sensors.infos_named(&name.to_lowercase()).into_iter();
        let seen = named.filter(|info| self.sees_sensor(caller, info));
        Ok(seen.min_by_key(|info| info.device.is_empty()))
    }

    /// The file of the container, GSN's `gsn.xml`, if the directory of the sensors has one and the caller is of its tenant.
    ///
    /// # Errors
    /// The caller may not read.
    pub fn container(&self, caller: &Caller) -> Result<Option<Arc<ContainerInfo>>, Error> {
        caller.check(Action::Read)?;
        Ok(self.host.sensors.container().filter(|_| caller.tenant() == self.host.registry().default_tenant()))
    }

    /// A sensor is seen by whom its device is seen.
    fn sees_sensor(&self, caller: &Caller, info: &SensorInfo) -> bool {
        let tenant = self.host.registry().default_tenant();
        let device = self.host.registry().device_by_name(tenant, &info.device);
        caller.sees(tenant, device.and_then(|device| device.customer))
    }
}
