//! The answers to queries.

use std::collections::BTreeSet;

use model::{Timestamp, Value};

use super::key::EntityKey;
use crate::registry::{Entity, EntityKind, Page};

/// A value and its time.
pub type TimedValue = (Timestamp, Value);

/// The answer to a query.
#[derive(Debug)]
pub struct EntityPage {
    /// The selected keys, each once, sorted by kind.
    pub keys: Vec<EntityKey>,
    pub page: Page<EntityRow>,
    /// The time of the answer, which is the time of properties.
    pub now: Timestamp,
}

/// An entity of an answer.
#[derive(Debug, Clone)]
pub struct EntityRow {
    pub entity: Entity,
    /// For each selected key its value; `None` if there is none.
    pub values: Vec<Option<TimedValue>>,
}

/// The keys that some entities have.
#[derive(Debug, Default)]
pub struct EntityKeys {
    /// The kinds of the entities.
    pub kinds: BTreeSet<EntityKind>,
    /// Keys of time series; `None` if they were not asked for.
    pub time_series: Option<BTreeSet<String>>,
    /// Keys of attributes; `None` if they were not asked for.
    pub attributes: Option<BTreeSet<String>>,
}
