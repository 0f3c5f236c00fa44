//! Bounds of attributes. The longest key is [`model::limits::KEY_BYTES_MAX`].

/// Attributes of one device in one scope.
pub const ATTRIBUTES_PER_SCOPE_MAX: usize = 1_024;
/// Bytes of their keys and values together. All attributes of a scope can be one message to the device.
pub const ATTRIBUTES_BYTES_MAX: usize = 1024 * 1024;
/// Longest text or JSON of one attribute in bytes.
pub const ATTRIBUTE_VALUE_BYTES_MAX: usize = 65_535;
/// Keys that one request names to read or delete.
pub const ATTRIBUTE_KEYS_NAMED_MAX: usize = ATTRIBUTES_PER_SCOPE_MAX;
/// Keys in a row of the audit table.
pub(crate) const AUDITED_KEYS_MAX: usize = 16;
/// Locks that writers of attributes share.
pub(super) const ATTRIBUTE_LOCKS: usize = 64;
/// Attributes that one batch deletes when a tenant is deleted.
pub(crate) const DELETED_AT_ONCE_MAX: usize = 10_000;
/// Entities whose attributes one subscriber watches.
pub const WATCHED_ENTITIES_MAX: usize = 10_000;
/// Changes that wait for a subscriber, by entity and scope. A subscriber that watches entities has no more than these.
pub const ATTRIBUTE_CHANGES_WAITING_MAX: usize = 3 * WATCHED_ENTITIES_MAX;
