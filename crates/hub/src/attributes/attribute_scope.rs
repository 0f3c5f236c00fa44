//! The keys of attributes in the key-value store.
//!
//! A key is the tenant's id, the entity's id, the code of the scope, and the attribute's key. Without the attribute's key it is
//! that of the scope's tally.

use kv::Space;
use uuid::Uuid;

use super::owner::Owner;
use super::scope::Scope;

/// The space of attributes.
pub(crate) const ATTRIBUTES: Space = Space::new("attributes");

/// Bytes before the attribute's key.
const PREFIX_BYTES: usize = 16 + 16 + 1;

/// The attributes of an entity in a scope.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttributeScope<'a> {
    pub(crate) owner: Owner<'a>,
    pub(crate) scope: Scope,
}

impl AttributeScope<'_> {
    /// The beginning of the keys of all its attributes, and the key of its tally.
    pub(super) fn prefix(self) -> Vec<u8> {
        let mut prefix = of_entity(self.owner.tenant, self.owner.entity.id);
        prefix.push(self.scope.code());
        prefix
    }

    /// The key of an attribute, whose own key is not empty.
    pub(super) fn key_of(self, attribute: &str) -> Vec<u8> {
        let mut key = self.prefix();
        key.extend_from_slice(attribute.as_bytes());
        key
    }
}

/// The beginning of the keys of all attributes of a tenant.
pub(crate) fn of_tenant(tenant: Uuid) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(PREFIX_BYTES + 32);
    prefix.extend_from_slice(tenant.as_bytes());
    prefix
}

/// The beginning of the keys of all attributes of an entity. Ids are unique among all kinds, so the kind is not in the key.
pub(crate) fn of_entity(tenant: Uuid, id: Uuid) -> Vec<u8> {
    let mut prefix = of_tenant(tenant);
    prefix.extend_from_slice(id.as_bytes());
    prefix
}

/// The attribute's key in a key that [`AttributeScope::key_of`] made.
pub(super) fn attribute_in(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key.get(PREFIX_BYTES..)?).ok()
}
