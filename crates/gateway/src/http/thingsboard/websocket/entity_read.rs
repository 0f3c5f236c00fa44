//! Reads the values that a command asks for of a page of entities.

use std::collections::BTreeMap;

use hub::caller::Caller;
use hub::entity_query::{EntityKey, TimedValue};
use hub::history::{Aggregation, HistoryRequest, Interval, check_values};
use hub::registry::Entity;
use hub::{Hub, Order};
use model::{SeriesId, TimeRange, Timestamp, limits};

use super::query_commands::{
    AggregateHistoryPart, AggregateKey, AggregateSeriesPart, EntityDataCommand, HistoryPart, SeriesForm,
    SeriesPart,
};
use super::update::Data;
use crate::error::ApiError;
use crate::http::limits::AGGREGATES_PER_COMMAND_MAX;
use crate::http::thingsboard::telemetry::read::{
    aggregation, calendar_interval, interval_of_millis, range, unique_keys,
};

/// The data to read of each entity.
#[derive(Debug, Clone, Default)]
pub(crate) struct EntityRead {
    /// Latest values, attributes and properties, sorted by kind.
    pub(crate) keys: Vec<EntityKey>,
    /// History.
    pub(crate) series: Option<SeriesRead>,
    pub(crate) aggregates: Vec<AggregateRead>,
}

/// A history to read.
#[derive(Debug, Clone)]
pub(crate) struct SeriesRead {
    request: HistoryRequest,
    /// Whether the last value before the range is wanted too.
    with_previous: bool,
}

/// An aggregate to read.
#[derive(Debug, Clone)]
pub(crate) struct AggregateRead {
    id: i64,
    current: Option<HistoryRequest>,
    previous: Option<HistoryRequest>,
}

/// An aggregate and the same one of an earlier time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compared {
    pub(crate) current: Option<TimedValue>,
    pub(crate) previous: Option<TimedValue>,
}

/// The values of one entity.
#[derive(Debug, Default)]
pub(crate) struct EntityValues {
    /// One for each key.
    pub(crate) latest: Vec<Option<TimedValue>>,
    /// Oldest first.
    pub(crate) series: Data,
    pub(crate) aggregates: BTreeMap<i64, Compared>,
}

impl EntityRead {
    /// The reads of a command besides those of keys.
    pub(crate) fn of(command: &EntityDataCommand, now: Timestamp) -> Result<Self, ApiError> {
        if command.history_cmd.is_some() && command.ts_cmd.is_some() {
            let message = "historyCmd and tsCmd exclude each other in one command; send two";
            return Err(ApiError::argument(message));
        }
        let history = command.history_cmd.as_ref().map(SeriesRead::of_history);
        let series = command.ts_cmd.as_ref().map(|part| SeriesRead::of_series(part, now));
        let mut aggregates = Vec::new();
        if let Some(AggregateHistoryPart { keys, start_ts, end_ts }) = &command.agg_history_cmd {
            aggregates.extend(aggregates_of(keys, range(*start_ts, *end_ts))?);
        }
        if let Some(AggregateSeriesPart { keys, start_ts, time_window }) = &command.agg_ts_cmd {
            aggregates.extend(aggregates_of(keys, range(*start_ts, start_ts.saturating_add(*time_window)))?);
        }
        Ok(Self { keys: Vec::new(), series: history.or(series).transpose()?, aggregates })
    }

    /// Reads the values of entities with their series. It may read files.
    pub(crate) fn run(
        &self,
        hub: &Hub,
        caller: &Caller,
        entities: &[(Entity, Option<SeriesId>)],
        now: Timestamp,
    ) -> Result<Vec<EntityValues>, ApiError> {
        let named = entities.iter().map(|(entity, _)| entity.clone()).collect();
        let rows = hub.values_of_entities(caller, named, &self.keys, now)?;
        let mut total = 0;
        let mut found = Vec::with_capacity(rows.len());
        for (row, (_, series)) in rows.into_iter().zip(entities) {
            let mut values = EntityValues { latest: row.values, ..EntityValues::default() };
            if let Some(series) = *series {
                if let Some(read) = &self.series {
                    values.series = read.run(hub, caller, series)?;
                    total += values.series.values().map(Vec::len).sum::<usize>();
                    check_values(total as u64).map_err(hub::Error::from)?;
                }
                for AggregateRead { id, current, previous } in &self.aggregates {
                    let one = |request: &Option<HistoryRequest>| {
                        request.as_ref().map(|request| first(hub, caller, series, request)).transpose()
                    };
                    let compared =
                        Compared { current: one(current)?.flatten(), previous: one(previous)?.flatten() };
                    values.aggregates.insert(*id, compared);
                }
            }
            found.push(values);
        }
        Ok(found)
    }
}

impl SeriesRead {
    fn of_history(part: &HistoryPart) -> Result<Self, ApiError> {
        let aggregation = aggregation(part.form.agg.as_deref())?;
        Self::new(&part.keys, range(part.start_ts, part.end_ts), aggregation, &part.form)
    }

    /// For plain values the range has no end: a value between the window's end and the subscription would otherwise be in
    /// neither the reply nor the updates.
    fn of_series(part: &SeriesPart, now: Timestamp) -> Result<Self, ApiError> {
        let aggregation = aggregation(part.form.agg.as_deref())?;
        let range = match (aggregation, part.time_window) {
            (Aggregation::None, _) => TimeRange::new(range(part.start_ts, 0).start, Timestamp::MAX),
            (_, ..=0) => range(part.start_ts, now.millis()),
            (_, window) => range(part.start_ts, part.start_ts.saturating_add(window)),
        };
        Self::new(&part.keys, range, aggregation, &part.form)
    }

    fn new(
        keys: &[String],
        range: TimeRange,
        aggregation: Aggregation,
        form: &SeriesForm,
    ) -> Result<Self, ApiError> {
        let zone = form.time_zone_id.as_deref().filter(|zone| !zone.is_empty());
        let interval = match calendar_interval(form.interval_type.as_deref(), zone)? {
            Some(calendar) => calendar,
            None => interval_of_millis(form.interval)?,
        };
        let request = HistoryRequest {
            keys: unique_keys(keys.iter().map(String::as_str).filter(|key| !key.is_empty()))?,
            range,
            aggregation,
            interval,
            limit: form.limit.filter(|limit| *limit > 0).unwrap_or(limits::READ_ROWS_DEFAULT),
            order: Order::Descending,
        };
        Ok(Self { request, with_previous: form.fetch_latest_previous_point })
    }

    /// The values of each key, oldest first; without keys that have none.
    fn run(&self, hub: &Hub, caller: &Caller, series: SeriesId) -> Result<Data, ApiError> {
        let mut data = Data::new();
        for (key, mut timed_values) in hub.history(caller, series, &self.request)? {
            if self.with_previous {
                timed_values.extend(self.before(hub, caller, series, &key)?);
            }
            timed_values.reverse();
            if !timed_values.is_empty() {
                data.insert(key, timed_values);
            }
        }
        Ok(data)
    }

    /// The last value before the range.
    fn before(
        &self,
        hub: &Hub,
        caller: &Caller,
        series: SeriesId,
        key: &str,
    ) -> Result<Option<TimedValue>, ApiError> {
        let range = TimeRange::new(Timestamp::MIN, self.request.range.start);
        first(hub, caller, series, &newest(key, range))
    }
}

/// A request for the newest value of a range.
fn newest(key: &str, range: TimeRange) -> HistoryRequest {
    let (aggregation, order) = (Aggregation::None, Order::Descending);
    let interval = Interval::WholeRange;
    HistoryRequest { keys: vec![key.to_owned()], range, aggregation, interval, limit: 1, order }
}

fn first(
    hub: &Hub,
    caller: &Caller,
    series: SeriesId,
    request: &HistoryRequest,
) -> Result<Option<TimedValue>, ApiError> {
    let found = hub.history(caller, series, request)?;
    Ok(found.into_iter().next().and_then(|(_, timed_values)| timed_values.into_iter().next()))
}

fn aggregates_of(keys: &[AggregateKey], current: TimeRange) -> Result<Vec<AggregateRead>, ApiError> {
    if keys.len() > AGGREGATES_PER_COMMAND_MAX {
        let (count, limit) = (keys.len(), AGGREGATES_PER_COMMAND_MAX);
        let message = format!(
            "{count} aggregates in one command, the limit is {limit} (AGGREGATES_PER_COMMAND_MAX); send several"
        );
        return Err(ApiError::argument(message));
    }
    let read = |key: &AggregateKey| {
        let aggregation = aggregation(Some(&key.agg))?;
        // Without aggregation the newest value of the range is wanted.
        let request = |range| HistoryRequest { aggregation, ..newest(&key.key, range) };
        let previous = match (key.previous_start_ts, key.previous_end_ts) {
            (Some(start), Some(end)) => Some(request(range(start, end))),
            (None, None) => None,
            _ => {
                let message = "previousStartTs and previousEndTs belong together";
                return Err(ApiError::argument(message));
            }
        };
        let current = (key.previous_value_only != Some(true)).then(|| request(current));
        Ok(AggregateRead { id: key.id, current, previous })
    };
    keys.iter().map(read).collect()
}
