//! Alarms: records of conditions of entities that people must look at. The model is ThingsBoard's.
//!
//! An entity has at most one *active* alarm of a type. It ends when it is *cleared*; the next one of the type is a new record.
//! Whether it is *acknowledged* states whether a person has seen it, and does not depend on whether it is cleared. Users create and
//! change alarms, and alarm rules of device profiles do.
//!
//! All alarms are in memory and in the key-value store (`docs/format/alarms.md`). `docs/protocol/alarms.md` describes the interface.

mod alarm;
mod alarm_changes;
mod comment;
mod engine;
mod error;
mod feed;
mod index;
pub mod limits;
mod profile_data;
mod propagation;
mod query;
mod record;
mod rule_series;
mod store;

pub use alarm::{Alarm, AlarmStatus, NewAlarm, SearchStatus};
pub(crate) use alarm::{check_details, over_limit};
pub(crate) use alarm_changes::{Actor, Raised};
pub(crate) use comment::COMMENTS;
pub use comment::{AlarmComment, CommentsRequest};
pub(crate) use engine::{Inbox, RuleBook, RuleThread, Shared};
pub use error::AlarmError;
pub use feed::AlarmFeed;
pub use profile_data::check_profile_data;
pub(crate) use profile_data::{all_rules, rules_of};
pub(crate) use propagation::Ancestors;
pub(crate) use query::Surroundings;
pub use query::{AlarmQuery, AlarmSort, AlarmText};
pub(crate) use rule_series::RuleSeries;
pub use sensors::alarm_rules::{AlarmRules, Propagation, RuleError, Severity};
pub(crate) use store::AlarmStore;
pub(crate) use store::{Changes, Committed};
