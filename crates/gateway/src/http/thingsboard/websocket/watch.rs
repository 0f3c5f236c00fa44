//! Watches: the newest values of many devices, at an interval and in one short message. ThingsBoard has no watches; the
//! dashboard uses them (`docs/protocol/live.md`).
//!
//! A message names a device by its index in the list that the client sent. The session sends a message at every interval, even
//! without new values, so a client can detect a dead connection.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use futures_util::FutureExt;
use hub::live::{LiveConnection, Subscriber, Update, Updates};
use model::{SeriesId, Timestamp, Value};
use serde::Serialize;
use serde::ser::{SerializeTuple, Serializer};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::commands::WatchCommand;
use super::update::bytes_of_value;
use super::update_filter::bytes_of;
use crate::budget::{Charge, OverBudget, Share};
use crate::error::ApiError;
use crate::http::limits::{
    REMEMBERED_KEY_BYTES, SUBSCRIPTION_BYTES, UPDATE_BYTES_MAX, WATCH_DEVICES_MAX, WATCH_INTERVAL_DEFAULT,
    WATCH_INTERVAL_MAX, WATCH_INTERVAL_MIN, WATCH_KEYS_MAX, WATCHES_MAX,
};
use crate::http::tools::json::{Object, WireValue, to_bytes};

/// Bytes of a row besides its values: the index of the device, the time, brackets.
const ROW_BYTES: usize = 32;
/// All watches of a session.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    by_id: BTreeMap<i64, Watch>,
}

#[derive(Debug)]
pub(crate) struct Watch {
    id: i64,
    subscriber: Subscriber,
    devices: Vec<Uuid>,
    /// Whether some devices have no series yet.
    has_unbound: bool,
    /// Indices of each series in the list. A device that is named twice has two.
    indices: HashMap<SeriesId, Vec<usize>>,
    /// All keys when `None`.
    keys: Option<HashSet<String>>,
    /// The time of the newest sent value per key. The watch does not send older values.
    sent: HashMap<SeriesId, HashMap<String, Timestamp>>,
    /// Bytes of the watch.
    held: Charge,
    interval: Duration,
    due: Instant,
    deflate: bool,
}

/// A message to the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Text(String),
    /// JSON text as a raw DEFLATE stream (RFC 1951).
    Deflated(Vec<u8>),
}

/// The values of one device with one time: `[<index>,<ms>,{"<key>":"<value>"}]`
#[derive(Debug)]
pub(crate) struct Row<'a> {
    index: usize,
    ts: Timestamp,
    values: BTreeMap<&'a str, &'a Value>,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_tuple(3)?;
        row.serialize_element(&self.index)?;
        row.serialize_element(&self.ts.millis())?;
        row.serialize_element(&Object(|| {
            let values = self.values.iter();
            values.map(|(key, value)| (key, WireValue { value: value.as_ref(), strict: false }))
        }))?;
        row.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    watch_id: i64,
    rows: &'a [Row<'a>],
}

impl Watches {
    /// Starts a watch, or replaces the one with the same id. Its first message is due at once; all later values follow it.
    pub(crate) fn add(&mut self, watch: Watch) -> Result<(), ApiError> {
        self.by_id.remove(&watch.id);
        if self.by_id.len() >= WATCHES_MAX {
            let message =
                format!("this session has {WATCHES_MAX} watches, which is the limit; end one first");
            return Err(ApiError::busy(message));
        }
        self.by_id.insert(watch.id, watch);
        Ok(())
    }

    /// Ends the watch with this id, if there is one.
    pub(crate) fn remove(&mut self, id: i64) {
        self.by_id.remove(&id);
    }

    /// Waits until a watch is due; returns its id. The future may be dropped at any time.
    pub(crate) async fn due(&self) -> i64 {
        match self.by_id.values().min_by_key(|watch| watch.due) {
            Some(first) => {
                sleep_until(first.due).await;
                first.id
            }
            None => std::future::pending().await,
        }
    }

    /// Takes the waiting updates of a watch, if any. The watch is due again after its interval.
    pub(crate) fn take(&mut self, id: i64) -> Option<Updates> {
        let watch = self.by_id.get_mut(&id)?;
        watch.due = Instant::now() + watch.interval;
        watch.subscriber.next().now_or_never()
    }

    /// The rows of updates for a watch: of one message, or of several if one would be too long. Fails if the watch would
    /// remember too many bytes.
    pub(crate) fn messages<'a>(
        &mut self,
        id: i64,
        updates: &'a [Arc<Update>],
    ) -> Result<Vec<Vec<Row<'a>>>, OverBudget> {
        let Some(watch) = self.by_id.get_mut(&id) else { return Ok(Vec::new()) };
        Ok(messages_of(watch.rows(updates)?))
    }

    /// Encodes a message.
    pub(crate) fn frame(&self, id: i64, rows: &[Row<'_>]) -> Option<Result<Frame, ApiError>> {
        self.by_id.get(&id).map(|watch| watch.frame(rows))
    }

    /// Whether devices of watches have no series yet.
    pub(crate) fn has_unbound(&self) -> bool {
        self.by_id.values().any(|watch| watch.has_unbound)
    }

    /// Looks up the devices again: `None` for one that is gone, and `Some(None)` for one without a series. Returns the series
    /// that are new in a watch.
    pub(crate) fn follow(
        &mut self,
        series_of: impl Fn(Uuid) -> Option<Option<SeriesId>>,
    ) -> Vec<(i64, SeriesId)> {
        let mut found = Vec::new();
        for watch in self.by_id.values_mut() {
            let mut indices: HashMap<SeriesId, Vec<usize>> = HashMap::new();
            watch.has_unbound = false;
            for (index, device) in watch.devices.iter().enumerate() {
                match series_of(*device) {
                    Some(Some(series)) => indices.entry(series).or_default().push(index),
                    Some(None) => watch.has_unbound = true,
                    None => {}
                }
            }
            let gone: Vec<_> =
                watch.indices.keys().filter(|series| !indices.contains_key(series)).copied().collect();
            gone.into_iter().for_each(|series| watch.subscriber.unwatch(series));
            for series in indices.keys().filter(|series| !watch.indices.contains_key(series)) {
                self::watch(&mut watch.subscriber, *series);
                found.push((watch.id, *series));
            }
            watch.sent.retain(|series, _| indices.contains_key(series));
            watch.indices = indices;
        }
        found
    }
}

impl Watch {
    /// A watch of devices, each with its series. It collects updates from now on.
    pub(crate) fn new(
        command: WatchCommand,
        devices: Vec<(Uuid, Option<SeriesId>)>,
        connection: &LiveConnection,
        share: &Arc<Share>,
    ) -> Result<Self, OverBudget> {
        let named = bytes_of(command.keys.iter().flatten());
        let held = share.hold(SUBSCRIPTION_BYTES * (1 + devices.len()) + named)?;
        let mut subscriber = connection.subscriber();
        let mut indices: HashMap<SeriesId, Vec<usize>> = HashMap::new();
        for (index, (_, series)) in devices.iter().enumerate() {
            let Some(series) = *series else { continue };
            indices.entry(series).or_default().push(index);
            self::watch(&mut subscriber, series);
        }
        Ok(Self {
            id: command.cmd_id,
            subscriber,
            has_unbound: devices.iter().any(|(_, series)| series.is_none()),
            devices: devices.into_iter().map(|(device, _)| device).collect(),
            indices,
            keys: command.keys.map(|keys| keys.into_iter().collect()),
            sent: HashMap::new(),
            held,
            interval: command.interval.map_or(WATCH_INTERVAL_DEFAULT, Duration::from_millis),
            due: Instant::now(),
            deflate: command.deflate,
        })
    }

    /// The newest value of each wanted key of each device; values with one time form one row. Leaves out values that are older
    /// than sent ones.
    fn rows<'a>(&mut self, updates: &'a [Arc<Update>]) -> Result<Vec<Row<'a>>, OverBudget> {
        let mut newest: HashMap<(SeriesId, &str), &Update> = HashMap::new();
        for update in updates {
            if self.keys.as_ref().is_some_and(|keys| !keys.contains(&update.key)) {
                continue;
            }
            let kept = newest.entry((update.series, &update.key)).or_insert(update);
            if kept.ts <= update.ts {
                *kept = update;
            }
        }
        let mut rows: BTreeMap<(usize, Timestamp), BTreeMap<&str, &Value>> = BTreeMap::new();
        for ((series, key), Update { ts, value, .. }) in newest {
            let Some(indices) = self.indices.get(&series) else { continue };
            let sent = self.sent.entry(series).or_default();
            match sent.get_mut(key) {
                Some(sent) if ts < sent => continue,
                Some(sent) => *sent = *ts,
                None => {
                    self.held.grow(key.len() + REMEMBERED_KEY_BYTES)?;
                    sent.insert(key.to_owned(), *ts);
                }
            }
            for index in indices {
                rows.entry((*index, *ts)).or_default().insert(key, value);
            }
        }
        Ok(rows.into_iter().map(|((index, ts), values)| Row { index, ts, values }).collect())
    }

    fn frame(&self, rows: &[Row<'_>]) -> Result<Frame, ApiError> {
        let json = to_bytes(&Message { watch_id: self.id, rows })?;
        if !self.deflate {
            return Ok(Frame::Text(String::from_utf8(json).expect("BUG: JSON is UTF-8")));
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        let deflated = encoder.write_all(&json).and_then(|()| encoder.finish());
        Ok(Frame::Deflated(deflated.expect("BUG: memory takes all bytes")))
    }
}

/// Watches one more series. It never fails: a watch has fewer devices than a subscriber may have series.
fn watch(subscriber: &mut Subscriber, series: SeriesId) {
    let room = subscriber.watch(series);
    debug_assert!(room, "BUG: a watch has too many devices");
}

/// Splits rows into messages; one empty message if there are no rows.
fn messages_of(rows: Vec<Row<'_>>) -> Vec<Vec<Row<'_>>> {
    let mut messages = vec![Vec::new()];
    let mut bytes = 0;
    for row in rows {
        if bytes >= UPDATE_BYTES_MAX {
            messages.push(Vec::new());
            bytes = 0;
        }
        bytes += row.weight();
        messages.last_mut().expect("BUG: there is a message").push(row);
    }
    messages
}

impl Row<'_> {
    /// About the length of the row as text.
    fn weight(&self) -> usize {
        ROW_BYTES + self.values.iter().map(|(key, value)| key.len() + bytes_of_value(value)).sum::<usize>()
    }
}

/// Refuses a command that exceeds the bounds of a watch. A watch without devices only sends signs of life.
pub(crate) fn check_command(command: &WatchCommand) -> Result<(), ApiError> {
    let WatchCommand { entity_ids, keys, interval, .. } = command;
    let bounded = |count: usize, what: &str, max: usize| match count > max {
        true => {
            let message =
                format!("{count} {what} in one watch, the limit is {max}; name those that are looked at");
            Err(ApiError::argument(message))
        }
        false => Ok(()),
    };
    bounded(entity_ids.len(), "entityIds", WATCH_DEVICES_MAX)?;
    if let Some(keys) = keys {
        bounded(keys.len(), "keys", WATCH_KEYS_MAX)?;
    }
    let (least, most) = (WATCH_INTERVAL_MIN.as_millis(), WATCH_INTERVAL_MAX.as_millis());
    match interval.map(u128::from) {
        Some(interval) if interval < least || interval > most => Err(ApiError::argument(format!(
            "interval {interval} is outside of what a watch takes: {least} to {most} milliseconds"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::DeflateDecoder;
    use hub::Metrics;
    use hub::live::Live;
    use serde_json::json;

    use super::*;
    use crate::budget::{Budget, Owner};
    use crate::http::limits::SUBSCRIPTION_BUDGET;

    fn command(members: serde_json::Value) -> WatchCommand {
        let mut command = json!({ "cmdId": 1, "entityIds": ["a", "b"] });
        command.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        serde_json::from_value(command).unwrap()
    }

    /// A watch of two devices, whose series are 10 and 20.
    fn watch_of(members: serde_json::Value) -> Watch {
        let devices =
            vec![(Uuid::from_u128(1), Some(SeriesId(10))), (Uuid::from_u128(2), Some(SeriesId(20)))];
        let live = Arc::new(Live::new(Arc::new(Metrics::new())));
        let share = Budget::new(SUBSCRIPTION_BUDGET).share(Owner::login(Uuid::nil()));
        Watch::new(command(members), devices, &live.connection(Uuid::nil(), Uuid::nil()), &share).unwrap()
    }

    fn update(series: u64, key: &str, ms: i64, value: Value) -> Update {
        Update { series: SeriesId(series), key: key.into(), ts: Timestamp::from_millis(ms).unwrap(), value }
    }

    fn texts(watch: &mut Watch, updates: Vec<Update>) -> Vec<String> {
        let updates: Vec<_> = updates.into_iter().map(Arc::new).collect();
        let messages = messages_of(watch.rows(&updates).unwrap());
        let text = |rows: &Vec<Row<'_>>| match watch.frame(rows).unwrap() {
            Frame::Text(text) => text,
            Frame::Deflated(bytes) => {
                let mut text = String::new();
                DeflateDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
                text
            }
        };
        messages.iter().map(text).collect()
    }

    #[test]
    fn a_message_holds_the_newest_value_of_each_key() {
        let updates = || {
            vec![
                update(20, "speed", 2_000, Value::F64(42.5)),
                update(20, "speed", 1_000, Value::F64(1.0)),
                update(10, "gear", 2_000, Value::I64(3)),
                update(10, "door", 2_000, Value::String("a\"b".into())),
                update(10, "rpm", 1_000, Value::I64(900)),
                update(10, "gear", 2_000, Value::I64(4)),
                update(30, "speed", 9_000, Value::I64(1)),
            ]
        };
        let expected = r#"{"watchId":1,"rows":[[0,1000,{"rpm":"900"}],[0,2000,{"door":"a\"b","gear":"4"}],[1,2000,{"speed":"42.5"}]]}"#;
        assert_eq!(texts(&mut watch_of(json!({})), updates()), [expected]);
        assert_eq!(texts(&mut watch_of(json!({ "deflate": true })), updates()), [expected]);
        let expected = r#"{"watchId":1,"rows":[[1,2000,{"speed":"42.5"}]]}"#;
        assert_eq!(texts(&mut watch_of(json!({ "keys": ["speed"] })), updates()), [expected]);
    }

    #[test]
    fn a_late_value_is_not_sent_after_a_newer_one() {
        let mut watch = watch_of(json!({}));
        let mut after = |ms, value| texts(&mut watch, vec![update(10, "a", ms, Value::I64(value))]).remove(0);
        assert_eq!(after(2_000, 1), r#"{"watchId":1,"rows":[[0,2000,{"a":"1"}]]}"#);
        assert_eq!(after(1_000, 2), r#"{"watchId":1,"rows":[]}"#);
        assert_eq!(after(2_000, 3), r#"{"watchId":1,"rows":[[0,2000,{"a":"3"}]]}"#, "a correction");
    }

    #[test]
    fn a_message_is_sent_also_without_new_values() {
        assert_eq!(texts(&mut watch_of(json!({})), vec![]), [r#"{"watchId":1,"rows":[]}"#]);
    }

    #[test]
    fn long_values_are_several_messages() {
        let long = Value::String("x".repeat(UPDATE_BYTES_MAX));
        let updates = vec![update(10, "a", 1_000, long.clone()), update(20, "a", 1_000, long)];
        let texts = texts(&mut watch_of(json!({})), updates);
        assert!(texts.len() == 2 && texts[1].contains("[1,1000"), "{} messages", texts.len());
    }

    #[test]
    fn deleted_and_moved_devices_keep_their_positions() {
        let mut watches = Watches::default();
        watches.add(watch_of(json!({}))).unwrap();
        let found = watches.follow(|device| (device == Uuid::from_u128(2)).then_some(Some(SeriesId(25))));
        assert_eq!(found, [(1, SeriesId(25))]);
        let watch = watches.by_id.get_mut(&1).unwrap();
        let updates =
            [10, 20, 25].map(|series| update(series, "a", 1_000, Value::I64(7))).into_iter().collect();
        assert_eq!(texts(watch, updates), [r#"{"watchId":1,"rows":[[1,1000,{"a":"7"}]]}"#]);
    }

    #[test]
    fn a_session_has_a_bounded_number_of_watches() {
        let mut watches = Watches::default();
        for id in 0..WATCHES_MAX as i64 {
            watches.add(Watch { id, ..watch_of(json!({})) }).unwrap();
        }
        let more = watches.add(Watch { id: -1, ..watch_of(json!({})) });
        assert!(more.unwrap_err().message.contains("limit"));
        watches.add(Watch { id: 0, ..watch_of(json!({})) }).unwrap();
        watches.remove(0);
        watches.add(Watch { id: -1, ..watch_of(json!({})) }).unwrap();
    }

    #[test]
    fn the_keys_and_devices_of_a_watch_are_bounded() {
        check_command(&command(json!({ "interval": 200, "keys": ["a"] }))).unwrap();
        check_command(&command(json!({ "entityIds": [] }))).unwrap();
        for (members, word) in [
            (json!({ "interval": 199 }), "interval"),
            (json!({ "interval": 60_001 }), "interval"),
            (json!({ "entityIds": vec!["a"; WATCH_DEVICES_MAX + 1] }), "entityIds"),
            (json!({ "keys": vec!["a"; WATCH_KEYS_MAX + 1] }), "keys"),
        ] {
            let message = check_command(&command(members)).unwrap_err().message;
            assert!(message.contains(word), "{message}");
        }
    }
}
