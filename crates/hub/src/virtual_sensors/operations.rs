//! Virtual sensors for callers, and the start and the end of their thread.

use std::path::PathBuf;
use std::sync::Arc;

use super::container::ContainerInfo;
use super::engine::Engine;
use super::info::SensorInfo;
use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;

impl Hub {
    /// Loads the sensors of a directory, and follows its changes. They belong to the default tenant. A directory that does not exist
    /// has no sensors until it does.
    pub fn start_virtual_sensors(self: &Arc<Self>, directory: PathBuf) {
        let mut thread = self.sensors.thread.lock();
        if thread.is_none() {
            *thread = Some(Engine::start(self, directory));
        }
    }

    /// Stores how far the sensors have evaluated, and ends their thread. [`close`](Self::close) calls it.
    pub fn stop_virtual_sensors(&self) {
        let Some(thread) = self.sensors.thread.lock().take() else { return };
        self.sensors.tap.stop();
        // The thread cannot have panicked: a panic ends the process.
        drop(thread.join());
    }

    /// The virtual sensors that the caller may read, sorted by name.
    ///
    /// # Errors
    /// The caller may not read.
    pub fn virtual_sensors(&self, caller: &Caller) -> Result<Vec<Arc<SensorInfo>>, Error> {
        caller.check(Action::Read)?;
        let mut infos = self.sensors.infos();
        infos.retain(|info| self.sees_sensor(caller, info));
        Ok(infos)
    }

    /// The virtual sensor with a name, in any case; `None` if there is none that the caller may read. Of several with one name the one
    /// that runs.
    ///
    /// # Errors
    /// The caller may not read.
    pub fn virtual_sensor(&self, caller: &Caller, name: &str) -> Result<Option<Arc<SensorInfo>>, Error> {
        caller.check(Action::Read)?;
        let named = self.sensors.infos_named(&name.to_lowercase()).into_iter();
        let seen = named.filter(|info| self.sees_sensor(caller, info));
        Ok(seen.min_by_key(|info| info.device.is_empty()))
    }

    /// The file of the container, GSN's `gsn.xml`, if the directory of the sensors has one and the caller is of its tenant.
    ///
    /// # Errors
    /// The caller may not read.
    pub fn sensor_container(&self, caller: &Caller) -> Result<Option<Arc<ContainerInfo>>, Error> {
        caller.check(Action::Read)?;
        Ok(self.sensors.container().filter(|_| caller.tenant() == self.registry.default_tenant()))
    }

    /// A sensor is seen by whom its device is seen.
    fn sees_sensor(&self, caller: &Caller, info: &SensorInfo) -> bool {
        let tenant = self.registry.default_tenant();
        let device = self.registry.device_by_name(tenant, &info.device);
        caller.sees(tenant, device.and_then(|device| device.customer))
    }
}
