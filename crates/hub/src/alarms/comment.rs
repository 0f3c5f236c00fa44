//! Comments of alarms.

use kv::{Direction, KeyRange, KeyValueStore, KvError, Space};
use model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::record::{damaged, json_text, millis};

/// Comments by alarm, time and id.
pub(crate) const COMMENTS: Space = Space::new("alarm_comments");

/// A comment of an alarm.
#[derive(Debug, Clone, PartialEq)]
pub struct AlarmComment {
    /// Identity.
    pub id: Uuid,
    pub alarm: Uuid,
    /// When it was made; whole milliseconds.
    pub created_at: Timestamp,
    /// Who made it, or whose act the system comments on.
    pub user: Option<Uuid>,
    /// Whether the system made it.
    pub system: bool,
    /// A JSON document as text; people read its member `text`.
    pub comment: Box<str>,
}

/// What the system comments on (`AlarmCommentSubType`, and the names in the comments).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subtype {
    Ack,
    Clear,
    Assign,
    Unassign,
    SeverityChange,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<Uuid>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    system: bool,
    comment: Box<RawValue>,
}

const KEY_BYTES: usize = 16 + 8 + 16;

impl Subtype {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ack => "ACK",
            Self::Clear => "CLEAR",
            Self::Assign => "ASSIGN",
            Self::Unassign => "UNASSIGN",
            Self::SeverityChange => "SEVERITY_CHANGE",
        }
    }
}

impl AlarmComment {
    /// The key: comments of an alarm are in the order of their times.
    pub(crate) fn key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(KEY_BYTES);
        key.extend_from_slice(self.alarm.as_bytes());
        key.extend_from_slice(&self.created_at.millis().to_be_bytes());
        key.extend_from_slice(self.id.as_bytes());
        key
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let record = Record { user: self.user, system: self.system, comment: json_text(&self.comment) };
        serde_json::to_vec(&record).expect("BUG: ids and texts are always JSON")
    }
}

/// The range of the comments of an alarm.
pub(super) fn of_alarm(alarm: Uuid) -> KeyRange {
    KeyRange::prefix(alarm.as_bytes().to_vec())
}

/// The comments of an alarm, the oldest first. It may read the disk.
pub(super) fn read(kv: &dyn KeyValueStore, alarm: Uuid) -> Result<Vec<AlarmComment>, KvError> {
    let records = kv.scan(COMMENTS, &of_alarm(alarm), Direction::Ascending)?;
    records.map(|record| record.and_then(|(key, value)| decode(&key, &value))).collect()
}

fn decode(key: &[u8], value: &[u8]) -> Result<AlarmComment, KvError> {
    let parts = || {
        let (alarm, rest) = key.split_at_checked(16)?;
        let (created, id) = rest.split_at_checked(8)?;
        let created_ms = i64::from_be_bytes(created.try_into().ok()?);
        Some((Uuid::from_slice(alarm).ok()?, created_ms, Uuid::from_slice(id).ok()?))
    };
    let (alarm, created_ms, id) = parts().ok_or_else(|| damaged(COMMENTS, key, &"a wrong key"))?;
    let record: Record = serde_json::from_slice(value).map_err(|error| damaged(COMMENTS, key, &error))?;
    Ok(AlarmComment {
        id,
        alarm,
        created_at: millis(created_ms),
        user: record.user,
        system: record.system,
        comment: record.comment.get().into(),
    })
}

/// The data to list of the comments of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommentsRequest {
    /// Whether the oldest comes first.
    pub ascending: bool,
    /// Number of the page, from 0.
    pub page: usize,
    /// Comments of a page, at least 1.
    pub page_size: usize,
}
