//! Messages of clients of `/api/ws` (ThingsBoard's `WsCommandsWrapper`).

use serde::Deserialize;
use serde_json::Value as JsonValue;

use super::alarm_queries::{AlarmCommand, AlarmStatusCommand};
use super::commands::{AttributeCommand, Command, HistoryCommand, SubscribeCommand};
use super::query_commands::{CommandId, EntityCountCommand, EntityDataCommand};
use super::query_update::UpdateType;
use crate::error::ApiError;
use crate::http::limits::SOCKET_COMMANDS_MAX;
use crate::http::thingsboard::entity_query::{AlarmCountQuery, AlarmDataQuery};

/// One message of a client.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wrapper {
    auth_cmd: Option<Authentication>,
    cmds: Option<Vec<JsonValue>>,
}

/// The session token, in the first message of a socket that has none in its address.
#[derive(Debug, Deserialize)]
struct Authentication {
    token: String,
}

/// A message of `/api/ws`.
#[derive(Debug)]
pub(crate) struct General {
    /// The token of the client, if the message has one.
    pub(crate) token: Option<String>,
    pub(crate) commands: Vec<Command>,
}

/// The commands by ThingsBoard's names (`WsCmdType`).
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
enum NamedCommand {
    Timeseries(SubscribeCommand),
    TimeseriesHistory(HistoryCommand),
    Attributes(AttributeCommand),
    EntityData(Box<EntityDataCommand>),
    EntityDataUnsubscribe(CommandId),
    EntityCount(Box<EntityCountCommand>),
    EntityCountUnsubscribe(CommandId),
    AlarmData(Box<AlarmCommand<AlarmDataQuery>>),
    AlarmDataUnsubscribe(CommandId),
    AlarmCount(Box<AlarmCommand<AlarmCountQuery>>),
    AlarmCountUnsubscribe(CommandId),
    AlarmStatus(AlarmStatusCommand),
    AlarmStatusUnsubscribe(CommandId),
}

/// Parses a message. A command that does not fit becomes [`Command::Wrong`]: the others are done.
pub(crate) fn parse(text: &str) -> Result<General, ApiError> {
    const TAKES: &str = "this WebSocket takes an object with cmds, and with authCmd in the first message";
    let wrapper: Wrapper = serde_json::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("{TAKES}; the message does not fit: {error}")))?;
    let Wrapper { auth_cmd, cmds } = wrapper;
    if auth_cmd.is_none() && cmds.is_none() {
        return Err(ApiError::bad_request(format!("{TAKES}; the message has none of them")));
    }
    let cmds = cmds.unwrap_or_default();
    check_count(cmds.len())?;
    let token = auth_cmd.map(|Authentication { token }| token);
    Ok(General { token, commands: cmds.into_iter().map(command).collect() })
}

/// Refuses too many commands in one message.
pub(crate) fn check_count(count: usize) -> Result<(), ApiError> {
    if count > SOCKET_COMMANDS_MAX {
        let message = format!(
            "{count} commands in one message, the limit is {SOCKET_COMMANDS_MAX} (SOCKET_COMMANDS_MAX); send several"
        );
        return Err(ApiError::argument(message));
    }
    Ok(())
}

fn command(json: JsonValue) -> Command {
    let name = json.get("type").and_then(JsonValue::as_str).unwrap_or_default().to_owned();
    let id = json.get("cmdId").and_then(JsonValue::as_i64);
    let answer = UpdateType::of_command(&name);
    if matches!(answer, Some(UpdateType::Notifications | UpdateType::NotificationsCount)) {
        let error = ApiError::bad_request(format!("notifications are not there on this server ({name})"));
        return Command::Wrong { id, answer, error };
    }
    match serde_json::from_value(json) {
        Ok(NamedCommand::Timeseries(command)) => Command::of_subscription(command),
        Ok(NamedCommand::TimeseriesHistory(command)) => Command::History(command),
        Ok(NamedCommand::Attributes(command)) => Command::of_attributes(command),
        Ok(NamedCommand::EntityData(command)) => Command::EntityData(command),
        Ok(NamedCommand::EntityCount(command)) => Command::EntityCount(command),
        Ok(NamedCommand::AlarmData(command)) => Command::Alarms(Box::new((*command).into())),
        Ok(NamedCommand::AlarmCount(command)) => Command::Alarms(Box::new((*command).into())),
        Ok(NamedCommand::AlarmStatus(command)) => Command::Alarms(Box::new(command.into())),
        Ok(
            NamedCommand::EntityDataUnsubscribe(CommandId { cmd_id })
            | NamedCommand::EntityCountUnsubscribe(CommandId { cmd_id })
            | NamedCommand::AlarmDataUnsubscribe(CommandId { cmd_id })
            | NamedCommand::AlarmCountUnsubscribe(CommandId { cmd_id })
            | NamedCommand::AlarmStatusUnsubscribe(CommandId { cmd_id }),
        ) => Command::EndQuery(cmd_id),
        Err(error) => {
            let error = ApiError::bad_request(format!("the command {name:?} does not fit: {error}"));
            Command::Wrong { id, answer, error }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_token_and_commands() {
        let text = r#"{"authCmd":{"cmdId":0,"token":"abc"},"cmds":[
            {"type":"TIMESERIES","cmdId":1,"entityType":"DEVICE","entityId":"x","keys":"a"},
            {"type":"TIMESERIES","cmdId":1,"unsubscribe":true},
            {"type":"ENTITY_DATA","cmdId":2,"query":{"entityFilter":{"type":"entityType","entityType":"DEVICE"},
             "pageLink":{"pageSize":5,"page":0,"dynamic":true}},"latestCmd":{"keys":[{"type":"TIME_SERIES","key":"a"}]},
             "tsCmd":{"keys":["a"],"startTs":1,"timeWindow":2,"interval":3,"limit":4,"agg":"AVG"}},
            {"type":"ENTITY_DATA_UNSUBSCRIBE","cmdId":2},
            {"type":"ENTITY_COUNT","cmdId":3,"query":{"entityFilter":{"type":"entityType","entityType":"DEVICE"}}}]}"#;
        let General { token, commands } = parse(text).unwrap();
        assert_eq!(token.as_deref(), Some("abc"));
        assert!(matches!(&commands[0], Command::Subscribe(command) if command.cmd_id == 1));
        assert_eq!(commands[1], Command::Unsubscribe(1));
        let Command::EntityData(data) = &commands[2] else { panic!("{commands:?}") };
        let ts = data.ts_cmd.as_ref().unwrap();
        assert_eq!((ts.start_ts, ts.time_window, ts.form.limit), (1, 2, Some(4)));
        assert!(data.query.as_ref().unwrap().page_link.dynamic && data.has_parts());
        assert_eq!(commands[3], Command::EndQuery(2));
        assert!(matches!(&commands[4], Command::EntityCount(command) if command.cmd_id == 3));
    }

    #[test]
    fn a_command_that_does_not_fit_is_an_error_of_its_own() {
        let text = r#"{"cmds":[{"type":"ENTITY_DATA","cmdId":7,"query":{"entityFilter":{"type":"x"}}},
            {"type":"FLY","cmdId":8},{"type":"NOTIFICATIONS","cmdId":9},{"cmdId":1},5]}"#;
        let commands = parse(text).unwrap().commands;
        let wrong = |n: usize| match &commands[n] {
            Command::Wrong { id, answer, error } => (*id, *answer, error.message.clone()),
            other => panic!("{other:?}"),
        };
        let (id, answer, message) = wrong(0);
        assert_eq!((id, answer), (Some(7), Some(UpdateType::EntityData)));
        assert!(message.contains("relationsQuery"), "{message}");
        let (id, answer, message) = wrong(1);
        assert_eq!((id, answer), (Some(8), None));
        assert!(message.contains("ENTITY_COUNT"), "{message}");
        assert!(wrong(2).2.contains("notifications are not there"));
        assert_eq!((wrong(3).0, wrong(4).0), (Some(1), None));
    }

    #[test]
    fn other_messages_are_refused() {
        for text in ["", "[]", "{}", r#"{"tsSubCmds":[]}"#, r#"{"cmds":{}}"#, r#"{"authCmd":{}}"#] {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains("authCmd"), "{text}: {}", error.message);
        }
        let many = format!(r#"{{"cmds":[{}]}}"#, vec!["{}"; SOCKET_COMMANDS_MAX + 1].join(","));
        assert!(parse(&many).unwrap_err().message.contains("SOCKET_COMMANDS_MAX"));
    }
}
