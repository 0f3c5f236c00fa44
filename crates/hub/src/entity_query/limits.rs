//! Bounds of entity queries. The largest page is [`model::limits::PAGE_DEVICES_MAX`].

/// Entities that a query visits before its conditions choose among them.
pub const QUERY_ENTITIES_MAX: usize = 1_000_000;
/// Ids that a list of entities names.
pub const QUERY_LIST_MAX: usize = 10_000;
/// Types that a filter names.
pub const QUERY_TYPES_MAX: usize = 1_000;
/// Entity fields and latest values that a query asks for.
pub const QUERY_KEYS_MAX: usize = 1_000;
/// Key filters of a query.
pub const QUERY_KEY_FILTERS_MAX: usize = 100;
/// Predicates of all key filters of a query.
pub const QUERY_PREDICATES_MAX: usize = 1_000;
/// How deep predicates may be nested.
pub const QUERY_PREDICATE_DEPTH_MAX: usize = 8;
/// Bytes of a search text, a name pattern or a value of a predicate.
pub const QUERY_TEXT_BYTES_MAX: usize = 1_024;
/// Latest values and attributes that a query reads: for conditions, for the order, and for its page.
pub const QUERY_VALUES_MAX: usize = 2_000_000;
/// Entities whose keys are listed (ThingsBoard's page of `find/keys`).
pub const QUERY_KEYS_ENTITIES_MAX: usize = 100;
