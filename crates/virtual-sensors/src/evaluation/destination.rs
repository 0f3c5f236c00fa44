//! Where the output of a sensor goes: a device of a profile, both named as the sensor.

use std::sync::Arc;
use std::time::Duration;

use hub::Error;
use hub::caller::Caller;
use hub::registry::{Device, NewDevice, Profile, ProfileFields};
use model::SeriesId;
use sensors::virtual_sensors::plan::{Extent, ExternalWrapper, SourceId};
use store::StoreError;

use crate::files::Candidate;
use crate::files::{input_device, input_profile};
use crate::host::Host;
use crate::info::ExternalSource;

/// The device of a sensor, with its series.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    pub(super) device: Arc<Device>,
    pub(super) series: SeriesId,
}

impl Destination {
    /// The destination of a sensor. What is not there is added. Waits for the disk.
    ///
    /// # Errors
    /// The name belongs to something else, or the registry or the store refuses.
    pub(super) fn of(host: &Host, candidate: &Candidate) -> Result<Self, String> {
        let name = candidate.descriptor.name.value.as_str();
        let caller = Caller::local(host.registry().default_tenant());
        let device = match host.registry().device_by_name(caller.tenant(), name) {
            Some(device) if device.profile.name == name => device,
            Some(device) => {
                return Err(format!(
                    "a device {name:?} of the profile {:?} exists, and the output would be mixed with its values; rename the sensor or \
                     the device",
                    device.profile.name
                ));
            }
            None => add_device(host, &caller, candidate).map_err(|error| error.to_string())?,
        };
        let series = host.hub.series_of(&device).map_err(|error| error.to_string())?;
        keep_history(host, &caller, &device, candidate).map_err(|error| error.to_string())?;
        Ok(Self { device, series })
    }

    /// The series, which somebody may have deleted.
    pub(super) fn find_again(&mut self, host: &Host) -> Result<(), StoreError> {
        self.series = host.hub.series_of(&self.device)?;
        Ok(())
    }
}

/// The sources of a sensor whose elements come from outside, with their devices. A device that is not there is added. Waits for the disk.
///
/// # Errors
/// The name of a device belongs to something else, or the registry refuses.
pub(super) fn external_sources(
    host: &Host,
    candidate: &Candidate,
) -> Result<Vec<Arc<ExternalSource>>, String> {
    let profile = input_profile(&candidate.plan.name);
    let caller = Caller::local(host.registry().default_tenant());
    let of = |(id, external): (SourceId, &ExternalWrapper)| {
        let name = input_device(&candidate.plan, id);
        let device = match host.registry().device_by_name(caller.tenant(), &name) {
            Some(device) if device.profile.name == profile => device,
            Some(device) => {
                let other = &device.profile.name;
                return Err(format!(
                    "a device {name:?} of the profile {other:?} exists; the sensor needs the name"
                ));
            }
            None => add_input(host, &caller, &name, &profile).map_err(|error| error.to_string())?,
        };
        Ok(Arc::new(candidate.external_source((id, external), device)))
    };
    candidate.external().map(of).collect()
}

fn add_input(host: &Host, caller: &Caller, name: &str, profile: &str) -> Result<Arc<Device>, Error> {
    if host.registry().profile(caller.tenant(), profile).is_none() {
        let description = Some("Elements of a virtual sensor from outside");
        host.hub
            .add_profile(caller, ProfileFields { name: profile, description, ..ProfileFields::default() })?;
    }
    let new = NewDevice { name, profile: Some(profile), ..NewDevice::default() };
    Ok(host.hub.add_device(caller, new)?.device)
}

fn add_device(host: &Host, caller: &Caller, candidate: &Candidate) -> Result<Arc<Device>, Error> {
    let name = candidate.descriptor.name.value.as_str();
    let profile = match host.registry().profile(caller.tenant(), name) {
        Some(profile) => unused(host, profile)?,
        None => {
            let description = Some("The output of a virtual sensor");
            host.hub.add_profile(caller, ProfileFields { name, description, ..ProfileFields::default() })?
        }
    };
    let new = NewDevice { name, profile: Some(&profile.name), ..NewDevice::default() };
    Ok(host.hub.add_device(caller, new)?.device)
}

/// A profile that no device has: other devices would write to the table of the sensor.
fn unused(host: &Host, profile: Arc<Profile>) -> Result<Arc<Profile>, Error> {
    let devices = host.registry().devices_of_profile(profile.tenant, profile.id);
    if devices.is_empty() && !profile.is_default {
        return Ok(profile);
    }
    let reason = format!(
        "a device profile {:?} with other devices exists, and the output would be mixed with their values; rename the sensor",
        profile.name
    );
    Err(hub::registry::RegistryError::Invalid { what: "name of the sensor", reason }.into())
}

/// A `history-size` that is a time is the time to live of the table.
fn keep_history(host: &Host, caller: &Caller, device: &Device, candidate: &Candidate) -> Result<(), Error> {
    let Some(Extent::Millis(millis)) = candidate.plan.history else { return Ok(()) };
    let ttl = Duration::from_millis(u64::try_from(millis).unwrap_or(0));
    let table = &device.profile.table;
    if ttl.is_zero() || host.hub.ttl(table) == Some(ttl) {
        return Ok(());
    }
    host.hub.set_ttl(caller, table.name(), Some(ttl), true)
}
