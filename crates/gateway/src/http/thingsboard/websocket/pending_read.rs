//! Reads of the store for commands.

use std::sync::Arc;

use hub::caller::Caller;
use hub::history::{Aggregation, HistoryRequest};
use hub::registry::Device;
use hub::{Hub, Order};
use model::{TimeRange, Timestamp, limits};

use super::commands::{HistoryCommand, Keys, SubscribeCommand};
use super::update::Data;
use crate::error::ApiError;
use crate::http::thingsboard::telemetry::read::{
    aggregation, interval_of_millis, range, read_history, reported_keys, unique_keys,
};

/// A read for a command or subscription.
#[derive(Debug, Clone)]
pub(crate) struct PendingRead {
    pub(crate) id: i64,
    pub(crate) device: Arc<Device>,
    pub(crate) from: ReadFrom,
    /// Whether it is the initial reply of a subscription.
    pub(crate) live: bool,
}

/// Latest values or history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReadFrom {
    /// Latest values of these keys, or of all keys.
    Latest(Option<Vec<String>>),
    /// History of these keys (of all if there are none), the newest values up to the limit.
    History(HistoryRequest),
}

impl ReadFrom {
    /// The initial reply of a subscription. With `startTs` or `timeWindow` it is history up to the present. For plain values
    /// the range has no end: a value between the client's `startTs + timeWindow` and the subscription would otherwise be in
    /// neither the reply nor the updates.
    pub(crate) fn of_subscription(command: &SubscribeCommand, now: Timestamp) -> Result<Self, ApiError> {
        let keys = keys(command.keys.as_ref())?;
        let start_ts = command.start_ts.filter(|start| *start > 0);
        let window = command.time_window.filter(|window| *window > 0);
        let start = match (start_ts, window) {
            (None, None) => return Ok(Self::Latest((!keys.is_empty()).then_some(keys))),
            (Some(start), _) => start,
            (None, Some(window)) => now.millis().saturating_sub(window),
        };
        let aggregation = aggregation(command.agg.as_deref())?;
        let range = match aggregation {
            Aggregation::None => TimeRange::new(range(start, 0).start, Timestamp::MAX),
            _ => range(start, window.map_or(now.millis(), |window| start.saturating_add(window))),
        };
        Ok(Self::History(HistoryRequest {
            keys,
            range,
            aggregation,
            interval: interval_of_millis(command.interval)?,
            limit: limit(command.limit),
            order: Order::Descending,
        }))
    }

    pub(crate) fn of_history(command: &HistoryCommand) -> Result<Self, ApiError> {
        Ok(Self::History(HistoryRequest {
            keys: keys(command.keys.as_ref())?,
            range: range(command.start_ts, command.end_ts),
            aggregation: aggregation(command.agg.as_deref())?,
            interval: interval_of_millis(command.interval)?,
            limit: limit(command.limit),
            order: Order::Descending,
        }))
    }

    /// The named keys; `None` for all keys.
    pub(crate) fn keys(&self) -> Option<&[String]> {
        let named = match self {
            Self::Latest(keys) => keys.as_deref(),
            Self::History(request) => Some(request.keys.as_slice()),
        };
        named.filter(|keys| !keys.is_empty())
    }
}

fn keys(named: Option<&Keys>) -> Result<Vec<String>, ApiError> {
    unique_keys(named.into_iter().flat_map(Keys::iter))
}

/// The limit of a command; 0 means the default, as in ThingsBoard's clients.
fn limit(limit: Option<usize>) -> usize {
    limit.filter(|limit| *limit > 0).unwrap_or(limits::READ_ROWS_DEFAULT)
}

impl PendingRead {
    pub(crate) fn is_latest(&self) -> bool {
        matches!(self.from, ReadFrom::Latest(_))
    }

    /// Reads the values. It may read files. Leaves out keys without values.
    pub(crate) fn run(&self, hub: &Hub, caller: &Caller) -> Result<Data, ApiError> {
        match &self.from {
            ReadFrom::Latest(keys) => {
                let Some(series) = hub.find_series_of(caller, &self.device)? else { return Ok(Data::new()) };
                let latest = hub.latest(caller, series, keys.as_deref())?;
                Ok(latest.into_iter().map(|one| (one.key, vec![(one.ts, one.value)])).collect())
            }
            ReadFrom::History(request) if request.keys.is_empty() => {
                let keys = reported_keys(hub, caller, &self.device)?;
                self.history(hub, caller, &HistoryRequest { keys, ..request.clone() })
            }
            ReadFrom::History(request) => self.history(hub, caller, request),
        }
    }

    fn history(&self, hub: &Hub, caller: &Caller, request: &HistoryRequest) -> Result<Data, ApiError> {
        let found = read_history(hub, caller, &self.device, request)?;
        let filled = found.into_iter().filter(|(_, timed_values)| !timed_values.is_empty());
        // The store returns the newest first, so a limit keeps the newest. The reply has the oldest first, like updates.
        Ok(filled.map(|(key, timed_values)| (key, timed_values.into_iter().rev().collect())).collect())
    }
}

#[cfg(test)]
mod tests {
    use hub::history::Interval;

    use super::*;

    fn subscribe(members: &str) -> ReadFrom {
        let command = serde_json::from_str(&format!(r#"{{"cmdId":1{members}}}"#)).unwrap();
        ReadFrom::of_subscription(&command, Timestamp::from_millis(100_000).unwrap()).unwrap()
    }

    fn history(members: &str) -> HistoryRequest {
        let ReadFrom::History(request) = subscribe(members) else { panic!("{members} is not history") };
        request
    }

    #[test]
    fn a_command_without_a_start_reads_latest_values() {
        assert_eq!(subscribe(""), ReadFrom::Latest(None));
        assert_eq!(subscribe(r#","keys":"","startTs":0,"timeWindow":0"#), ReadFrom::Latest(None));
        let keys = Some(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(subscribe(r#","keys":"a,b,a""#), ReadFrom::Latest(keys));
        let odd = Some(vec!["a,b".to_owned(), " c".to_owned()]);
        assert_eq!(subscribe(r#","keys":["a,b"," c",""]"#), ReadFrom::Latest(odd));
    }

    #[test]
    fn plain_history_of_a_subscription_is_open_to_the_present() {
        for members in
            [r#","startTs":40000,"timeWindow":60000"#, r#","startTs":40000"#, r#","timeWindow":60000"#]
        {
            let request = history(members);
            assert_eq!(request.range.start.millis(), 40_000, "{members}");
            assert_eq!(request.range.end, Timestamp::MAX, "{members}");
            assert_eq!((request.limit, request.order), (100, Order::Descending));
        }
    }

    #[test]
    fn reduced_history_of_a_subscription_has_its_window() {
        let request = history(r#","startTs":40000,"timeWindow":70000,"agg":"MAX","interval":1000,"limit":0"#);
        assert_eq!((request.range.start.millis(), request.range.end.millis()), (40_000, 110_000));
        assert_eq!(
            (request.aggregation, request.interval),
            (Aggregation::Max, Interval::of_micros(1_000_000))
        );
    }
}
