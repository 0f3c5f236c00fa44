//! The acts on one alarm, as parts of a change.

use std::sync::Arc;

use model::Timestamp;
use sensors::alarm_rules::{Propagation, Severity};
use serde_json::json;
use uuid::Uuid;

use super::alarm::Alarm;
use super::comment::{AlarmComment, COMMENTS, Subtype};
use super::error::AlarmError;
use super::limits::ALARM_COMMENTS_MAX;
use super::store::Changes;
use crate::registry::EntityId;

/// Who acts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor<'a> {
    /// The user; `None` for a caller without a login.
    pub(crate) user: Option<Uuid>,
    /// The name in comments.
    pub(crate) name: &'a str,
}

/// A condition that holds.
#[derive(Debug, Clone)]
pub(crate) struct Raised {
    pub(crate) tenant: Uuid,
    pub(crate) customer: Option<Uuid>,
    pub(crate) originator: EntityId,
    pub(crate) alarm_type: Arc<str>,
    pub(crate) severity: Severity,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Timestamp,
    /// JSON text; an alarm that is active keeps its own if it is `None`.
    pub(crate) details: Option<Box<str>>,
    pub(crate) propagation: Propagation,
}

impl Changes<'_> {
    /// An alarm of a tenant.
    pub(crate) fn known(&self, tenant: Uuid, id: Uuid) -> Result<Arc<Alarm>, AlarmError> {
        let alarm = self.index().get(id).filter(|alarm| alarm.tenant == tenant);
        alarm.cloned().ok_or(AlarmError::Unknown(id))
    }

    /// Begins an alarm, or changes the active one of the originator and the type.
    pub(crate) fn raise(&mut self, raised: Raised, now: Timestamp) -> Result<Arc<Alarm>, AlarmError> {
        if let Some(active) = self.index().active(raised.originator, &raised.alarm_type).cloned() {
            let mut alarm = Alarm::clone(&active);
            alarm.ended_at = raised.ended_at;
            if let Some(details) = raised.details {
                alarm.details = details;
            }
            alarm.propagation = raised.propagation;
            self.set_severity(&mut alarm, raised.severity, now);
            return Ok(self.changed(alarm));
        }
        self.add(Alarm {
            id: Uuid::new_v4(),
            tenant: raised.tenant,
            customer: raised.customer,
            created_at: now,
            alarm_type: raised.alarm_type,
            originator: raised.originator,
            severity: raised.severity,
            acknowledged: false,
            cleared: false,
            assignee: None,
            started_at: raised.started_at,
            ended_at: raised.ended_at,
            acknowledged_at: None,
            cleared_at: None,
            assigned_at: None,
            details: raised.details.unwrap_or_else(|| "{}".into()),
            propagation: raised.propagation,
            comments: 0,
        })
    }

    pub(crate) fn acknowledge(
        &mut self,
        alarm: &Alarm,
        at: Timestamp,
        actor: Actor<'_>,
        now: Timestamp,
    ) -> Result<Arc<Alarm>, AlarmError> {
        if alarm.acknowledged {
            return Err(AlarmError::Already("acknowledged"));
        }
        let mut alarm = Alarm { acknowledged: true, acknowledged_at: Some(at), ..alarm.clone() };
        let text = format!("Alarm was acknowledged by user {}", actor.name);
        self.comment(&mut alarm, actor, Subtype::Ack, text, now);
        Ok(self.changed(alarm))
    }

    /// Ends an alarm. Rules have no actor.
    pub(crate) fn clear(
        &mut self,
        alarm: &Alarm,
        at: Timestamp,
        details: Option<Box<str>>,
        actor: Option<Actor<'_>>,
        now: Timestamp,
    ) -> Result<Arc<Alarm>, AlarmError> {
        if alarm.cleared {
            return Err(AlarmError::Already("cleared"));
        }
        let mut alarm = Alarm { cleared: true, cleared_at: Some(at), ..alarm.clone() };
        if let Some(details) = details {
            alarm.details = details;
        }
        if let Some(actor) = actor {
            let text = format!("Alarm was cleared by user {}", actor.name);
            self.comment(&mut alarm, actor, Subtype::Clear, text, now);
        }
        Ok(self.changed(alarm))
    }

    /// Assigns an alarm to a user with a name.
    pub(crate) fn assign(
        &mut self,
        alarm: &Alarm,
        (assignee, name): (Uuid, &str),
        at: Timestamp,
        actor: Actor<'_>,
        now: Timestamp,
    ) -> Result<Arc<Alarm>, AlarmError> {
        if alarm.assignee == Some(assignee) {
            return Err(AlarmError::Already("assigned to this user"));
        }
        let mut alarm = Alarm { assignee: Some(assignee), assigned_at: Some(at), ..alarm.clone() };
        let text = format!("Alarm was assigned by user {} to user {name}", actor.name);
        self.comment(&mut alarm, actor, Subtype::Assign, text, now);
        Ok(self.changed(alarm))
    }

    pub(crate) fn unassign(
        &mut self,
        alarm: &Alarm,
        at: Timestamp,
        actor: Actor<'_>,
        now: Timestamp,
    ) -> Result<Arc<Alarm>, AlarmError> {
        if alarm.assignee.is_none() {
            return Err(AlarmError::Already("unassigned"));
        }
        let mut alarm = Alarm { assignee: None, assigned_at: Some(at), ..alarm.clone() };
        let text = format!("Alarm was unassigned by user {}", actor.name);
        self.comment(&mut alarm, actor, Subtype::Unassign, text, now);
        Ok(self.changed(alarm))
    }

    /// Sets the severity, with a comment if it changes.
    pub(crate) fn set_severity(&mut self, alarm: &mut Alarm, severity: Severity, now: Timestamp) {
        let old = std::mem::replace(&mut alarm.severity, severity);
        if old != severity {
            let text = format!("Alarm severity was updated from {old} to {severity}");
            let comment = json!({
                "text": text,
                "subtype": Subtype::SeverityChange.name(),
                "oldSeverity": old.name(),
                "newSeverity": severity.name(),
            });
            self.add_system_comment(alarm, None, &comment, now);
        }
    }

    /// Puts a changed alarm in its place.
    pub(crate) fn changed(&mut self, alarm: Alarm) -> Arc<Alarm> {
        let alarm = Arc::new(alarm);
        self.put(Arc::clone(&alarm));
        alarm
    }

    fn comment(
        &mut self,
        alarm: &mut Alarm,
        actor: Actor<'_>,
        subtype: Subtype,
        text: String,
        now: Timestamp,
    ) {
        let mut comment = json!({ "text": text, "subtype": subtype.name() });
        if let Some(user) = actor.user {
            comment["userId"] = user.to_string().into();
        }
        if let (Subtype::Assign, Some(assignee)) = (subtype, alarm.assignee) {
            comment["assigneeId"] = assignee.to_string().into();
        }
        self.add_system_comment(alarm, actor.user, &comment, now);
    }

    /// Adds a comment of the system. An alarm with as many comments as it may have gets none: the act itself counts more.
    fn add_system_comment(
        &mut self,
        alarm: &mut Alarm,
        user: Option<Uuid>,
        comment: &serde_json::Value,
        now: Timestamp,
    ) {
        if alarm.comments >= ALARM_COMMENTS_MAX {
            return;
        }
        alarm.comments += 1;
        let comment = AlarmComment {
            id: Uuid::new_v4(),
            alarm: alarm.id,
            created_at: now,
            user,
            system: true,
            comment: comment.to_string().into(),
        };
        self.batch().put(COMMENTS, comment.key(), comment.encode());
    }
}
