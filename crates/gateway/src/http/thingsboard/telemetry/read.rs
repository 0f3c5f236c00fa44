//! Reads values: keys, latest values, history. Paths, parameters and answers are ThingsBoard's.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::caller::Caller;
use hub::history::{Aggregation, Calendar, CalendarUnit, CalendarZone, History, HistoryRequest, Interval};
use hub::registry::Device;
use hub::{Hub, LatestValue, Order, SeriesOwner};
use model::{TimeRange, Timestamp, limits};
use serde::Serialize;

use super::entity::shown_series;
use super::groups::{Group, Selection, devices_of};
use super::histories::{Form, Histories};
use crate::error::ApiError;
use crate::http::limits::KEYS_PER_REQUEST_MAX;
use crate::http::tools::json::{Entries, Json, Object, TsValue, json_response};
use crate::http::tools::pieces::Pieces;
use crate::http::tools::request::{JsonBody, Params, PathOf};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of this file.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .get("/api/plugins/telemetry/{kind}/{id}/keys/timeseries", keys)
        .get("/api/plugins/telemetry/{kind}/{id}/values/timeseries", values)
        .get("/api/plugins/telemetry/{kind}/{id}/values/timeseries/history", history)
        .post("/api/tacho/values", values_of_many)
}

/// `GET /api/plugins/telemetry/{entityType}/{entityId}/keys/timeseries`: the keys of a device, an asset or an entity view, sorted.
async fn keys(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): PathOf<(String, String)>,
) -> Result<Response, ApiError> {
    let shown = shown_series(&state, &session, &kind, &id)?;
    let hub = Arc::clone(&state.hub);
    let latest = state.reads.run(move || hub.shown_latest(session.caller(), &shown, None)).await??;
    let keys: Vec<String> = latest.into_iter().map(|latest| latest.key).collect();
    Ok(Json(keys).into_response())
}

/// `GET /api/plugins/telemetry/{entityType}/{entityId}/values/timeseries`: history with `startTs` and `endTs`, else latest
/// values.
async fn values(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): PathOf<(String, String)>,
    params: Params,
) -> Result<Response, ApiError> {
    read(&state, session, (&kind, &id), &params, ValuesRequest::parse(&params)?).await
}

/// `GET .../values/timeseries/history`: history, the newer path of ThingsBoard. It needs `startTs` and `endTs`.
async fn history(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): PathOf<(String, String)>,
    params: Params,
) -> Result<Response, ApiError> {
    let wanted = match ValuesRequest::parse(&params)? {
        ValuesRequest::Latest(_) => {
            let message = "history needs startTs and endTs; .../values/timeseries has latest values";
            return Err(ApiError::argument(message));
        }
        history => history,
    };
    read(&state, session, (&kind, &id), &params, wanted).await
}

async fn read(
    state: &Arc<HttpState>,
    session: Session,
    (kind, id): (&str, &str),
    params: &Params,
    wanted: ValuesRequest,
) -> Result<Response, ApiError> {
    let shown = shown_series(state, &session, kind, id)?;
    let strict = params.flag("useStrictDataTypes")?;
    let (hub, pool_of) = (Arc::clone(&state.hub), Arc::clone(state));
    let bytes_max = state.answer_bytes_max();
    let values = wanted.history_values();
    let read = move || match wanted {
        ValuesRequest::Latest(keys) => {
            let found = hub.shown_latest(session.caller(), &shown, keys.as_deref())?;
            Ok(Json(latest_json(&found, keys.as_deref(), strict)).into_response())
        }
        ValuesRequest::History(request) => {
            let form = Form::Lists { strict };
            let (caller, request) = (session.caller(), shown.shown(&request));
            let histories = Histories { hub: &hub, caller, request: &request, form, bytes_max };
            let answer = histories.of(shown.owner(), &pool_of.reads.worker_set())?;
            Ok(json_response(Body::new(answer.into_body())))
        }
    };
    match values {
        Some(values) => {
            state.reads.run_large(state.hub.memory_pressure(), state.history_bytes(values), read).await?
        }
        None => state.reads.run(read).await?,
    }
}

/// `POST /api/tacho/values` with a JSON array of device ids: for each device the answer of [`values`] with the same
/// parameters, or with `format=columns` its history as columns. With an object of such arrays: for each group the aggregates
/// over its devices.
async fn values_of_many(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    JsonBody(selection): JsonBody<Selection>,
) -> Result<Response, ApiError> {
    let strict = params.flag("useStrictDataTypes")?;
    let wanted = ValuesRequest::parse(&params)?;
    let form = form(&params, &wanted, strict)?;
    selection.check()?;
    let hub = Arc::clone(&state.hub);
    let pool_of = Arc::clone(&state);
    let workers = move || pool_of.reads.worker_set();
    let bytes_max = state.answer_bytes_max();
    let answer = match selection {
        Selection::Devices(ids) => {
            let devices = devices_of(&state, &session, &ids)?;
            let read = move || {
                let devices: Vec<_> =
                    ids.iter().map(String::as_str).zip(devices.iter().map(AsRef::as_ref)).collect();
                match &wanted {
                    ValuesRequest::Latest(keys) => {
                        latest_of_many(&hub, session.caller(), &devices, keys.as_deref(), strict, bytes_max)
                    }
                    ValuesRequest::History(request) => {
                        let histories =
                            Histories { hub: &hub, caller: session.caller(), request, form, bytes_max };
                        histories.of_many(&devices, &workers())
                    }
                }
            };
            state.reads.run_large(state.hub.memory_pressure(), state.history_bytes(usize::MAX), read).await?
        }
        Selection::Groups(named) => {
            let request = wanted.reduced()?;
            let group = |(name, ids): (String, Vec<String>)| {
                Ok(Group { name, devices: devices_of(&state, &session, &ids)? })
            };
            let groups: Vec<Group> = named.into_iter().map(group).collect::<Result<_, ApiError>>()?;
            let read = move || {
                let histories =
                    Histories { hub: &hub, caller: session.caller(), request: &request, form, bytes_max };
                histories.of_groups(&groups, &workers())
            };
            state.reads.run_large(state.hub.memory_pressure(), state.history_bytes(usize::MAX), read).await?
        }
    };
    Ok(json_response(Body::new(answer?.into_body())))
}

fn latest_of_many(
    hub: &Hub,
    caller: &Caller,
    devices: &[(&str, &Device)],
    keys: Option<&[String]>,
    strict: bool,
    answer_bytes_max: usize,
) -> Result<Pieces, ApiError> {
    let mut answer = Entries::default();
    for (id, device) in devices {
        let found = latest(hub, caller, *device, keys)?;
        let bytes_max = answer_bytes_max.saturating_sub(answer.len());
        answer.entry(id, &latest_json(&found, keys, strict), bytes_max)?;
    }
    Ok(Entries::object([answer]))
}

/// Refuses entity types other than devices, where only devices will do.
pub(crate) fn check_kind(kind: &str, what: &str) -> Result<(), ApiError> {
    if kind == "DEVICE" {
        return Ok(());
    }
    Err(ApiError::argument(format!("the entity type is {kind:?}; only DEVICE has {what} here")))
}

/// A request for values.
#[derive(Debug, PartialEq, Eq)]
enum ValuesRequest {
    /// Latest values of these keys; `None` for all keys.
    Latest(Option<Vec<String>>),
    History(HistoryRequest),
}

impl ValuesRequest {
    /// Most values of the history of one device; `None` for latest values.
    fn history_values(&self) -> Option<usize> {
        match self {
            Self::Latest(_) => None,
            Self::History(request) => Some(request.limit.saturating_mul(request.keys.len())),
        }
    }

    fn parse(params: &Params) -> Result<Self, ApiError> {
        let keys = unique_keys(params.keys())?;
        let (start, end) = match (params.number::<i64>("startTs")?, params.number::<i64>("endTs")?) {
            (None, None) => {
                check_latest(params)?;
                return Ok(Self::Latest((!keys.is_empty()).then_some(keys)));
            }
            (Some(start), Some(end)) => (start, end),
            _ => {
                let message =
                    "startTs and endTs belong together; give both for history or none for latest values";
                return Err(ApiError::argument(message));
            }
        };
        if keys.is_empty() {
            let message = "history needs keys; name them in keys, separated by commas, or each in a parameter key (.../keys/timeseries lists them)";
            return Err(ApiError::argument(message));
        }
        let order = match params.text("orderBy") {
            None | Some("DESC") => Order::Descending,
            Some("ASC") => Order::Ascending,
            Some(other) => {
                return Err(ApiError::argument(format!("orderBy is {other:?}; it must be ASC or DESC")));
            }
        };
        let aggregation = aggregation(params.text("agg"))?;
        let interval = interval(params, aggregation)?;
        // ThingsBoard gives an empty range its first millisecond.
        let is_widened = aggregation != Aggregation::None && start == end;
        let range = range(start, if is_widened { end.saturating_add(1) } else { end });
        Ok(Self::History(HistoryRequest {
            keys,
            range,
            aggregation,
            interval,
            limit: params.number("limit")?.unwrap_or(limits::READ_ROWS_DEFAULT),
            order,
        }))
    }

    /// The request for aggregates, the only kind of request for groups.
    fn reduced(self) -> Result<HistoryRequest, ApiError> {
        match self {
            Self::History(request) if request.aggregation != Aggregation::None => Ok(request),
            Self::History(_) | Self::Latest(_) => {
                let message = "groups are answered with what their devices have together; give startTs, endTs and agg, or name the devices in one list";
                Err(ApiError::argument(message))
            }
        }
    }
}

/// Refuses parameters of history in a request for latest values, unless they have ThingsBoard's defaults.
fn check_latest(params: &Params) -> Result<(), ApiError> {
    const OF_HISTORY: [(&str, &str); 6] = [
        ("agg", "NONE"),
        ("interval", "0"),
        ("intervalType", "MILLISECONDS"),
        ("limit", "100"),
        ("orderBy", "DESC"),
        ("timeZone", ""),
    ];
    let wrong =
        OF_HISTORY.iter().find(|(name, default)| params.text(name).is_some_and(|text| text != *default));
    match wrong {
        Some((name, _)) => Err(ApiError::argument(format!(
            "{name} applies to history; give startTs and endTs too, or leave {name} out"
        ))),
        None => Ok(()),
    }
}

/// The form of the answer. Latest values have no columns.
fn form(params: &Params, wanted: &ValuesRequest, strict: bool) -> Result<Form, ApiError> {
    match (params.text("format"), wanted) {
        (None | Some("lists"), _) => Ok(Form::Lists { strict }),
        (Some("columns"), ValuesRequest::History(_)) => Ok(Form::Columns),
        (Some("columns"), ValuesRequest::Latest(_)) => {
            Err(ApiError::argument("format=columns is for history; give startTs and endTs, or leave it out"))
        }
        (Some(other), _) => {
            Err(ApiError::argument(format!("format is {other:?}; it must be lists or columns")))
        }
    }
}

/// Keys in their order, each once.
pub(crate) fn unique_keys<'a>(keys: impl Iterator<Item = &'a str>) -> Result<Vec<String>, ApiError> {
    let mut seen = HashSet::new();
    let unique: Vec<String> = keys.filter(|key| seen.insert(*key)).map(str::to_owned).collect();
    if unique.len() > KEYS_PER_REQUEST_MAX {
        let count = unique.len();
        let message = format!("{count} keys are named, the limit is {KEYS_PER_REQUEST_MAX}; ask in pieces");
        return Err(ApiError::argument(message));
    }
    Ok(unique)
}

/// The range `start_ms <= ts < end_ms`, clamped to the times that can be represented.
pub(crate) fn range(start_ms: i64, end_ms: i64) -> TimeRange {
    let at = |millis: i64| Timestamp::from_micros(millis.saturating_mul(1_000));
    TimeRange::new(at(start_ms), at(end_ms))
}

pub(crate) fn aggregation(name: Option<&str>) -> Result<Aggregation, ApiError> {
    Ok(match name {
        None | Some("NONE") => Aggregation::None,
        Some("MIN") => Aggregation::Min,
        Some("MAX") => Aggregation::Max,
        Some("AVG") => Aggregation::Avg,
        Some("SUM") => Aggregation::Sum,
        Some("COUNT") => Aggregation::Count,
        Some(other) => {
            let message = format!("agg is {other:?}; it must be MIN, MAX, AVG, SUM, COUNT or NONE");
            return Err(ApiError::argument(message));
        }
    })
}

/// The intervals of a request: `interval` in milliseconds, or a unit of the calendar in `intervalType` with its `timeZone`.
fn interval(params: &Params, aggregation: Aggregation) -> Result<Interval, ApiError> {
    let calendar = calendar_interval(params.text("intervalType"), params.text("timeZone"))?;
    match (calendar, params.number("interval")?) {
        (None, Some(0)) if aggregation != Aggregation::None => {
            let message = "interval is 0; give its milliseconds, or leave it out to reduce the whole range to one value";
            Err(ApiError::argument(message))
        }
        (None, interval_ms) => interval_of_millis(interval_ms),
        (Some(calendar), None | Some(0)) => Ok(calendar),
        (Some(_), Some(millis)) => Err(ApiError::argument(format!(
            "interval is {millis}, which does not apply with an intervalType of the calendar; leave it out"
        ))),
    }
}

/// The intervals of a unit of the calendar in a time zone; `None` if the unit is milliseconds.
pub(crate) fn calendar_interval(
    unit: Option<&str>,
    zone: Option<&str>,
) -> Result<Option<Interval>, ApiError> {
    let zone = zone.map(str::parse::<CalendarZone>).transpose();
    let zone = zone.map_err(|wrong| ApiError::argument(format!("timeZone: {wrong}")))?.unwrap_or_default();
    let unit = match unit {
        None | Some("MILLISECONDS") => return Ok(None),
        Some("WEEK") => CalendarUnit::Week,
        Some("WEEK_ISO") => CalendarUnit::WeekIso,
        Some("MONTH") => CalendarUnit::Month,
        Some("QUARTER") => CalendarUnit::Quarter,
        Some(other) => {
            let message = format!(
                "intervalType is {other:?}; it must be MILLISECONDS, WEEK, WEEK_ISO, MONTH or QUARTER"
            );
            return Err(ApiError::argument(message));
        }
    };
    Ok(Some(Interval::Calendar(Calendar { unit, zone })))
}

/// Intervals of a number of milliseconds; the whole range for 0 and `None`.
pub(crate) fn interval_of_millis(interval_ms: Option<i64>) -> Result<Interval, ApiError> {
    match interval_ms.unwrap_or(0) {
        negative @ ..0 => {
            Err(ApiError::argument(format!("interval is {negative}; it must be 0 or more milliseconds")))
        }
        millis => Ok(Interval::of_micros(millis.saturating_mul(1_000))),
    }
}

/// The keys that a device or an asset has values of, sorted.
pub(crate) fn reported_keys<'a>(
    hub: &Hub,
    caller: &Caller,
    owner: impl Into<SeriesOwner<'a>>,
) -> Result<Vec<String>, ApiError> {
    let Some(series) = hub.find_series_of(caller, owner)? else { return Ok(Vec::new()) };
    Ok(hub.latest(caller, series, None)?.into_iter().map(|latest| latest.key).collect())
}

/// The history of a device; empty if the device has not reported yet.
pub(crate) fn read_history(
    hub: &Hub,
    caller: &Caller,
    device: &Device,
    request: &HistoryRequest,
) -> Result<History, ApiError> {
    let Some(series) = hub.find_series_of(caller, device)? else { return Ok(History::new()) };
    Ok(hub.history(caller, series, request)?)
}

fn latest<'a>(
    hub: &Hub,
    caller: &Caller,
    owner: impl Into<SeriesOwner<'a>>,
    keys: Option<&[String]>,
) -> Result<Vec<LatestValue>, ApiError> {
    match hub.find_series_of(caller, owner)? {
        Some(series) => Ok(hub.latest(caller, series, keys)?),
        None => Ok(Vec::new()),
    }
}

/// Latest values as JSON. A requested key without values has `null` at the present time, as in ThingsBoard.
fn latest_json<'a>(found: &'a [LatestValue], keys: Option<&'a [String]>, strict: bool) -> impl Serialize {
    let now = hub::clock::system_now();
    let known: HashSet<&str> = found.iter().map(|latest| latest.key.as_str()).collect();
    let named = keys.unwrap_or_default().iter().map(String::as_str);
    let absent: Vec<&str> = named.filter(|key| !known.contains(key)).collect();
    Object(move || {
        let present = found.iter().map(move |latest| {
            let point = TsValue { ts: latest.ts, value: Some(&latest.value), strict };
            (latest.key.as_str(), [point])
        });
        let absent = absent.clone().into_iter();
        present.chain(absent.map(move |key| (key, [TsValue { ts: now, value: None, strict }])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(query: &str) -> Result<ValuesRequest, ApiError> {
        ValuesRequest::parse(&Params::parse(query))
    }

    #[test]
    fn a_request_without_a_range_reads_latest_values() {
        assert_eq!(wanted("").unwrap(), ValuesRequest::Latest(None));
        let keys = Some(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(wanted("keys=a,b&keys=a").unwrap(), ValuesRequest::Latest(keys.clone()));
        assert_eq!(wanted("key=a&key=b").unwrap(), ValuesRequest::Latest(keys));
        assert_eq!(wanted("key=a,%20b").unwrap(), ValuesRequest::Latest(Some(vec!["a, b".to_owned()])));
        assert!(wanted("agg=NONE&limit=100&orderBy=DESC&interval=0&intervalType=MILLISECONDS").is_ok());
        for query in ["limit=5", "agg=SUM", "interval=60000", "orderBy=ASC", "timeZone=UTC"] {
            assert!(wanted(query).unwrap_err().message.contains("applies to history"), "{query}");
        }
    }

    #[test]
    fn history_has_thingsboards_defaults() {
        let ValuesRequest::History(request) = wanted("keys=a&startTs=1000&endTs=2000").unwrap() else {
            panic!("no history");
        };
        assert_eq!((request.limit, request.order), (100, Order::Descending));
        assert_eq!((request.aggregation, request.interval), (Aggregation::None, Interval::WholeRange));
        assert_eq!(request.range.start.micros(), 1_000_000);
        let query = "keys=a&startTs=0&endTs=9223372036854775807&agg=AVG&interval=5&limit=7&orderBy=ASC";
        let ValuesRequest::History(request) = wanted(query).unwrap() else { panic!("no history") };
        assert_eq!((request.limit, request.order), (7, Order::Ascending));
        assert_eq!((request.aggregation, request.interval), (Aggregation::Avg, Interval::of_micros(5_000)));
        assert_eq!(request.range.end, Timestamp::MAX);
    }

    #[test]
    fn intervals_of_the_calendar_have_a_time_zone() {
        let interval =
            |query: &str| match wanted(&format!("keys=a&startTs=1&endTs=1&agg=SUM&{query}")).unwrap() {
                ValuesRequest::History(request) => (request.interval, request.range.end.micros()),
                ValuesRequest::Latest(_) => panic!("no history"),
            };
        let calendar = |unit, zone: &str| Interval::Calendar(Calendar { unit, zone: zone.parse().unwrap() });
        let month = interval("intervalType=MONTH&timeZone=Europe/Berlin&interval=0");
        // An empty range has its first millisecond.
        assert_eq!(month, (calendar(CalendarUnit::Month, "Europe/Berlin"), 2_000));
        assert_eq!(interval("intervalType=WEEK_ISO").0, calendar(CalendarUnit::WeekIso, "UTC"));
        assert_eq!(
            interval("intervalType=MILLISECONDS&timeZone=UTC&interval=7").0,
            Interval::of_micros(7_000)
        );
    }

    #[test]
    fn errors_of_requests_name_the_parameter() {
        for (query, part) in [
            ("keys=a&startTs=1", "belong together"),
            ("startTs=1&endTs=2", "needs keys"),
            ("keys=a&startTs=1&endTs=x", "endTs is \"x\""),
            ("keys=a&startTs=1&endTs=2&agg=MEDIAN", "agg is \"MEDIAN\""),
            ("keys=a&startTs=1&endTs=2&orderBy=UP", "orderBy is \"UP\""),
            ("keys=a&startTs=1&endTs=2&agg=AVG&interval=0", "leave it out"),
            ("keys=a&startTs=1&endTs=2&interval=-1", "interval is -1"),
            ("keys=a&startTs=1&endTs=2&intervalType=YEAR", "WEEK_ISO, MONTH or QUARTER"),
            ("keys=a&startTs=1&endTs=2&intervalType=MONTH&timeZone=Berlin", "does not exist"),
            ("keys=a&startTs=1&endTs=2&timeZone=Berlin", "does not exist"),
            ("keys=a&startTs=1&endTs=2&agg=AVG&intervalType=WEEK&interval=5", "does not apply"),
            ("keys=a&startTs=1&endTs=2&limit=-5", "limit is \"-5\""),
        ] {
            let error = wanted(query).unwrap_err();
            assert!(error.message.contains(part), "{query}: {}", error.message);
        }
        let keys: Vec<String> = (0..=KEYS_PER_REQUEST_MAX).map(|n| n.to_string()).collect();
        assert!(unique_keys(keys.iter().map(String::as_str)).is_err());
    }
}
