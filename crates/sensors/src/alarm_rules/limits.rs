//! Bounds of alarm rules.

/// Types of alarms in one profile.
pub const ALARM_TYPES_PER_PROFILE_MAX: usize = 100;
/// Filters in the condition of one rule.
pub const FILTERS_PER_RULE_MAX: usize = 32;
/// Depth of predicates within predicates.
pub const PREDICATE_DEPTH_MAX: usize = 8;
/// Predicates in one complex predicate.
pub const PREDICATES_PER_COMPLEX_MAX: usize = 32;
/// Keys that all rules of one profile read together.
pub const KEYS_PER_PROFILE_MAX: usize = 128;
/// Longest type of an alarm in bytes (ThingsBoard's column has 255 characters).
pub const ALARM_TYPE_BYTES_MAX: usize = 255;
/// Longest text of a rule: details, constants, names of keys; in bytes.
pub const RULE_TEXT_BYTES_MAX: usize = 8 * 1024;
