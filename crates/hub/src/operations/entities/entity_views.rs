//! Management of entity views, for callers with the permission.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::Caller;
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{EntityView, EntityViewFields, Page, PageRequest, RegistryError};

impl Hub {
    /// The entity view with an id.
    pub fn entity_view(&self, caller: &Caller, id: Uuid) -> Result<Arc<EntityView>, RegistryError> {
        self.find(caller, id)
    }

    /// A page of the entity views that the caller sees, of those for which `wanted` holds.
    pub fn entity_views_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&EntityView) -> bool,
    ) -> Result<Page<Arc<EntityView>>, RegistryError> {
        self.page(caller, request, wanted)
    }

    /// Adds an entity view. Waits for the disk.
    pub fn add_entity_view(
        &self,
        caller: &Caller,
        fields: EntityViewFields<'_>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        self.manage(caller, "add entity view", |registry, tenant| registry.add_entity_view(tenant, fields))
    }

    /// Changes an entity view. Waits for the disk.
    pub fn change_entity_view(
        &self,
        caller: &Caller,
        id: Uuid,
        fields: EntityViewFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        self.manage(caller, "change entity view", |registry, tenant| {
            registry.change_entity_view(tenant, id, fields, version)
        })
    }

    /// Assigns an entity view to a customer, or to nobody. Waits for the disk.
    pub fn assign_entity_view(
        &self,
        caller: &Caller,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        let act = if customer.is_some() { "assign entity view" } else { "unassign entity view" };
        self.manage(caller, act, |registry, tenant| registry.assign_entity_view(tenant, id, customer))
    }

    /// Deletes an entity view with its attributes. Waits for the disk.
    pub fn delete_entity_view(&self, caller: &Caller, id: Uuid) -> Result<Arc<EntityView>, Error> {
        self.manage_deletion(caller, "delete entity view", id, |registry, tenant| {
            registry.delete_entity_view(tenant, id)
        })
    }
}
