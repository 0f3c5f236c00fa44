//! The keys that rules name.

use super::node::Node;
use crate::alarm_rules::error::RuleError;
use crate::alarm_rules::keys::{Key, KeyIndex, KeySource};
use crate::alarm_rules::limits::KEYS_PER_PROFILE_MAX;

/// The number of a key; adds the key if it is new.
pub(super) fn intern(
    node: &Node<'_>,
    keys: &mut Vec<Key>,
    source: KeySource,
    name: &str,
) -> Result<KeyIndex, RuleError> {
    if name.is_empty() {
        return Err(node.fault("is empty; name a key".into()));
    }
    let known = keys.iter().position(|key| key.source == source && *key.name == *name);
    let at = known.unwrap_or(keys.len());
    if at >= KEYS_PER_PROFILE_MAX {
        let limit = KEYS_PER_PROFILE_MAX;
        let reason = format!(
            "is key {} of the rules of this profile, the limit is {limit} (KEYS_PER_PROFILE_MAX)",
            at + 1
        );
        return Err(node.fault(reason));
    }
    if known.is_none() {
        keys.push(Key { source, name: name.into() });
    }
    Ok(KeyIndex::try_from(at).expect("BUG: the limit of keys fits a byte"))
}
