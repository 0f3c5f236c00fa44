//! Values of attributes of the caller's own entities, which operands of predicates name.

use model::Value;

use crate::attributes::{AttributeScope, Scope, read};
use crate::caller::Caller;
use crate::entity_query::{DynamicSource, DynamicValue, EntityQueryError};
use crate::hub::Hub;
use crate::registry::{EntityId, EntityKind};

impl Hub {
    /// The value of the server attribute that an operand names; `None` if there is none. The caller needs no permission for the
    /// entity: it learns which entities fit, not the value.
    pub(super) fn owner_value(
        &self,
        caller: &Caller,
        source: &DynamicValue,
    ) -> Result<Option<Value>, EntityQueryError> {
        let user = caller.user_id().map(|id| EntityId { kind: EntityKind::User, id });
        let customer = caller.customer().map(|id| EntityId { kind: EntityKind::Customer, id });
        let tenant = Some(EntityId { kind: EntityKind::Tenant, id: caller.tenant() });
        let owners = match source.source_type {
            DynamicSource::CurrentUser => [user, customer, tenant],
            DynamicSource::CurrentCustomer => [customer, tenant, None],
            DynamicSource::CurrentTenant => [tenant, None, None],
            DynamicSource::CurrentDevice => {
                let what = "a value of CURRENT_DEVICE, which only rules of alarms have,";
                return Err(EntityQueryError::Absent(what.to_owned()));
            }
        };
        let inherited = if source.inherit { owners.len() } else { 1 };
        let key = std::slice::from_ref(&source.source_attribute);
        for owner in owners.into_iter().take(inherited).flatten() {
            let Ok(entity) = self.registry.entity(caller.tenant(), owner) else { continue };
            let place = AttributeScope { owner: (&entity).into(), scope: Scope::Server };
            if let Some(found) = read(&*self.kv, place, Some(key))?.pop() {
                return Ok(Some(found.value));
            }
        }
        Ok(None)
    }
}
