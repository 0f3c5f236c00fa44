//! Reads of alarms, for callers with the permission.

use std::collections::BTreeSet;
use std::sync::Arc;

use sensors::alarm_rules::Severity;
use uuid::Uuid;

use crate::alarms::{Alarm, AlarmError, AlarmFeed, AlarmQuery, Ancestors, Surroundings};
use crate::caller::{Action, Caller};
use crate::hub::Hub;
use crate::registry::{Entity, EntityId, Page, User};

impl Hub {
    /// The alarm with an id.
    ///
    /// # Errors
    /// [`AlarmError::Unknown`], also for an alarm that the caller does not see.
    pub fn alarm(&self, caller: &Caller, id: Uuid) -> Result<Arc<Alarm>, AlarmError> {
        caller.check(Action::Read)?;
        self.visible_alarm(caller, id)
    }

    /// A page of the alarms that the caller sees. It visits all alarms of the tenant: call it on a thread that may block.
    ///
    /// # Errors
    /// The caller lacks the permission.
    pub fn alarms_page(&self, caller: &Caller, query: &AlarmQuery) -> Result<Page<Arc<Alarm>>, AlarmError> {
        caller.check(Action::Read)?;
        let around = Around::new(self, caller);
        Ok(query.page_of(&self.alarms.read(), caller.tenant(), &around))
    }

    /// The number of alarms that the caller sees and the query finds. The page of the query does not matter.
    ///
    /// # Errors
    /// The caller lacks the permission.
    pub fn alarm_count(&self, caller: &Caller, query: &AlarmQuery) -> Result<usize, AlarmError> {
        caller.check(Action::Read)?;
        let around = Around::new(self, caller);
        Ok(query.found(&self.alarms.read(), caller.tenant(), &around).count())
    }

    /// The highest severity of the alarms that the query finds.
    ///
    /// # Errors
    /// The caller lacks the permission.
    pub fn highest_severity(
        &self,
        caller: &Caller,
        query: &AlarmQuery,
    ) -> Result<Option<Severity>, AlarmError> {
        caller.check(Action::Read)?;
        let around = Around::new(self, caller);
        let index = self.alarms.read();
        Ok(query.found(&index, caller.tenant(), &around).map(|alarm| alarm.severity).min())
    }

    /// The types of the alarms that the caller sees, sorted. For a user of a customer it visits all alarms of the tenant: call it
    /// on a thread that may block.
    ///
    /// # Errors
    /// The caller lacks the permission.
    pub fn alarm_types(&self, caller: &Caller) -> Result<Vec<Arc<str>>, AlarmError> {
        caller.check(Action::Read)?;
        let index = self.alarms.read();
        if caller.customer().is_some() {
            let (query, around) = (AlarmQuery::default(), Around::new(self, caller));
            let seen = query.found(&index, caller.tenant(), &around);
            let types: BTreeSet<Arc<str>> = seen.map(|alarm| Arc::clone(&alarm.alarm_type)).collect();
            return Ok(types.into_iter().collect());
        }
        Ok(index.tenant(caller.tenant()).map(|tenant| tenant.types().cloned().collect()).unwrap_or_default())
    }

    /// Waits until all changes that searches have shown are durable. A door calls it between a search and its answer.
    ///
    /// # Errors
    /// The key-value store failed before.
    pub async fn alarms_durable(&self) -> Result<(), AlarmError> {
        Ok(self.kv_durable(self.alarms.last_sequence()).await?)
    }

    /// A subscription to changes of the tenant's alarms.
    ///
    /// # Errors
    /// The caller lacks the permission.
    pub fn alarm_feed(&self, caller: &Caller) -> Result<AlarmFeed, AlarmError> {
        caller.check(Action::Read)?;
        Ok(self.alarms.subscribe(caller.tenant()))
    }

    /// The entity that an alarm is about; `None` if it is gone.
    pub fn originator(&self, alarm: &Alarm) -> Option<Entity> {
        self.registry.entity(alarm.tenant, alarm.originator).ok()
    }

    /// The entities that an alarm belongs to: its originator first, then those to which it propagates.
    pub fn entities_of_alarm(&self, alarm: &Alarm) -> Vec<EntityId> {
        let related = Ancestors::new(&self.registry).of(alarm);
        alarm.entities().chain(related.iter().copied()).collect()
    }

    /// The user who looks after an alarm; `None` if there is none any more.
    pub fn assignee(&self, alarm: &Alarm) -> Option<Arc<User>> {
        alarm.assignee.and_then(|id| self.registry.user_by_id(id))
    }

    /// Refuses an entity whose alarms the caller may not search.
    ///
    /// # Errors
    /// The entity is unknown, also if the caller does not see it.
    pub fn check_alarm_entity(&self, caller: &Caller, entity: EntityId) -> Result<(), AlarmError> {
        caller.check(Action::Read)?;
        self.visible_originator(caller, entity).map(drop)
    }

    /// Refuses an entity that the caller does not see. Returns its customer.
    pub(crate) fn visible_originator(
        &self,
        caller: &Caller,
        entity: EntityId,
    ) -> Result<Option<Uuid>, AlarmError> {
        Ok(self.own_entity(caller, entity)?.customer())
    }

    /// An alarm that the caller sees.
    pub(super) fn visible_alarm(&self, caller: &Caller, id: Uuid) -> Result<Arc<Alarm>, AlarmError> {
        let alarm = self.alarms.read().get(id).filter(|alarm| alarm.tenant == caller.tenant()).cloned();
        let around = Around::new(self, caller);
        alarm.filter(|alarm| around.sees(alarm)).ok_or(AlarmError::Unknown(id))
    }
}

/// What a caller's search knows about other entities.
struct Around<'a> {
    hub: &'a Hub,
    caller: &'a Caller,
    ancestors: Ancestors<'a>,
}

impl<'a> Around<'a> {
    fn new(hub: &'a Hub, caller: &'a Caller) -> Self {
        Self { hub, caller, ancestors: Ancestors::new(&hub.registry) }
    }
}

impl Surroundings for Around<'_> {
    fn sees(&self, alarm: &Alarm) -> bool {
        // A user of a customer sees the alarms of what is assigned to the customer now.
        let sees_all = self.caller.customer().is_none();
        alarm.tenant == self.caller.tenant()
            && (sees_all || self.hub.own_entity(self.caller, alarm.originator).is_ok())
    }

    fn entities(&self, alarm: &Alarm) -> Vec<EntityId> {
        alarm.entities().chain(self.ancestors.of(alarm).iter().copied()).collect()
    }

    fn originator_name(&self, alarm: &Alarm) -> String {
        self.hub.originator(alarm).map(|entity| entity.name().to_owned()).unwrap_or_default()
    }

    fn assignee_name(&self, alarm: &Alarm) -> String {
        self.hub.assignee(alarm).map(|user| user.login.clone()).unwrap_or_default()
    }
}
