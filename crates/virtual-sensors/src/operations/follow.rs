//! Operations of followers, for callers with the permission.

use std::sync::Arc;

use hub::Error;
use hub::caller::{Action, Caller};
use model::{SeriesKey, TimeRange, Timestamp};
use store::StoreError;
use tokio::sync::watch;

use super::output_follower::{OutputFollower, count};
use crate::followers::{FollowRequest, SensorOutputs};
use crate::virtual_sensors::VirtualSensors;

impl VirtualSensors {
    /// The outputs of the virtual sensors that run, now and whenever they change. They have the passwords of databases.
    ///
    /// # Errors
    /// The caller may not see credentials of the default tenant, which has all sensors.
    pub fn outputs(&self, caller: &Caller) -> Result<watch::Receiver<SensorOutputs>, Error> {
        caller.check_on(Action::SeeCredentials, self.host.registry().default_tenant(), None)?;
        Ok(self.host.sensors.followers.outputs.subscribe())
    }

    /// Follows the output of a sensor that runs and has this follower; `None` if there is none. Reads files.
    ///
    /// # Errors
    /// The caller may not see credentials of the default tenant, or the store fails.
    pub fn follow_output(
        &self,
        caller: &Caller,
        request: FollowRequest,
    ) -> Result<Option<OutputFollower>, Error> {
        let tenant = self.host.registry().default_tenant();
        caller.check_on(Action::SeeCredentials, tenant, None)?;
        let outputs = Arc::clone(&self.host.sensors.followers.outputs.borrow());
        let Some(output) = outputs.iter().find(|output| output.sensor == request.sensor) else {
            return Ok(None);
        };
        let Some(device) = self.host.registry().device_by_name(tenant, &request.sensor) else {
            return Ok(None);
        };
        let series = SeriesKey::device(&device.profile.table, &device.name).map_err(StoreError::from)?;
        let followers = &self.host.sensors.followers;
        let Some(us) = followers.delivered_us(&request) else { return Ok(None) };
        let rest = TimeRange::new(Timestamp::from_micros(us).saturating_add_micros(1), Timestamp::MAX);
        followers.set_rows_behind(&request, count(&*self.host.store, &series, rest)?);
        let fields = output.fields.iter().map(|field| field.name.clone()).collect();
        Ok(Some(OutputFollower::new(Arc::clone(&self.host), request, series, fields)))
    }
}
