//! Bounds of alarms.

use std::time::Duration;

/// Alarms of one tenant. A new one takes the place of the one that was cleared and created first.
pub const ALARMS_PER_TENANT_MAX: usize = 100_000;
/// Bytes of the records of all alarms of one tenant.
pub const ALARM_BYTES_PER_TENANT_MAX: usize = 64 * 1024 * 1024;
/// Longest details of an alarm, as JSON text in bytes.
pub const ALARM_DETAILS_BYTES_MAX: usize = 16 * 1024;
/// Comments of one alarm, with those of the system.
pub const ALARM_COMMENTS_MAX: u32 = 1_000;
/// Longest comment, as JSON text in bytes.
pub const ALARM_COMMENT_BYTES_MAX: usize = 16 * 1024;
/// Types of relations that an alarm names.
pub const ALARM_RELATION_TYPES_MAX: usize = 100;
/// Entities above an originator to which an alarm propagates along relations. Searches of further ones do not find it.
pub(super) const ALARM_PROPAGATION_MAX: usize = 10_000;
/// How long a change of an alarm waits for a busy store.
pub(crate) const ALARM_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Alarms that one batch deletes.
pub(crate) const ALARMS_DELETED_AT_ONCE_MAX: usize = 1_000;
