//! Changes of alarms, for callers with the permission. A change is answered after it is durable.

use std::sync::Arc;

use kv::KvError;
use model::Timestamp;
use store::Blame;
use uuid::Uuid;

use crate::alarms::limits::{ALARM_BUSY_TIMEOUT, ALARMS_DELETED_AT_ONCE_MAX};
use crate::alarms::{Actor, Alarm, AlarmError, Changes, Committed, NewAlarm, Raised, check_details};
use crate::caller::{Action, Caller};
use crate::clock::system_now;
use crate::hub::Hub;
use crate::registry::{EntityId, RegistryError, User};

impl Hub {
    /// Creates an alarm, or changes one: that with the id, or the active one of the originator and the type.
    ///
    /// # Errors
    /// See [`AlarmError`].
    pub async fn save_alarm(&self, caller: &Caller, new: NewAlarm) -> Result<Arc<Alarm>, AlarmError> {
        caller.check(Action::ManageAlarms)?;
        new.check()?;
        let customer = self.visible_originator(caller, new.originator)?;
        let assignee = new.assignee.map(|id| self.own_user(caller, id)).transpose()?;
        let name = self.name_of(caller);
        let actor = Actor { user: caller.user_id(), name: &name };
        let now = now();
        let tenant = caller.tenant();
        let save = |changes: &mut Changes<'_>| -> Result<Arc<Alarm>, AlarmError> {
            let mut alarm = match new.id {
                Some(id) => change_known(changes, tenant, id, &new, now)?,
                None => changes.raise(raised(tenant, customer, &new, now), now)?,
            };
            if new.acknowledged && !alarm.acknowledged {
                alarm = changes.acknowledge(&alarm, new.acknowledged_at.unwrap_or(now), actor, now)?;
            }
            if new.cleared && !alarm.cleared {
                alarm = changes.clear(&alarm, new.cleared_at.unwrap_or(now), None, Some(actor), now)?;
            }
            let assigned_at = new.assigned_at.unwrap_or(now);
            match &assignee {
                Some(user) if alarm.assignee != Some(user.id) => {
                    alarm = changes.assign(&alarm, (user.id, &title(user)), assigned_at, actor, now)?;
                }
                None if alarm.assignee.is_some() => {
                    alarm = changes.unassign(&alarm, assigned_at, actor, now)?;
                }
                Some(_) | None => {}
            }
            Ok(alarm)
        };
        let alarm = self.change_alarms(save).await?;
        if alarm.cleared {
            self.tell_rules_of_end(&alarm);
        }
        self.after_alarm_change(caller, "save alarm", &alarm).await;
        Ok(alarm)
    }

    /// Acknowledges an alarm.
    ///
    /// # Errors
    /// [`AlarmError::Already`], and those of [`save_alarm`](Self::save_alarm).
    pub async fn acknowledge_alarm(&self, caller: &Caller, id: Uuid) -> Result<Arc<Alarm>, AlarmError> {
        let change = |changes: &mut Changes<'_>, alarm: &Alarm, actor: Actor<'_>, now| {
            changes.acknowledge(alarm, now, actor, now)
        };
        self.change_alarm(caller, id, "acknowledge alarm", change).await
    }

    /// Clears an alarm. `details` replace its details.
    ///
    /// # Errors
    /// [`AlarmError::Already`], and those of [`save_alarm`](Self::save_alarm).
    pub async fn clear_alarm(
        &self,
        caller: &Caller,
        id: Uuid,
        details: Option<String>,
    ) -> Result<Arc<Alarm>, AlarmError> {
        check_details(details.as_deref())?;
        let details: Option<Box<str>> = details.map(Into::into);
        let change = |changes: &mut Changes<'_>, alarm: &Alarm, actor: Actor<'_>, now| {
            changes.clear(alarm, now, details.clone(), Some(actor), now)
        };
        self.change_alarm(caller, id, "clear alarm", change).await
    }

    /// Assigns an alarm to a user of the tenant.
    ///
    /// # Errors
    /// [`AlarmError::Already`], and those of [`save_alarm`](Self::save_alarm).
    pub async fn assign_alarm(
        &self,
        caller: &Caller,
        id: Uuid,
        user: Uuid,
    ) -> Result<Arc<Alarm>, AlarmError> {
        let user = self.own_user(caller, user)?;
        let change = |changes: &mut Changes<'_>, alarm: &Alarm, actor: Actor<'_>, now| {
            changes.assign(alarm, (user.id, &title(&user)), now, actor, now)
        };
        self.change_alarm(caller, id, "assign alarm", change).await
    }

    /// Takes the assignment of an alarm back.
    ///
    /// # Errors
    /// [`AlarmError::Already`], and those of [`save_alarm`](Self::save_alarm).
    pub async fn unassign_alarm(&self, caller: &Caller, id: Uuid) -> Result<Arc<Alarm>, AlarmError> {
        let change = |changes: &mut Changes<'_>, alarm: &Alarm, actor: Actor<'_>, now| {
            changes.unassign(alarm, now, actor, now)
        };
        self.change_alarm(caller, id, "unassign alarm", change).await
    }

    /// Deletes an alarm with its comments.
    ///
    /// # Errors
    /// See [`AlarmError`].
    pub async fn delete_alarm(&self, caller: &Caller, id: Uuid) -> Result<(), AlarmError> {
        caller.check(Action::ManageAlarms)?;
        self.visible_alarm(caller, id)?;
        let tenant = caller.tenant();
        let delete = |changes: &mut Changes<'_>| -> Result<Arc<Alarm>, AlarmError> {
            let alarm = changes.known(tenant, id)?;
            changes.remove(id);
            Ok(alarm)
        };
        let alarm = self.change_alarms(delete).await?;
        self.tell_rules_of_end(&alarm);
        self.after_alarm_change(caller, "delete alarm", &alarm).await;
        Ok(())
    }

    /// Deletes the alarms of an originator that is gone. Waits for the disk.
    ///
    /// # Errors
    /// The key-value store failed.
    pub(crate) fn delete_alarms_of(&self, originator: EntityId) -> Result<(), KvError> {
        self.delete_alarms_where(|alarm| alarm.originator == originator)
    }

    /// Deletes the alarms of entities that are gone; the server does it when it starts. Waits for the disk.
    ///
    /// # Errors
    /// The key-value store failed.
    pub(crate) fn delete_alarms_without_originator(&self) -> Result<(), KvError> {
        self.delete_alarms_where(|alarm| self.originator(alarm).is_none())
    }

    fn delete_alarms_where(&self, gone: impl Fn(&Alarm) -> bool) -> Result<(), KvError> {
        loop {
            let victims: Vec<Uuid> = {
                let index = self.alarms.read();
                let found = index.all().filter(|alarm| gone(alarm)).map(|alarm| alarm.id);
                found.take(ALARMS_DELETED_AT_ONCE_MAX).collect()
            };
            if victims.is_empty() {
                return Ok(());
            }
            let deleted = self.alarms.commit(|changes| {
                victims.iter().for_each(|id| drop(changes.remove(*id)));
                Ok(())
            });
            let deleted = deleted.map_err(|error| match error {
                AlarmError::Kv(error) => error,
                other => unreachable!("BUG: a deletion refused: {other}"),
            })?;
            crate::blocking_append::wait_durable_keys(&*self.kv, deleted.sequence)?;
            self.alarms.publish(&deleted.tenants);
        }
    }

    async fn change_alarm(
        &self,
        caller: &Caller,
        id: Uuid,
        act: &'static str,
        change: impl Fn(&mut Changes<'_>, &Alarm, Actor<'_>, Timestamp) -> Result<Arc<Alarm>, AlarmError>,
    ) -> Result<Arc<Alarm>, AlarmError> {
        caller.check(Action::ManageAlarms)?;
        self.visible_alarm(caller, id)?;
        let (now, name) = (now(), self.name_of(caller));
        let alarm = self
            .change_alarms(|changes| {
                let alarm = changes.known(caller.tenant(), id)?;
                change(changes, &alarm, Actor { user: caller.user_id(), name: &name }, now)
            })
            .await?;
        if alarm.cleared {
            self.tell_rules_of_end(&alarm);
        }
        self.after_alarm_change(caller, act, &alarm).await;
        Ok(alarm)
    }

    /// Makes changes, waits until they are durable, and notifies the subscribers.
    pub(super) async fn change_alarms<T>(
        &self,
        change: impl Fn(&mut Changes<'_>) -> Result<T, AlarmError>,
    ) -> Result<T, AlarmError> {
        let mut progress = self.kv_progress.0.subscribe();
        let deadline = tokio::time::Instant::now() + ALARM_BUSY_TIMEOUT;
        let Committed { value, sequence, tenants } = loop {
            progress.mark_unchanged();
            match self.alarms.commit(&change) {
                Err(AlarmError::Kv(busy)) if busy.blame() == Blame::Busy => {
                    if tokio::time::timeout_at(deadline, progress.changed()).await.is_err() {
                        return Err(busy.into());
                    }
                }
                other => break other?,
            }
        };
        self.kv_durable(sequence).await?;
        self.alarms.publish(&tenants);
        Ok(value)
    }

    async fn after_alarm_change(&self, caller: &Caller, act: &'static str, alarm: &Alarm) {
        let subject = format!("{} of {} ({})", alarm.alarm_type, alarm.originator, alarm.id);
        self.audit_and_wait(caller, act, &subject).await;
    }

    /// The name of a caller in comments.
    pub(super) fn name_of(&self, caller: &Caller) -> String {
        let user = caller.user_id().and_then(|id| self.registry.user_by_id(id));
        user.map_or_else(|| caller.login().to_owned(), |user| title(&user))
    }

    /// The user of the caller's tenant with an id.
    fn own_user(&self, caller: &Caller, id: Uuid) -> Result<Arc<User>, RegistryError> {
        let user = self.registry.user_by_id(id).filter(|user| user.tenant == caller.tenant());
        user.ok_or_else(|| RegistryError::unknown("user", id))
    }
}

/// The part of [`Hub::save_alarm`] that changes the alarm with an id.
fn change_known(
    changes: &mut Changes<'_>,
    tenant: Uuid,
    id: Uuid,
    new: &NewAlarm,
    now: Timestamp,
) -> Result<Arc<Alarm>, AlarmError> {
    let old = changes.known(tenant, id)?;
    if old.originator != new.originator || *old.alarm_type != *new.alarm_type {
        let reason = format!(
            "the alarm {id} has the originator {} and the type {:?}, which cannot change; create another alarm",
            old.originator, old.alarm_type
        );
        return Err(AlarmError::Invalid(reason));
    }
    let mut alarm = Alarm::clone(&old);
    alarm.started_at = new.started_at.unwrap_or(old.started_at);
    alarm.ended_at = new.ended_at.unwrap_or(now);
    if let Some(details) = &new.details {
        alarm.details = details.as_str().into();
    }
    alarm.propagation = new.propagation.clone();
    changes.set_severity(&mut alarm, new.severity, now);
    Ok(changes.changed(alarm))
}

fn raised(tenant: Uuid, customer: Option<Uuid>, new: &NewAlarm, now: Timestamp) -> Raised {
    let started_at = new.started_at.unwrap_or(now);
    Raised {
        tenant,
        customer,
        originator: new.originator,
        alarm_type: new.alarm_type.as_str().into(),
        severity: new.severity,
        started_at,
        ended_at: new.ended_at.unwrap_or(started_at),
        details: new.details.as_deref().map(Into::into),
        propagation: new.propagation.clone(),
    }
}

/// The name of a user in comments: first and last name, or the login without both.
fn title(user: &User) -> String {
    match (&user.first_name, &user.last_name) {
        (Some(first), Some(last)) => format!("{first} {last}"),
        _ => user.login.clone(),
    }
}

/// The time of a change: whole milliseconds, as records keep it.
pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(system_now().millis()).unwrap_or_default()
}
