//! Stores the states that have changed.

use model::Timestamp;

use super::super::alarm::Alarm;
use super::super::error::AlarmError;
use super::super::store::Changes;
use super::commit::put_state;
use super::device::DeviceState;
use super::event_loop::Engine;
use super::limits::{IDLE_CHECKPOINT_US as IDLE_US, STATES_PER_COMMIT_MAX};
use super::rule_action::{details, whole_millis};
use super::state_record::{EVALUATED, PROGRESS};
use crate::registry::EntityId;
use crate::thread_end::ThreadEnd;

impl Engine {
    /// Stores the states that have changed, and that everything was evaluated up to `time`.
    pub(super) fn checkpoint(&mut self, time: Timestamp) -> Result<(), ThreadEnd> {
        self.commit()?;
        if self.shared.book.is_empty() {
            return Ok(());
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        dirty.dedup();
        for places in dirty.chunks(STATES_PER_COMMIT_MAX) {
            self.change(|_, devices, changes| {
                for at in places {
                    if let Some(device) = &devices[*at] {
                        touch(device, changes)?;
                        put_state(changes, device);
                    }
                }
                Ok(())
            })?;
            for at in places {
                if let Some(device) = &mut self.devices[*at] {
                    device.dirty = false;
                    device.touched.fill(None);
                }
            }
        }
        if dirty.is_empty() && self.stored.is_some_and(|stored| time.micros() - stored.micros() < IDLE_US) {
            return Ok(());
        }
        self.stored = Some(time);
        self.change(|_, _, changes| {
            changes.batch().put(PROGRESS, EVALUATED, time.micros().to_le_bytes().to_vec());
            Ok(())
        })
    }
}

/// Writes into the records of alarms that their conditions have held again.
fn touch(device: &DeviceState, changes: &mut Changes<'_>) -> Result<(), AlarmError> {
    for (number, touched) in device.touched.iter().enumerate() {
        let Some(ended_at) = touched else { continue };
        let name = &device.profile.rules.alarms()[number].name;
        let Some(active) = changes.index().active(EntityId::device(device.device), name).cloned() else {
            continue;
        };
        let mut alarm = Alarm { ended_at: whole_millis(*ended_at), ..Alarm::clone(&active) };
        if let Some(details) = details(device, number, Some(active.severity)) {
            alarm.details = details;
        }
        changes.changed(alarm);
    }
    Ok(())
}
