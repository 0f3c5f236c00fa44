//! The evaluation state of one device.

use std::collections::HashSet;
use std::sync::Arc;

use model::{Timestamp, Value};
use sensors::alarm_rules::{
    AlarmState, Event, EventKind, KeySet, KeySource, Observed, Transition, Values, next_deadline, on_event,
    on_timer,
};
use uuid::Uuid;

use super::rule_book::ProfileRules;
use crate::registry::{Device, EntityId, EntityKind};

/// Properties of a device that rules may read, with ThingsBoard's names.
pub(crate) const FIELDS: [&str; 4] = ["name", "type", "label", "createdTime"];

/// What new values of attributes change.
#[derive(Debug, Default)]
pub(super) struct ChangedAttributes {
    /// The attributes of the device that differ. Rules learn of those of its owners with the next event, as in ThingsBoard.
    pub(super) keys: KeySet,
    /// The latest time of their changes.
    pub(super) ts: Option<Timestamp>,
    /// Whether any attribute differs.
    pub(super) any: bool,
}

/// The state of the rules of one device.
#[derive(Debug)]
pub(super) struct DeviceState {
    pub(super) device: Uuid,
    pub(super) profile: Arc<ProfileRules>,
    pub(super) values: Values,
    /// The customer whose attributes are among the values.
    pub(super) customer: Option<Uuid>,
    /// One for each alarm of the profile.
    pub(super) alarms: Vec<AlarmState>,
    /// For each alarm, when its condition held again and nothing else changed. Its record learns it with the next checkpoint.
    pub(super) touched: Vec<Option<Timestamp>>,
    /// The latest time of an evaluated row, in microseconds.
    pub(super) row_us: i64,
    /// The earliest timer that waits for the device.
    pub(super) armed: Option<Timestamp>,
    /// Whether the stored state is older than this one.
    pub(super) dirty: bool,
}

impl DeviceState {
    /// The state of a device whose rules have not been evaluated yet.
    pub(super) fn new(device: Uuid, profile: Arc<ProfileRules>) -> Self {
        let values = Values::new(profile.rules.keys().len());
        let alarms = profile.rules.alarms().iter().map(AlarmState::new).collect();
        Self::with(device, profile, values, alarms, i64::MIN)
    }

    /// A state with parts of a stored one.
    pub(super) fn with(
        device: Uuid,
        profile: Arc<ProfileRules>,
        values: Values,
        alarms: Vec<AlarmState>,
        row_us: i64,
    ) -> Self {
        let touched = vec![None; alarms.len()];
        Self { device, profile, values, customer: None, alarms, touched, row_us, armed: None, dirty: false }
    }

    /// Evaluates the alarms that the event concerns. `act` gets the number of an alarm and what happens to it.
    pub(super) fn on_event(
        &mut self,
        event: &Event,
        mismatches: &mut u64,
        mut act: impl FnMut(&Self, usize, Transition),
    ) {
        let profile = Arc::clone(&self.profile);
        for (at, alarm) in profile.rules.alarms().iter().enumerate() {
            if !alarm.concerns(event.keys) {
                continue;
            }
            let transition = on_event(alarm, &mut self.alarms[at], &self.values, event, mismatches);
            self.note(at, transition, event.now, &mut act);
        }
    }

    /// Evaluates all alarms because time has passed.
    pub(super) fn on_timer(&mut self, now: Timestamp, mut act: impl FnMut(&Self, usize, Transition)) {
        let profile = Arc::clone(&self.profile);
        for (at, alarm) in profile.rules.alarms().iter().enumerate() {
            let transition = on_timer(alarm, &mut self.alarms[at], &self.values, now);
            self.note(at, transition, now, &mut act);
        }
    }

    fn note(
        &mut self,
        at: usize,
        transition: Option<Transition>,
        now: Timestamp,
        act: &mut impl FnMut(&Self, usize, Transition),
    ) {
        match transition {
            None => {}
            Some(Transition::Update { changed: false, .. }) => self.touched[at] = Some(now),
            Some(transition) => {
                self.touched[at] = None;
                act(self, at, transition);
            }
        }
    }

    /// When time alone can decide something.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let alarms = self.profile.rules.alarms().iter().zip(&self.alarms);
        alarms.filter_map(|(alarm, state)| next_deadline(alarm, state, &self.values)).min()
    }

    /// Sets the properties that rules read. Rules learn of a change with the next event.
    pub(super) fn set_fields(&mut self, device: &Device) {
        self.customer = device.customer;
        let profile = Arc::clone(&self.profile);
        for (number, name) in profile.keys(KeySource::EntityField) {
            let value = match name {
                "name" => Some(Value::String(device.name.clone())),
                "type" => Some(Value::String(device.profile.name.clone())),
                "label" => device.label.as_deref().map(|label| Value::String(label.to_owned())),
                "createdTime" => Some(Value::I64(device.created_at.millis())),
                _ => None,
            };
            let ts = device.created_at;
            self.dirty |= self.values.set(number, value.map(|value| Observed { ts, value }));
        }
    }

    /// Whether the rules read attributes of an entity that owns the device.
    pub(super) fn reads_owner(&self, owners: &HashSet<EntityId>) -> bool {
        let reads = |source, kind, id| self.profile.reads(source) && owners.contains(&EntityId { kind, id });
        self.customer.is_some_and(|id| reads(KeySource::CustomerAttribute, EntityKind::Customer, id))
            || reads(KeySource::TenantAttribute, EntityKind::Tenant, self.profile.tenant)
    }

    /// Sets the values of attributes.
    pub(super) fn set_attributes(&mut self, attributes: Vec<(u8, Option<Observed>)>) -> ChangedAttributes {
        let mut changed = ChangedAttributes::default();
        for (number, observed) in attributes {
            let ts = observed.as_ref().map(|observed| observed.ts);
            if !self.values.set(number, observed) {
                continue;
            }
            changed.any = true;
            if self.profile.rules.keys()[usize::from(number)].source == KeySource::Attribute {
                changed.keys.add(number);
                changed.ts = changed.ts.max(ts);
            }
        }
        changed
    }

    /// The event of rows.
    pub(super) fn row_event(keys: KeySet, ts: Timestamp, now: Timestamp) -> Event {
        Event { kind: EventKind::Telemetry, keys, ts, now }
    }
}
