//! Commits what the rules do to alarms.

use std::collections::BTreeSet;
use std::sync::Arc;

use kv::Blame;
use uuid::Uuid;

use super::super::alarm_changes::Raised;
use super::super::error::AlarmError;
use super::super::store::Changes;
use super::device::DeviceState;
use super::event_loop::Engine;
use super::limits::BUSY_PAUSE;
use super::rule_action::{AlarmAction, RuleAction};
use super::shared::Shared;
use super::state_record::{STATES, StateRecord};
use crate::registry::EntityId;
use crate::thread_end::ThreadEnd;

impl Engine {
    /// Commits the acts with the states of their devices, and notifies the subscribers when they are durable.
    pub(super) fn commit(&mut self) -> Result<(), ThreadEnd> {
        if self.acts.is_empty() {
            return Ok(());
        }
        // The metrics never show a transition without the event that caused it.
        self.count();
        let acts = std::mem::take(&mut self.acts);
        self.change(|shared, devices, changes| apply(shared, devices, changes, &acts))?;
        self.shared.metrics.alarms.transitions.inc_by(acts.len() as u64);
        Ok(())
    }

    /// Commits a change of alarms and states, as often as the store is busy.
    pub(super) fn change(
        &mut self,
        change: impl Fn(&Shared, &mut [Option<DeviceState>], &mut Changes<'_>) -> Result<(), AlarmError>,
    ) -> Result<(), ThreadEnd> {
        let committed = loop {
            let Self { shared, devices, .. } = self;
            match shared.alarms.commit(|changes| change(shared, devices, changes)) {
                Err(AlarmError::Kv(busy)) if busy.blame() == Blame::Busy => {
                    if self.shared.tap.is_stopped() {
                        return Err(ThreadEnd::Asked);
                    }
                    std::thread::sleep(BUSY_PAUSE);
                }
                done => break done.map_err(ThreadEnd::failed)?,
            }
        };
        if self.shared.is_durable(committed.sequence)? {
            self.shared.alarms.publish(&committed.tenants);
        }
        Ok(())
    }
}

fn apply(
    shared: &Shared,
    devices: &mut [Option<DeviceState>],
    changes: &mut Changes<'_>,
    acts: &[RuleAction],
) -> Result<(), AlarmError> {
    for act in acts {
        let Some(device) = devices[act.at].as_mut() else { continue };
        match raise_or_clear(shared, device, changes, act) {
            Err(AlarmError::OverLimit { .. }) => {
                // The next event tries again.
                device.alarms[act.alarm].severity = None;
                shared.metrics.alarms.refused.inc();
            }
            done => done?,
        }
    }
    let places: BTreeSet<usize> = acts.iter().map(|act| act.at).collect();
    for device in places.into_iter().filter_map(|at| devices[at].as_ref()) {
        put_state(changes, device);
    }
    Ok(())
}

/// Adds the state of a device to a change.
pub(super) fn put_state(changes: &mut Changes<'_>, device: &DeviceState) {
    changes.batch().put(STATES, state_key(device.device), StateRecord::of(device).encode());
}

/// The key of a state.
pub(super) fn state_key(device: Uuid) -> Vec<u8> {
    device.as_bytes().to_vec()
}

fn raise_or_clear(
    shared: &Shared,
    state: &DeviceState,
    changes: &mut Changes<'_>,
    act: &RuleAction,
) -> Result<(), AlarmError> {
    let Some(device) = shared.registry.device_by_id(state.device) else { return Ok(()) };
    let alarm = &state.profile.rules.alarms()[act.alarm];
    let originator = EntityId::device(device.id);
    match &act.what {
        AlarmAction::Raise { severity, started_at, ended_at, details } => {
            let raised = Raised {
                tenant: device.tenant,
                customer: device.customer,
                originator,
                alarm_type: Arc::from(&*alarm.name),
                severity: *severity,
                started_at: *started_at,
                ended_at: *ended_at,
                details: details.clone(),
                propagation: alarm.propagation.clone(),
            };
            changes.raise(raised, act.now).map(drop)
        }
        AlarmAction::Clear { details } => {
            // A user may have cleared it at this moment.
            let Some(active) = changes.index().active(originator, &alarm.name).cloned() else {
                return Ok(());
            };
            changes.clear(&active, act.now, details.clone(), None, act.now).map(drop)
        }
    }
}
