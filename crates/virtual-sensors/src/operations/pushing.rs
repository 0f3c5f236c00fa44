//! The way of pushed elements from a door to their source.

use hub::Error;
use hub::caller::{Action, Caller};

use crate::shared::{PushAnswer, PushReceiver};
use crate::virtual_sensors::VirtualSensors;

impl VirtualSensors {
    /// Takes pushes of another server from now on.
    ///
    /// # Errors
    /// The caller may not see credentials of the default tenant, which has all sensors.
    pub fn receive_pushes(&self, caller: &Caller) -> Result<PushReceiver, Error> {
        caller.check_on(Action::SeeCredentials, self.host.registry().default_tenant(), None)?;
        Ok(self.host.sensors.connectors.pushes.open())
    }

    /// Whether any source takes pushes.
    pub fn takes_pushes(&self) -> bool {
        !self.host.sensors.connectors.pushes.is_empty()
    }

    /// Gives an element to the source with a number, and waits until it is durable. The number is the credential of the other server,
    /// which has no caller. While the store is busy, at most [`PUSHED_WAITING_MAX`](crate::limits::PUSHED_WAITING_MAX) elements wait,
    /// for at most [`PUSH_TAKE_TIMEOUT`](crate::limits::PUSH_TAKE_TIMEOUT).
    pub async fn push_element(&self, number: f64, data: String) -> PushAnswer {
        self.host.sensors.connectors.pushes.push(number, data).await
    }
}
