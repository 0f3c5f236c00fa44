//! Operations of connectors: which sources there are, where they were, and what was done.

use hub::Error;
use hub::blocking_append::wait_durable_keys;
use hub::caller::{Action, Caller};
use hub::registry::Device;
use kv::{Space, WriteBatch};
use tokio::sync::watch;

use crate::info::{ExternalSource, SourceState};
use crate::metrics::SourceCounts;
use crate::shared::ExternalSources;
use crate::virtual_sensors::VirtualSensors;

/// Places in files and other sources, by the names of the devices of their elements.
const PLACES: Space = Space::new("virtual_sensor_places");

impl VirtualSensors {
    /// The sources of virtual sensors whose elements come from outside, now and whenever they change. They have the secrets of their
    /// descriptors.
    ///
    /// # Errors
    /// The caller may not see credentials of the default tenant, which has all sensors.
    pub fn external_sources(&self, caller: &Caller) -> Result<watch::Receiver<ExternalSources>, Error> {
        caller.check_on(Action::SeeCredentials, self.host.registry().default_tenant(), None)?;
        Ok(self.host.sensors.connectors.sources.subscribe())
    }

    /// Shows what the connector of a source has done.
    ///
    /// # Errors
    /// The caller may not change the device of the source.
    pub fn report_source(
        &self,
        caller: &Caller,
        source: &ExternalSource,
        state: SourceState,
    ) -> Result<(), Error> {
        let device = &source.device;
        caller.check_on(Action::ManageDevices, device.tenant, device.customer)?;
        let sources = self.host.sensors.connectors.sources.borrow();
        if !sources.iter().any(|source| source.device.id == device.id) {
            // The sensor is gone, and its metrics with it.
            return Ok(());
        }
        let mut states = self.host.sensors.connectors.states.lock();
        let before = states.get(&device.id).map(SourceCounts::of).unwrap_or_default();
        let (sensor, name) = (&source.sensor, source.source());
        self.host.sensors.metrics.count_source((sensor, &name), &before, &SourceCounts::of(&state));
        states.insert(device.id, state);
        Ok(())
    }

    /// The place up to which a source was read, as [`set_source_place`](Self::set_source_place) has stored it.
    ///
    /// # Errors
    /// The caller may not read devices of the default tenant, which has all sensors, or the key-value store fails.
    pub fn source_place(&self, caller: &Caller, device: &Device) -> Result<Option<Vec<u8>>, Error> {
        caller.check_on(Action::Read, self.host.registry().default_tenant(), device.customer)?;
        Ok(self.host.kv.get(PLACES, device.name.as_bytes())?.map(|bytes| bytes.to_vec()))
    }

    /// Stores the place up to which a source was read, and waits for the disk. The rows up to there must be durable.
    ///
    /// # Errors
    /// The caller may not write values of the default tenant, which has all sensors, or the key-value store is busy or fails.
    pub fn set_source_place(&self, caller: &Caller, device: &Device, place: &[u8]) -> Result<(), Error> {
        caller.check_on(Action::Write, self.host.registry().default_tenant(), device.customer)?;
        let mut batch = WriteBatch::new();
        batch.put(PLACES, device.name.as_bytes().to_vec(), place.to_vec());
        let sequence = self.host.kv.commit(&batch)?;
        Ok(wait_durable_keys(&*self.host.kv, sequence)?)
    }
}
