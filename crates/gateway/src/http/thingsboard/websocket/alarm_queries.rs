//! Subscriptions of alarms: what they ask, and what the client has got.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use hub::Hub;
use hub::alarms::{AlarmFeed, AlarmQuery, SearchStatus};
use hub::caller::Caller;
use serde::Deserialize;
use tokio::time::Instant;

use super::query_update::{UpdateType, alarm_page_message, alarm_status_message, count_message};
use crate::budget::Charge;
use crate::error::ApiError;
use crate::http::limits::{ALARM_REFRESH_INTERVAL, QUERY_REFRESH_FACTOR, QUERY_REFRESH_INTERVAL};
use crate::http::thingsboard::alarms::request::{EntityJson, parsed};
use crate::http::thingsboard::entity_query::{AlarmCountQuery, AlarmDataQuery};

/// Starts or replaces the subscription `cmdId` of alarms (ThingsBoard's `AlarmDataCmd`, `AlarmCountCmd`).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmCommand<Q> {
    cmd_id: i64,
    query: Q,
}

/// Starts or replaces the subscription `cmdId` of whether an entity has active alarms (ThingsBoard's `AlarmStatusCmd`).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmStatusCommand {
    cmd_id: i64,
    originator_id: EntityJson,
    /// Only these types; all if there is none.
    type_list: Option<Vec<String>>,
    /// Only these severities; all if there is none.
    severity_list: Option<Vec<String>>,
}

/// A command about alarms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AlarmAsk {
    pub(crate) id: i64,
    question: Question,
}

#[derive(Debug, Clone, PartialEq)]
enum Question {
    Data(AlarmDataQuery),
    Count(AlarmCountQuery),
    Status(AlarmStatusCommand),
}

/// An answer: the message, and a hash of what the client sees in it.
#[derive(Debug)]
pub(crate) struct AlarmAnswer {
    pub(crate) message: String,
    pub(crate) hash: u64,
}

#[derive(Debug)]
pub(crate) struct AlarmSubscription {
    pub(crate) ask: AlarmAsk,
    /// The hash of the answer that the client has got.
    pub(crate) sent: u64,
    /// When it asks again.
    pub(super) due: Instant,
    /// When it asks again at the earliest: many changes of alarms make one answer.
    earliest: Instant,
    _held: Charge,
}

impl AlarmAsk {
    /// The kind of the messages that answer it.
    pub(crate) fn kind(&self) -> UpdateType {
        match self.question {
            Question::Data(_) => UpdateType::AlarmData,
            Question::Count(_) => UpdateType::AlarmCount,
            Question::Status(_) => UpdateType::AlarmStatus,
        }
    }

    /// Answers it. It may read files: call it on a thread that may block.
    pub(crate) fn answer(
        &self,
        hub: &Hub,
        caller: &Caller,
        hashes: &RandomState,
    ) -> Result<AlarmAnswer, ApiError> {
        Ok(match &self.question {
            Question::Data(query) => {
                let page = query.find(hub, caller)?;
                let hash = page.hash_with(hashes);
                AlarmAnswer { message: alarm_page_message(self.id, &page, page.entities)?, hash }
            }
            Question::Count(query) => {
                let count = query.count(hub, caller)?;
                AlarmAnswer {
                    message: count_message(self.id, UpdateType::AlarmCount, count),
                    hash: hashes.hash_one(count),
                }
            }
            Question::Status(command) => {
                let active = command.is_active(hub, caller)?;
                AlarmAnswer { message: alarm_status_message(self.id, active), hash: hashes.hash_one(active) }
            }
        })
    }
}

impl AlarmStatusCommand {
    fn is_active(&self, hub: &Hub, caller: &Caller) -> Result<bool, ApiError> {
        let originator = self.originator_id.entity("originatorId")?;
        hub.check_alarm_entity(caller, originator)?;
        let severities = self.severity_list.iter().flatten().map(|name| parsed(name));
        let query = AlarmQuery {
            entities: Some([originator].into()),
            originators_only: true,
            statuses: vec![SearchStatus::Active],
            severities: severities.collect::<Result<_, _>>()?,
            types: self.type_list.clone().unwrap_or_default(),
            ..AlarmQuery::default()
        };
        Ok(hub.alarm_count(caller, &query)? > 0)
    }
}

impl AlarmSubscription {
    /// A subscription whose first answer took `cost`.
    pub(crate) fn new(ask: AlarmAsk, sent: u64, cost: Duration, held: Charge) -> Self {
        let now = Instant::now();
        let mut subscription = Self { ask, sent, due: now, earliest: now, _held: held };
        subscription.asked(cost);
        subscription
    }

    /// It has asked, which took `cost`.
    pub(super) fn asked(&mut self, cost: Duration) {
        let (now, rest) = (Instant::now(), cost * QUERY_REFRESH_FACTOR);
        self.earliest = now + ALARM_REFRESH_INTERVAL.max(rest);
        self.due = now + QUERY_REFRESH_INTERVAL.max(rest);
    }

    /// The answer may have changed.
    pub(super) fn changed(&mut self) {
        self.due = self.due.min(self.earliest);
    }
}

impl From<AlarmCommand<AlarmDataQuery>> for AlarmAsk {
    fn from(AlarmCommand { cmd_id, query }: AlarmCommand<AlarmDataQuery>) -> Self {
        Self { id: cmd_id, question: Question::Data(query) }
    }
}

impl From<AlarmCommand<AlarmCountQuery>> for AlarmAsk {
    fn from(AlarmCommand { cmd_id, query }: AlarmCommand<AlarmCountQuery>) -> Self {
        Self { id: cmd_id, question: Question::Count(query) }
    }
}

impl From<AlarmStatusCommand> for AlarmAsk {
    fn from(command: AlarmStatusCommand) -> Self {
        Self { id: command.cmd_id, question: Question::Status(command) }
    }
}

/// Waits for a change of alarms; without a subscription forever. The future may be dropped at any time.
pub(crate) async fn next_alarm_change(feed: &mut Option<AlarmFeed>) {
    match feed {
        Some(feed) => feed.changed().await,
        None => std::future::pending().await,
    }
}
