//! Management of entity views, for callers with the permission.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{EntityId, EntityKind, EntityView, EntityViewFields, Page, PageRequest, RegistryError};

impl Hub {
    /// The entity view with an id.
    pub fn entity_view(&self, caller: &Caller, id: Uuid) -> Result<Arc<EntityView>, RegistryError> {
        caller.check(Action::Read)?;
        let view = self.registry.entity_view(caller.tenant(), id)?;
        match caller.sees(view.tenant, view.customer) {
            true => Ok(view),
            false => Err(RegistryError::unknown("entity view", id)),
        }
    }

    /// The entity view with a name.
    pub fn entity_view_by_name(&self, caller: &Caller, name: &str) -> Result<Arc<EntityView>, RegistryError> {
        caller.check(Action::Read)?;
        let view = self.registry.entity_view_by_name(caller.tenant(), name);
        let view = view.filter(|view| caller.sees(view.tenant, view.customer));
        view.ok_or_else(|| RegistryError::unknown("entity view", name))
    }

    /// A page of the entity views that the caller sees, of those for which `wanted` holds.
    pub fn entity_views_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&EntityView) -> bool,
    ) -> Result<Page<Arc<EntityView>>, RegistryError> {
        caller.check(Action::Read)?;
        let wanted = |view: &EntityView| caller.sees(view.tenant, view.customer) && wanted(view);
        self.registry.entity_views_page(caller.tenant(), request, wanted)
    }

    /// Adds an entity view. Waits for the disk.
    pub fn add_entity_view(
        &self,
        caller: &Caller,
        fields: EntityViewFields<'_>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let view = self.registry.add_entity_view(caller.tenant(), fields)?;
        self.audit_of(caller, "add entity view", &view.name, EntityId::of(EntityKind::EntityView, view.id));
        Ok(view)
    }

    /// Changes an entity view. Waits for the disk.
    pub fn change_entity_view(
        &self,
        caller: &Caller,
        id: Uuid,
        fields: EntityViewFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let view = self.registry.change_entity_view(caller.tenant(), id, fields, version)?;
        self.audit_of(
            caller,
            "change entity view",
            &view.name,
            EntityId::of(EntityKind::EntityView, view.id),
        );
        Ok(view)
    }

    /// Assigns an entity view to a customer, or to nobody. Waits for the disk.
    pub fn assign_entity_view(
        &self,
        caller: &Caller,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let view = self.registry.assign_entity_view(caller.tenant(), id, customer)?;
        let act = if customer.is_some() { "assign entity view" } else { "unassign entity view" };
        self.audit_of(caller, act, &view.name, EntityId::of(EntityKind::EntityView, view.id));
        Ok(view)
    }

    /// Deletes an entity view with its attributes. Waits for the disk.
    pub fn delete_entity_view(&self, caller: &Caller, id: Uuid) -> Result<Arc<EntityView>, Error> {
        caller.check(Action::ManageEntities)?;
        let owner = self.own_entity(caller, EntityId { kind: EntityKind::EntityView, id })?;
        let delete = || self.registry.delete_entity_view(caller.tenant(), id);
        let view = self.delete_then_attributes(&owner, delete)?;
        self.audit_of(
            caller,
            "delete entity view",
            &view.name,
            EntityId::of(EntityKind::EntityView, view.id),
        );
        Ok(view)
    }
}
