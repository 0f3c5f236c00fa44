//! Commands that name entities by queries (ThingsBoard's `EntityDataCmd`, `EntityCountCmd` and their parts).

use hub::entity_query::{EntityCountQuery, EntityDataQuery, EntityKey};
use serde::Deserialize;

/// Starts or changes the subscription `cmdId` of entities and their values.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntityDataCommand {
    pub(crate) cmd_id: i64,
    /// The entities. Without a query the command changes what an earlier one has begun.
    pub(crate) query: Option<EntityDataQuery>,
    /// History, once.
    pub(crate) history_cmd: Option<HistoryPart>,
    /// Latest values, live.
    pub(crate) latest_cmd: Option<LatestPart>,
    /// History up to the present, and live values.
    pub(crate) ts_cmd: Option<SeriesPart>,
    /// Aggregates, once.
    pub(crate) agg_history_cmd: Option<AggregateHistoryPart>,
    /// Aggregates of a window.
    pub(crate) agg_ts_cmd: Option<AggregateSeriesPart>,
}

impl EntityDataCommand {
    /// Whether it asks for values.
    pub(crate) fn has_parts(&self) -> bool {
        self.history_cmd.is_some()
            || self.latest_cmd.is_some()
            || self.ts_cmd.is_some()
            || self.agg_history_cmd.is_some()
            || self.agg_ts_cmd.is_some()
    }
}

/// The keys of latest values.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct LatestPart {
    pub(crate) keys: Vec<EntityKey>,
}

/// History between two times.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryPart {
    pub(crate) keys: Vec<String>,
    pub(crate) start_ts: i64,
    pub(crate) end_ts: i64,
    #[serde(flatten)]
    pub(crate) form: SeriesForm,
}

/// History of a window up to the present.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SeriesPart {
    pub(crate) keys: Vec<String>,
    pub(crate) start_ts: i64,
    #[serde(default)]
    pub(crate) time_window: i64,
    #[serde(flatten)]
    pub(crate) form: SeriesForm,
}

/// What of a history is wanted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SeriesForm {
    pub(crate) interval: Option<i64>,
    pub(crate) interval_type: Option<String>,
    pub(crate) time_zone_id: Option<String>,
    pub(crate) limit: Option<usize>,
    pub(crate) agg: Option<String>,
    /// Requests also the last value before the start.
    #[serde(default)]
    pub(crate) fetch_latest_previous_point: bool,
}

/// Aggregates between two times.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AggregateHistoryPart {
    pub(crate) keys: Vec<AggregateKey>,
    pub(crate) start_ts: i64,
    pub(crate) end_ts: i64,
}

/// Aggregates of a window.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AggregateSeriesPart {
    pub(crate) keys: Vec<AggregateKey>,
    pub(crate) start_ts: i64,
    pub(crate) time_window: i64,
}

/// One aggregate of a key, and optionally the same one of an earlier time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AggregateKey {
    /// Its name in the answer.
    pub(crate) id: i64,
    pub(crate) key: String,
    pub(crate) agg: String,
    pub(crate) previous_start_ts: Option<i64>,
    pub(crate) previous_end_ts: Option<i64>,
    /// Whether only the earlier one is wanted.
    pub(crate) previous_value_only: Option<bool>,
}

/// Starts or replaces the subscription `cmdId` of a number of entities.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntityCountCommand {
    pub(crate) cmd_id: i64,
    pub(crate) query: EntityCountQuery,
}

/// A command that names nothing but a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CommandId {
    pub(crate) cmd_id: i64,
}
