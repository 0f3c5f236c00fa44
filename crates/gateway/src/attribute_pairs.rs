//! Attributes of the hub in the form that the codec takes.

use hub::device_messages::Attribute;
use model::ValueRef;

/// The keys and values.
pub(crate) fn pairs(attributes: &[Attribute]) -> Vec<(&str, ValueRef<'_>)> {
    attributes.iter().map(|attribute| (&*attribute.key, attribute.value.as_ref())).collect()
}
