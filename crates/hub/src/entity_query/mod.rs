//! Queries of entities, in ThingsBoard's shapes (`docs/protocol/entity-query.md`).
//!
//! A query names a set of entities, conditions on their properties and values, an order and a page. It has no index and no
//! cache of its own: the registry has the entities, the store their latest values, the key-value store their attributes. So it
//! reads the values that conditions and order need for all entities of the set, which [`limits::QUERY_VALUES_MAX`] bounds, and
//! the selected values for the page only. It may read files: call it on a thread that may block.

mod error;
mod field;
mod filter;
mod key;
pub mod limits;
mod order;
mod page;
mod predicate;
mod query;
#[cfg(test)]
mod tests;
mod text;

pub use error::EntityQueryError;
pub(crate) use error::within;
pub use field::device_of;
pub(crate) use field::field;
pub use filter::{EntityFilter, EntityRef, RelationFilter, RelationsFilter, SearchDirection, SearchFilter};
pub use key::{EntityKey, KeyKind};
pub(crate) use order::{SortValue, directed};
pub use page::{EntityKeys, EntityPage, EntityRow, TimedValue};
pub use predicate::{DynamicSource, DynamicValue, Predicate};
pub(crate) use query::check_filters;
pub use query::{Direction, EntityCountQuery, EntityDataQuery, KeyFilter, PageLink, SortOrder, ValueType};
pub(crate) use text::Pattern;
