//! The refusals of one device, also from before the start of the server.

use model::{SeriesKey, Value};
use store::StoreError;

use super::counts::Refused;
use crate::dead_letter::DEAD_LETTER_TABLE;
use crate::hub::Hub;
use crate::registry::Device;

impl Hub {
    /// The refusals of a device. If the device has none since the start, the last one of its dead letters; dead letters of an
    /// earlier device with the same name do not count. It may read files.
    pub fn refusals_of(&self, device: &Device) -> Result<Option<Refused>, StoreError> {
        if let Some(refused) = self.refusals.of(device.id) {
            return Ok(Some(refused));
        }
        let key = SeriesKey::device(DEAD_LETTER_TABLE, &device.name)?;
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
