//! Commands of clients (ThingsBoard's `TelemetryPluginCmdsWrapper`).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value as JsonValue;

use super::alarm_queries::{AlarmAsk, AlarmCommand, AlarmStatusCommand};
use super::query_commands::{CommandId, EntityCountCommand, EntityDataCommand};
use super::query_update::UpdateType;
use crate::error::ApiError;
use crate::http::thingsboard::entity_query::{AlarmCountQuery, AlarmDataQuery};
use crate::http::tools::request::split_keys;

/// One message of a client. Absent and `null` members have no commands. A command that does not fit does not spoil the others.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Commands {
    #[serde(rename = "tsSubCmds")]
    time_series: Option<Vec<Entry<SubscribeCommand>>>,
    #[serde(rename = "historyCmds")]
    history: Option<Vec<Entry<HistoryCommand>>>,
    #[serde(rename = "attrSubCmds")]
    attributes: Option<Vec<Entry<AttributeCommand>>>,
    #[serde(rename = "watchCmds")]
    watches: Option<Vec<Entry<WatchCommand>>>,
    #[serde(rename = "entityDataCmds")]
    entities: Option<Vec<Entry<EntityDataCommand>>>,
    #[serde(rename = "entityDataUnsubscribeCmds")]
    entities_end: Option<Vec<Entry<CommandId>>>,
    #[serde(rename = "entityCountCmds")]
    counts: Option<Vec<Entry<EntityCountCommand>>>,
    #[serde(rename = "entityCountUnsubscribeCmds")]
    counts_end: Option<Vec<Entry<CommandId>>>,
    #[serde(rename = "alarmDataCmds")]
    alarms: Option<Vec<Entry<AlarmCommand<AlarmDataQuery>>>>,
    #[serde(rename = "alarmDataUnsubscribeCmds")]
    alarms_end: Option<Vec<Entry<CommandId>>>,
    #[serde(rename = "alarmCountCmds")]
    alarm_counts: Option<Vec<Entry<AlarmCommand<AlarmCountQuery>>>>,
    #[serde(rename = "alarmCountUnsubscribeCmds")]
    alarm_counts_end: Option<Vec<Entry<CommandId>>>,
    #[serde(rename = "alarmStatusCmds")]
    alarm_statuses: Option<Vec<Entry<AlarmStatusCommand>>>,
    #[serde(rename = "alarmStatusUnsubscribeCmds")]
    alarm_statuses_end: Option<Vec<Entry<CommandId>>>,
}

/// An element of a list of commands.
#[derive(Debug)]
enum Entry<T> {
    Command(T),
    Wrong { id: Option<i64>, reason: String },
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Entry<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = JsonValue::deserialize(deserializer)?;
        let id = json.get("cmdId").and_then(JsonValue::as_i64);
        let read = serde_json::from_value(json).map(Self::Command);
        Ok(read.unwrap_or_else(|error| Self::Wrong { id, reason: error.to_string() }))
    }
}

/// Starts, replaces or ends the subscription `cmdId`. The scope is ignored: there is only one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscribeCommand {
    pub(crate) cmd_id: i64,
    pub(crate) entity_type: Option<String>,
    pub(crate) entity_id: Option<String>,
    /// All keys when absent or empty.
    pub(crate) keys: Option<Keys>,
    /// Start of the initial history, in milliseconds.
    pub(crate) start_ts: Option<i64>,
    /// Length of the initial history in milliseconds; 0 for the latest values instead of history.
    pub(crate) time_window: Option<i64>,
    pub(crate) interval: Option<i64>,
    pub(crate) limit: Option<usize>,
    pub(crate) agg: Option<String>,
    #[serde(default)]
    pub(crate) unsubscribe: bool,
}

/// Requests history, once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryCommand {
    pub(crate) cmd_id: i64,
    pub(crate) entity_type: Option<String>,
    pub(crate) entity_id: Option<String>,
    pub(crate) keys: Option<Keys>,
    pub(crate) start_ts: i64,
    pub(crate) end_ts: i64,
    pub(crate) interval: Option<i64>,
    pub(crate) limit: Option<usize>,
    pub(crate) agg: Option<String>,
}

/// The keys of a command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Keys {
    /// Keys separated by commas, as ThingsBoard's clients send them.
    List(String),
    /// A list of keys, for keys that contain a comma.
    Each(Vec<String>),
}

impl Keys {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let (list, each) = match self {
            Self::List(list) => (Some(split_keys(list)), None),
            Self::Each(keys) => (None, Some(keys.iter().map(String::as_str).filter(|key| !key.is_empty()))),
        };
        list.into_iter().flatten().chain(each.into_iter().flatten())
    }
}

/// Starts, replaces or ends the subscription `cmdId` of attributes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttributeCommand {
    pub(crate) cmd_id: i64,
    pub(crate) entity_type: Option<String>,
    pub(crate) entity_id: Option<String>,
    /// All keys when absent or empty.
    pub(crate) keys: Option<Keys>,
    /// All scopes when absent or empty.
    pub(crate) scope: Option<String>,
    #[serde(default)]
    pub(crate) unsubscribe: bool,
}

/// Starts, replaces or ends the watch `cmdId`. ThingsBoard has no such command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WatchCommand {
    pub(crate) cmd_id: i64,
    /// The devices.
    #[serde(default)]
    pub(crate) entity_ids: Vec<String>,
    /// All keys when absent.
    pub(crate) keys: Option<Vec<String>>,
    /// Milliseconds between two messages.
    pub(crate) interval: Option<u64>,
    /// Requests compressed binary messages.
    #[serde(default)]
    pub(crate) deflate: bool,
    #[serde(default)]
    pub(crate) unsubscribe: bool,
}

/// ThingsBoard's name of the scope of time series in commands.
const TIME_SERIES_SCOPE: &str = "LATEST_TELEMETRY";

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Subscribe(SubscribeCommand),
    Unsubscribe(i64),
    History(HistoryCommand),
    Attributes(AttributeCommand),
    Watch(WatchCommand),
    Unwatch(i64),
    EntityData(Box<EntityDataCommand>),
    EntityCount(Box<EntityCountCommand>),
    /// Starts or replaces a subscription of alarms.
    Alarms(Box<AlarmAsk>),
    /// Ends a subscription by a query.
    EndQuery(i64),
    /// A command that does not fit. `answer` is the kind of messages that answer it.
    Wrong {
        id: Option<i64>,
        answer: Option<UpdateType>,
        error: ApiError,
    },
}

impl Command {
    pub(super) fn of_subscription(command: SubscribeCommand) -> Self {
        match command.unsubscribe {
            true => Self::Unsubscribe(command.cmd_id),
            false => Self::Subscribe(command),
        }
    }

    /// With the scope of time series it is a subscription of latest values, as in ThingsBoard.
    pub(super) fn of_attributes(command: AttributeCommand) -> Self {
        let AttributeCommand { cmd_id, entity_type, entity_id, keys, scope, unsubscribe } = command;
        if unsubscribe {
            return Self::Unsubscribe(cmd_id);
        }
        if scope.as_deref() == Some(TIME_SERIES_SCOPE) {
            let command =
                SubscribeCommand { cmd_id, entity_type, entity_id, keys, ..SubscribeCommand::default() };
            return Self::Subscribe(command);
        }
        Self::Attributes(AttributeCommand { cmd_id, entity_type, entity_id, keys, scope, unsubscribe })
    }
}

/// Parses a message. Returns its commands in the order in which the session handles them.
pub(crate) fn parse(text: &str) -> Result<Vec<Command>, ApiError> {
    const TAKES: &str = "this WebSocket takes an object with tsSubCmds, historyCmds, attrSubCmds, entityDataCmds, entityCountCmds, alarmDataCmds, alarmCountCmds, alarmStatusCmds or watchCmds";
    let commands: Commands = serde_json::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("{TAKES}; the message does not fit: {error}")))?;
    let Commands { time_series, history, attributes, watches, entities, entities_end, .. } = commands;
    let Commands { counts, counts_end, alarms, alarms_end, .. } = commands;
    let Commands { alarm_counts, alarm_counts_end, alarm_statuses, alarm_statuses_end, .. } = commands;
    let is_empty = time_series.is_none()
        && history.is_none()
        && attributes.is_none()
        && watches.is_none()
        && entities.is_none()
        && entities_end.is_none()
        && counts.is_none()
        && counts_end.is_none()
        && alarms.is_none()
        && alarms_end.is_none()
        && alarm_counts.is_none()
        && alarm_counts_end.is_none()
        && alarm_statuses.is_none()
        && alarm_statuses_end.is_none();
    if is_empty {
        return Err(ApiError::bad_request(format!("{TAKES}; the message has none of them")));
    }
    let end = |CommandId { cmd_id }| Command::EndQuery(cmd_id);
    let ends = [entities_end, counts_end, alarms_end, alarm_counts_end, alarm_statuses_end];
    let watch = |command: WatchCommand| match command.unsubscribe {
        true => Command::Unwatch(command.cmd_id),
        false => Command::Watch(command),
    };
    let lists = [
        commands_of("tsSubCmds", None, time_series, Command::of_subscription),
        commands_of("historyCmds", None, history, Command::History),
        commands_of("attrSubCmds", None, attributes, Command::of_attributes),
        commands_of("watchCmds", None, watches, watch),
        ends.into_iter().flat_map(|list| commands_of("unsubscribe commands", None, list, end)).collect(),
        commands_of("entityDataCmds", Some(UpdateType::EntityData), entities, |command| {
            Command::EntityData(Box::new(command))
        }),
        commands_of("entityCountCmds", Some(UpdateType::EntityCount), counts, |command| {
            Command::EntityCount(Box::new(command))
        }),
        commands_of("alarmDataCmds", Some(UpdateType::AlarmData), alarms, alarms_command),
        commands_of("alarmCountCmds", Some(UpdateType::AlarmCount), alarm_counts, alarms_command),
        commands_of("alarmStatusCmds", Some(UpdateType::AlarmStatus), alarm_statuses, alarms_command),
    ];
    Ok(lists.into_iter().flatten().collect())
}

/// The commands of one list. `answer` is the kind of messages that answer them.
fn commands_of<T>(
    list: &str,
    answer: Option<UpdateType>,
    entries: Option<Vec<Entry<T>>>,
    command: impl Fn(T) -> Command,
) -> Vec<Command> {
    let read = |entry| match entry {
        Entry::Command(read) => command(read),
        Entry::Wrong { id, reason } => {
            let error = ApiError::bad_request(format!("a command of {list} does not fit: {reason}"));
            Command::Wrong { id, answer, error }
        }
    };
    entries.into_iter().flatten().map(read).collect()
}

fn alarms_command(command: impl Into<AlarmAsk>) -> Command {
    Command::Alarms(Box::new(command.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_commands_of_thingsboards_clients() {
        let text = r#"{"attrSubCmds":[{"cmdId":3,"entityType":"DEVICE","entityId":"x","scope":"SERVER_SCOPE"}],
            "tsSubCmds":[{"entityType":"DEVICE","entityId":"x","scope":"LATEST_TELEMETRY","cmdId":1,
                          "keys":"a,b","startTs":5,"timeWindow":60000,"interval":1000,"limit":50,"agg":"AVG"},
                         {"cmdId":2,"unsubscribe":true}],
            "historyCmds":[{"entityType":"DEVICE","entityId":"x","cmdId":4,"keys":"a","startTs":1,"endTs":2}],
            "unknown":{}}"#;
        let commands = parse(text).unwrap();
        let Command::Subscribe(first) = &commands[0] else { panic!("{commands:?}") };
        assert_eq!(
            (first.cmd_id, first.keys.clone(), first.start_ts),
            (1, Some(Keys::List("a,b".into())), Some(5))
        );
        assert_eq!((first.time_window, first.interval, first.limit), (Some(60_000), Some(1_000), Some(50)));
        assert_eq!(commands[1], Command::Unsubscribe(2));
        assert!(matches!(&commands[2], Command::History(command) if command.end_ts == 2));
        let Command::Attributes(attributes) = &commands[3] else { panic!("{commands:?}") };
        assert_eq!((attributes.cmd_id, attributes.scope.as_deref()), (3, Some("SERVER_SCOPE")));
    }

    #[test]
    fn reads_watches_and_refuses_members_that_they_do_not_have() {
        let text = r#"{"watchCmds":[{"cmdId":1,"unsubscribe":true},
            {"cmdId":2,"entityIds":["x","y"],"keys":["a,b"],"interval":1000,"deflate":true}]}"#;
        let commands = parse(text).unwrap();
        let [Command::Unwatch(1), Command::Watch(watch)] = &commands[..] else { panic!("{commands:?}") };
        assert_eq!((watch.entity_ids.len(), watch.interval, watch.deflate), (2, Some(1_000), true));
        assert_eq!(watch.keys, Some(vec!["a,b".to_owned()]));
        let commands = parse(r#"{"watchCmds":[{"cmdId":1,"entityId":"x"}]}"#).unwrap();
        assert!(matches!(&commands[..], [Command::Wrong { id: Some(1), .. }]), "{commands:?}");
    }

    #[test]
    fn null_lists_and_members_ask_for_nothing() {
        let text =
            r#"{"tsSubCmds":[{"cmdId":1,"entityId":"x","keys":null,"timeWindow":null}],"historyCmds":null}"#;
        let commands = parse(text).unwrap();
        assert!(matches!(&commands[..], [Command::Subscribe(command)] if command.keys.is_none()));
    }

    #[test]
    fn a_command_that_does_not_fit_leaves_the_others() {
        let text = r#"{"tsSubCmds":[{"keys":"a"},{"cmdId":"1"},{"cmdId":2,"entityId":"x"}],
            "historyCmds":[{"cmdId":3}],"entityDataCmds":[{"cmdId":4,"query":5}]}"#;
        let commands = parse(text).unwrap();
        let wrong = |n: usize| match &commands[n] {
            Command::Wrong { id, answer, error } => (*id, *answer, error.message.clone()),
            other => panic!("{other:?}"),
        };
        assert!(wrong(0).2.contains("tsSubCmds") && wrong(0).2.contains("cmdId"), "{commands:?}");
        assert_eq!(wrong(1).0, None);
        assert!(matches!(&commands[2], Command::Subscribe(command) if command.cmd_id == 2));
        assert!(wrong(3).0 == Some(3) && wrong(3).2.contains("startTs"));
        assert_eq!((wrong(4).0, wrong(4).1), (Some(4), Some(UpdateType::EntityData)));
    }

    #[test]
    fn other_messages_are_refused_with_the_accepted_commands() {
        for text in ["", "[]", "{}", r#"{"cmds":[]}"#, r#"{"tsSubCmds":{}}"#] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains("tsSubCmds"), "{text}: {}", error.message);
        }
    }
}
