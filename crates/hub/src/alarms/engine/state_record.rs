//! The stored state of the rules of one device. `docs/format/alarms.md` describes it.

use std::sync::Arc;

use kv::{KvError, Space};
use model::{Timestamp, Value};
use sensors::alarm_rules::{AlarmRules, AlarmState, KeySource, Observed, Severity, Values};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::record::damaged;
use super::device::DeviceState;
use super::rule_book::ProfileRules;

/// States by the id of the device.
pub(super) const STATES: Space = Space::new("alarm_states");
/// The progress of the evaluation.
pub(super) const PROGRESS: Space = Space::new("alarm_progress");
/// The key of the time up to which all was evaluated: microseconds since 1970 as 8 bytes, the lowest first.
pub(super) const EVALUATED: &[u8] = b"evaluated_us";

/// The record of a device.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StateRecord {
    pub(super) profile: Uuid,
    /// The latest time of an evaluated row, in microseconds.
    pub(super) row_us: i64,
    values: Vec<StoredValue>,
    alarms: Vec<StoredAlarm>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredValue {
    source: StoredSource,
    key: Box<str>,
    us: i64,
    value: Stored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredSource {
    Telemetry,
    Attribute,
    Field,
    CustomerAttribute,
    TenantAttribute,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stored {
    Bool(bool),
    I64(i64),
    /// The bits of the number: decimal digits could differ in the last place.
    F64Bits(u64),
    String(String),
    Json(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredAlarm {
    id: Box<str>,
    /// The severities of the rules that create, in their order. A state fits only the same ones.
    severities: Vec<Severity>,
    clears: bool,
    state: AlarmState,
}

impl StateRecord {
    pub(super) fn of(state: &DeviceState) -> Self {
        let rules = &state.profile.rules;
        let values = rules.keys().iter().enumerate().filter_map(|(number, key)| {
            let observed = state.values.get(number as u8)?;
            Some(StoredValue {
                source: StoredSource::of(key.source),
                key: key.name.clone(),
                us: observed.ts.micros(),
                value: Stored::of(&observed.value),
            })
        });
        let alarms = rules.alarms().iter().zip(&state.alarms).map(|(alarm, state)| StoredAlarm {
            id: alarm.id.clone(),
            severities: alarm.severities().collect(),
            clears: alarm.clears(),
            state: state.clone(),
        });
        Self {
            profile: state.profile.profile,
            row_us: state.row_us,
            values: values.collect(),
            alarms: alarms.collect(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("BUG: numbers and texts are always JSON")
    }

    pub(super) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, KvError> {
        serde_json::from_slice(bytes).map_err(|error| damaged(STATES, key, &error))
    }

    /// The state of the record, as far as it fits the rules.
    pub(super) fn state(&self, device: Uuid, profile: Arc<ProfileRules>) -> DeviceState {
        let (values, alarms) = (self.values(&profile.rules), self.alarms(&profile.rules));
        DeviceState::with(device, profile, values, alarms, self.row_us)
    }

    /// The values of the keys that the rules read now.
    fn values(&self, rules: &AlarmRules) -> Values {
        let mut values = Values::new(rules.keys().len());
        for stored in &self.values {
            if let Some(number) = rules.key(stored.source.source(), &stored.key) {
                let (ts, value) = (Timestamp::from_micros(stored.us), stored.value.value());
                values.set(number, Some(Observed { ts, value }));
            }
        }
        values
    }

    /// The states of the alarms that the rules have now. A state stays with an alarm that has the same rules as before.
    fn alarms(&self, rules: &AlarmRules) -> Vec<AlarmState> {
        let state = |alarm: &sensors::alarm_rules::AlarmType| {
            let stored = self.alarms.iter().find(|stored| *stored.id == *alarm.id)?;
            let same = stored.severities.iter().copied().eq(alarm.severities());
            (same && stored.clears == alarm.clears() && stored.state.fits(alarm))
                .then(|| stored.state.clone())
        };
        rules.alarms().iter().map(|alarm| state(alarm).unwrap_or_else(|| AlarmState::new(alarm))).collect()
    }
}

impl StoredSource {
    const fn of(source: KeySource) -> Self {
        match source {
            KeySource::TimeSeries => Self::Telemetry,
            KeySource::Attribute => Self::Attribute,
            KeySource::EntityField => Self::Field,
            KeySource::CustomerAttribute => Self::CustomerAttribute,
            KeySource::TenantAttribute => Self::TenantAttribute,
        }
    }

    const fn source(self) -> KeySource {
        match self {
            Self::Telemetry => KeySource::TimeSeries,
            Self::Attribute => KeySource::Attribute,
            Self::Field => KeySource::EntityField,
            Self::CustomerAttribute => KeySource::CustomerAttribute,
            Self::TenantAttribute => KeySource::TenantAttribute,
        }
    }
}

impl Stored {
    fn of(value: &Value) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::I64(value) => Self::I64(*value),
            Value::F64(value) => Self::F64Bits(value.to_bits()),
            Value::String(text) => Self::String(text.clone()),
            Value::Json(text) => Self::Json(text.clone()),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::I64(value) => Value::I64(*value),
            Self::F64Bits(bits) => Value::F64(f64::from_bits(*bits)),
            Self::String(text) => Value::String(text.clone()),
            Self::Json(text) => Value::Json(text.clone()),
        }
    }
}
