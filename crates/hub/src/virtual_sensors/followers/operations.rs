//! Operations of followers, for callers with the permission.

use std::sync::Arc;

use model::{SeriesKey, TimeRange, Timestamp};
use store::StoreError;
use tokio::sync::watch;

use super::super::reread::newest;
use super::SensorOutputs;
use super::cursor::{Cursor, FOLLOWERS};
use super::follow::{OutputFollower, count};
use super::form::{Begin, FollowRequest};
use super::shared::key;
use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;

impl Hub {
    /// The outputs of the virtual sensors that run, now and whenever they change. They have the passwords of databases.
    ///
    /// # Errors
    /// The caller may not see credentials of the default tenant, which has all sensors.
    pub fn sensor_outputs(&self, caller: &Caller) -> Result<watch::Receiver<SensorOutputs>, Error> {
        caller.check_on(Action::SeeCredentials, self.registry.default_tenant(), None)?;
        Ok(self.sensors.followers.outputs.subscribe())
    }

    /// Follows the output of a sensor that runs; `None` if there is none of the name. Waits for the disk.
    ///
    /// # Errors
    /// The caller may not read the output, or a store fails.
    pub fn follow_output(
        self: &Arc<Self>,
        caller: &Caller,
        request: FollowRequest,
    ) -> Result<Option<OutputFollower>, Error> {
        let tenant = self.registry.default_tenant();
        caller.check_on(Action::SeeCredentials, tenant, None)?;
        let outputs = Arc::clone(&self.sensors.followers.outputs.borrow());
        let Some(output) = outputs.iter().find(|output| output.sensor == request.sensor) else {
            return Ok(None);
        };
        let Some(device) = self.registry.device_by_name(tenant, &request.sensor) else { return Ok(None) };
        let series = SeriesKey::device(&device.profile.table, &device.name).map_err(StoreError::from)?;
        let stored = self.kv.get(FOLLOWERS, &key(&request.sensor, &request.follower))?;
        let stored =
            stored.and_then(|bytes| Cursor::decode(&bytes)).filter(|cursor| cursor.target == request.target);
        let cursor = match (stored, self.store.find_series(&series)) {
            (Some(cursor), _) => cursor,
            (None, Some(series)) if request.begin == Begin::Newest => {
                Cursor::new(&request.target, newest(&*self.store, series)?.unwrap_or(i64::MIN))
            }
            (None, _) => Cursor::new(&request.target, i64::MIN),
        };
        let rest = TimeRange::new(Timestamp::from_micros(cursor.us).saturating_add_micros(1), Timestamp::MAX);
        let rows_behind = count(&*self.store, &series, rest)?;
        let fields = output.fields.iter().map(|field| field.name.clone()).collect();
        let appended = self.sensors.followers.begin(&request, cursor, rows_behind);
        Ok(Some(OutputFollower::new(Arc::clone(self), request, series, fields, appended)))
    }
}
