//! Management of customers, for callers with the permission.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{
    Customer, CustomerFields, Entity, EntityId, EntityKind, Page, PageRequest, RegistryError,
};

impl Hub {
    /// The customer with an id. A user of a customer sees only that one.
    pub fn customer(&self, caller: &Caller, id: Uuid) -> Result<Arc<Customer>, RegistryError> {
        self.find(caller, id)
    }

    /// A page of the customers of the tenant; for a user of a customer only that one.
    pub fn customers_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
    ) -> Result<Page<Arc<Customer>>, RegistryError> {
        self.page(caller, request, |_| true)
    }

    /// Adds a customer. Waits for the disk.
    pub fn add_customer(
        &self,
        caller: &Caller,
        fields: &CustomerFields<'_>,
    ) -> Result<Arc<Customer>, RegistryError> {
        self.manage(caller, "add customer", |registry, tenant| registry.add_customer(tenant, fields))
    }

    /// Changes a customer. Waits for the disk.
    pub fn change_customer(
        &self,
        caller: &Caller,
        id: Uuid,
        fields: &CustomerFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Customer>, RegistryError> {
        self.manage(caller, "change customer", |registry, tenant| {
            registry.change_customer(tenant, id, fields, version)
        })
    }

    /// Deletes a customer with its users, and their attributes. What is assigned to it is assigned to nobody then. Waits for the
    /// disk.
    pub fn delete_customer(&self, caller: &Caller, id: Uuid) -> Result<Arc<Customer>, Error> {
        caller.check(Action::ManageEntities)?;
        caller.check(Action::ManageUsers)?;
        let owner = self.own_entity(caller, EntityId { kind: EntityKind::Customer, id })?;
        let is_of_it = |entity: &Entity| entity.customer() == Some(id);
        let users = self.registry.entities(caller.tenant(), EntityKind::User, is_of_it);
        let delete = || self.registry.delete_customer(caller.tenant(), id);
        let customer = self.delete_then_attributes(&owner, delete)?;
        for user in &users {
            self.delete_then_attributes(user, || Ok(()))?;
        }
        self.audit_of(caller, "delete customer", &customer.title, owner.id());
        Ok(customer)
    }
}
