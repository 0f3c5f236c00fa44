//! The refusals of one device, also from before the start of the server.

use std::sync::Arc;

use model::{SeriesKey, Value};

use crate::caller::{Action, Caller};
use crate::dead_letter::DEAD_LETTER_TABLE;
use crate::error::Error;
use crate::hub::Hub;
use crate::refusals::Refused;
use crate::registry::{Device, own_table};
use crate::visible::check_device;

impl Hub {
    /// The devices that the caller sees with refused messages, the last refused first; at most `limit`. Leaves out deleted
    /// devices.
    pub fn refused_devices(
        &self,
        caller: &Caller,
        limit: usize,
    ) -> Result<Vec<(Arc<Device>, Refused)>, Error> {
        caller.check(Action::Read)?;
        let own = |id| self.own_device(caller, id).ok();
        Ok(self.refusals.latest(limit, own))
    }

    /// The refusals of a device. If the device has none since the start, the last one of its dead letters; dead letters of an
    /// earlier device with the same name do not count. It may read files.
    pub fn refusals_of(&self, caller: &Caller, device: &Device) -> Result<Option<Refused>, Error> {
        check_device(caller, device, Action::Read)?;
        if let Some(refused) = self.refusals.of(device.id) {
            return Ok(Some(refused));
        }
        let table = own_table(&device.profile.table.namespace(), DEAD_LETTER_TABLE);
        let key = SeriesKey::device(&table, &device.name).map_err(store::StoreError::from)?;
        let Some(series) = self.store.find_series(&key) else { return Ok(None) };
        let keys = ["door".to_owned(), "reason".to_owned()];
        let found = self.store.latest(series, Some(&keys))?;
        let last = found.iter().map(|one| one.ts).max().filter(|last| *last >= device.created_at);
        let Some(last) = last else { return Ok(None) };
        let text = |key: &str| match found.iter().find(|one| one.key == key).map(|one| &one.value) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        let since = self.refusals.since();
        Ok(Some(Refused { messages: 0, since, last, door: text("door"), reason: text("reason") }))
    }
}
