//! Reduces the attributes that wait in an outbox to the newest state of each key.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::message::{Attribute, DeviceMessage};

/// The messages of `waiting` and `last`, in which each key occurs once: in one message with the changed keys or in one with the
/// deleted keys, at the end. The later message decides. Other messages keep their order.
pub(super) fn coalesce(
    waiting: &VecDeque<Arc<DeviceMessage>>,
    last: &Arc<DeviceMessage>,
) -> VecDeque<Arc<DeviceMessage>> {
    let mut kept = VecDeque::new();
    let mut states: HashMap<&Arc<str>, Option<&Attribute>> = HashMap::new();
    for message in waiting.iter().chain([last]) {
        match &**message {
            DeviceMessage::AttributesChanged { entries } => {
                states.extend(entries.iter().map(|entry| (&entry.key, Some(entry))));
            }
            DeviceMessage::AttributesDeleted { keys } => states.extend(keys.iter().map(|key| (key, None))),
            DeviceMessage::RpcRequest(_) => kept.push_back(Arc::clone(message)),
        }
    }
    let entries: Vec<Attribute> = states.values().copied().flatten().cloned().collect();
    let deleted = states.iter().filter(|(_, state)| state.is_none());
    let keys: Vec<Arc<str>> = deleted.map(|(key, _)| Arc::clone(key)).collect();
    if !entries.is_empty() {
        kept.push_back(Arc::new(DeviceMessage::AttributesChanged { entries }));
    }
    if !keys.is_empty() {
        kept.push_back(Arc::new(DeviceMessage::AttributesDeleted { keys }));
    }
    kept
}
