//! Comments of alarms, for callers with the permission.

use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::changes::now;
use crate::alarms::limits::{ALARM_COMMENT_BYTES_MAX, ALARM_COMMENTS_MAX};
use crate::alarms::{Alarm, AlarmComment, AlarmError, COMMENTS, Changes, CommentsRequest, over_limit};
use crate::caller::{Action, Caller};
use crate::hub::Hub;
use crate::registry::Page;

impl Hub {
    /// Adds a comment to an alarm: a JSON object. It may read the disk.
    ///
    /// # Errors
    /// See [`AlarmError`].
    pub async fn add_alarm_comment(
        &self,
        caller: &Caller,
        alarm: Uuid,
        comment: Json,
    ) -> Result<AlarmComment, AlarmError> {
        self.check_comment(caller, alarm, &comment)?;
        let (tenant, user) = (caller.tenant(), caller.user_id());
        let comment = AlarmComment {
            id: Uuid::new_v4(),
            alarm,
            created_at: now(),
            user,
            system: false,
            comment: comment.to_string().into(),
        };
        self.change_alarms(|changes: &mut Changes<'_>| {
            let old = changes.known(tenant, alarm)?;
            let comments = old.comments + 1;
            let (actual, limit) = (comments as usize, ALARM_COMMENTS_MAX as usize);
            over_limit("comments of the alarm", actual, limit, "ALARM_COMMENTS_MAX")?;
            changes.changed(Alarm { comments, ..Alarm::clone(&old) });
            changes.batch().put(COMMENTS, comment.key(), comment.encode());
            Ok(comment.clone())
        })
        .await
    }

    /// Replaces a comment of a user. It states that it was edited. It may read the disk.
    ///
    /// # Errors
    /// See [`AlarmError`].
    pub async fn edit_alarm_comment(
        &self,
        caller: &Caller,
        alarm: Uuid,
        id: Uuid,
        mut comment: Json,
    ) -> Result<AlarmComment, AlarmError> {
        self.check_comment(caller, alarm, &comment)?;
        let old = self.comment_of_user(alarm, id, "edited")?;
        comment["edited"] = "true".into();
        comment["editedOn"] = now().millis().into();
        let new = AlarmComment { comment: comment.to_string().into(), ..old };
        self.put_comment(caller, new).await
    }

    /// Deletes a comment of a user: a comment of the system takes its place, as in ThingsBoard. It may read the disk.
    ///
    /// # Errors
    /// See [`AlarmError`].
    pub async fn delete_alarm_comment(
        &self,
        caller: &Caller,
        alarm: Uuid,
        id: Uuid,
    ) -> Result<(), AlarmError> {
        caller.check(Action::ManageAlarms)?;
        self.visible_alarm(caller, alarm)?;
        let old = self.comment_of_user(alarm, id, "deleted")?;
        let text = format!("Comment was deleted by user {}", self.name_of(caller));
        let comment = json!({ "text": text });
        let new = AlarmComment { system: true, comment: comment.to_string().into(), ..old };
        self.put_comment(caller, new).await.map(drop)
    }

    /// A page of the comments of an alarm. It may read the disk.
    ///
    /// # Errors
    /// See [`AlarmError`].
    pub fn alarm_comments(
        &self,
        caller: &Caller,
        alarm: Uuid,
        request: CommentsRequest,
    ) -> Result<Page<AlarmComment>, AlarmError> {
        caller.check(Action::Read)?;
        self.visible_alarm(caller, alarm)?;
        let mut comments = self.alarms.comments(alarm)?;
        if !request.ascending {
            comments.reverse();
        }
        let total_elements = comments.len();
        let page_size = request.page_size.max(1);
        let skipped = request.page.saturating_mul(page_size);
        let data: Vec<_> = comments.into_iter().skip(skipped).take(page_size).collect();
        let has_next = !data.is_empty() && skipped.saturating_add(data.len()) < total_elements;
        Ok(Page { data, total_pages: total_elements.div_ceil(page_size), total_elements, has_next })
    }

    fn check_comment(&self, caller: &Caller, alarm: Uuid, comment: &Json) -> Result<(), AlarmError> {
        caller.check(Action::ManageAlarms)?;
        self.visible_alarm(caller, alarm)?;
        if !comment.is_object() {
            return Err(AlarmError::Invalid("a comment is a JSON object with the member text".into()));
        }
        let bytes = comment.to_string().len();
        over_limit("bytes of the comment", bytes, ALARM_COMMENT_BYTES_MAX, "ALARM_COMMENT_BYTES_MAX")
    }

    /// A comment that a user made.
    fn comment_of_user(&self, alarm: Uuid, id: Uuid, act: &str) -> Result<AlarmComment, AlarmError> {
        let comments = self.alarms.comments(alarm)?;
        let found = comments.into_iter().find(|comment| comment.id == id);
        let found = found.ok_or(AlarmError::UnknownComment { alarm, comment: id })?;
        match found.system {
            true => Err(AlarmError::Invalid(format!("a comment of the system cannot be {act}"))),
            false => Ok(found),
        }
    }

    async fn put_comment(&self, caller: &Caller, comment: AlarmComment) -> Result<AlarmComment, AlarmError> {
        let tenant = caller.tenant();
        self.change_alarms(|changes: &mut Changes<'_>| {
            // The alarm may have been deleted meanwhile, with its comments.
            changes.known(tenant, comment.alarm)?;
            changes.batch().put(COMMENTS, comment.key(), comment.encode());
            Ok(comment.clone())
        })
        .await
    }
}
