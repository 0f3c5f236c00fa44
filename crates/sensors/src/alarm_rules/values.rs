//! The newest values of one device.

use model::{Timestamp, Value, ValueRef};

use super::keys::KeyIndex;

/// A value and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The time that the value came with.
    pub ts: Timestamp,
    pub value: Value,
}

/// The newest value of each key that the rules of a profile read, for one device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values {
    slots: Vec<Option<Observed>>,
}

impl Values {
    /// Without values, for a number of keys.
    pub fn new(keys: usize) -> Self {
        Self { slots: vec![None; keys] }
    }

    /// The newest value of a key.
    pub fn get(&self, key: KeyIndex) -> Option<&Observed> {
        self.slots.get(usize::from(key)).and_then(Option::as_ref)
    }

    /// Takes a value of telemetry. Returns whether it is news: a value that is older than the newest one changes nothing, and
    /// neither does the same value with the same time. Numbers and texts that are as long as those before them use no memory.
    pub fn put(&mut self, key: KeyIndex, ts: Timestamp, value: ValueRef<'_>) -> bool {
        let slot = &mut self.slots[usize::from(key)];
        match slot {
            Some(newest) if ts < newest.ts => false,
            Some(newest) if ts == newest.ts && is_same(newest.value.as_ref(), value) => false,
            Some(newest) => {
                newest.ts = ts;
                replace(&mut newest.value, value);
                true
            }
            None => {
                *slot = Some(Observed { ts, value: value.to_owned() });
                true
            }
        }
    }

    /// Sets the value of an attribute or of a property; `None` if it is gone. Returns whether it differs.
    pub fn set(&mut self, key: KeyIndex, observed: Option<Observed>) -> bool {
        let slot = &mut self.slots[usize::from(key)];
        let differs = *slot != observed;
        *slot = observed;
        differs
    }
}

/// Whether values are the same. A number that was read from the store may have another type than when it came.
fn is_same(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    match (one, other) {
        (ValueRef::I64(whole), ValueRef::F64(number)) | (ValueRef::F64(number), ValueRef::I64(whole)) => {
            whole as f64 == number
        }
        (one, other) => one == other,
    }
}

fn replace(old: &mut Value, new: ValueRef<'_>) {
    match (old, new) {
        (Value::String(text), ValueRef::String(new)) => {
            text.clear();
            text.push_str(new);
        }
        (old, new) => *old = new.to_owned(),
    }
}
