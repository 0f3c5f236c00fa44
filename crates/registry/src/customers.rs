//! Customers, and what is assigned to them.

use std::sync::Arc;

use model::name::check_tag_value;
use uuid::Uuid;

use super::asset::Asset;
use super::checks::{check_short, check_version, checked_info, over_limit};
use super::customer::{Customer, CustomerFields};
use super::entity::Device;
use super::entity_view::EntityView;
use super::error::RegistryError;
use super::handle::Registry;
use super::limits::CUSTOMERS_PER_TENANT_MAX;
use super::system_time::now_ms;
use super::{file, save};
use crate::entity_id::{EntityId, EntityKind};

impl Registry {
    /// The customer with that title.
    pub fn customer_by_title(&self, tenant: Uuid, title: &str) -> Option<Arc<Customer>> {
        self.find_named(tenant, title)
    }

    /// Adds a customer. Waits for the disk.
    pub fn add_customer(
        &self,
        tenant: Uuid,
        fields: &CustomerFields<'_>,
    ) -> Result<Arc<Customer>, RegistryError> {
        let additional_info = checked(fields)?;
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        self.check_is_free::<Customer>(tenant, fields.title)?;
        let count = self.index.read().customers.len_of(tenant) + 1;
        over_limit("number of customers of the tenant", count, CUSTOMERS_PER_TENANT_MAX)?;
        let customer = Arc::new(Customer {
            id: file::new_id(),
            tenant,
            title: fields.title.to_owned(),
            contact: fields.contact.clone(),
            additional_info,
            created_at: now_ms(),
            version: 1,
        });
        self.commit(&mut writer, "add a customer", |transaction| save::customer(transaction, &customer))?;
        self.index.write().customers.put(Arc::clone(&customer));
        Ok(customer)
    }

    /// Changes a customer. Waits for the disk.
    pub fn change_customer(
        &self,
        tenant: Uuid,
        id: Uuid,
        fields: &CustomerFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Customer>, RegistryError> {
        let additional_info = checked(fields)?;
        let mut writer = self.writer.lock();
        let old = self.find::<Customer>(tenant, id)?;
        check_version("customer", &old.title, version, old.version)?;
        if old.title != fields.title {
            self.check_is_free::<Customer>(tenant, fields.title)?;
        }
        let customer = Arc::new(Customer {
            title: fields.title.to_owned(),
            contact: fields.contact.clone(),
            additional_info,
            version: old.version + 1,
            ..Customer::clone(&old)
        });
        self.commit(&mut writer, "change a customer", |transaction| save::customer(transaction, &customer))?;
        self.index.write().customers.put(Arc::clone(&customer));
        Ok(customer)
    }

    /// Deletes a customer and its users, and ends their sessions. What is assigned to it is assigned to nobody then. Waits for the
    /// disk.
    pub fn delete_customer(&self, tenant: Uuid, id: Uuid) -> Result<Arc<Customer>, RegistryError> {
        let mut writer = self.writer.lock();
        let customer = self.find::<Customer>(tenant, id)?;
        let entity = EntityId { kind: EntityKind::Customer, id };
        let ending_there = self.relations_ending_at(entity);
        let users: Vec<_> = {
            let index = self.index.read();
            index.users().filter(|user| user.customer == Some(id)).cloned().collect()
        };
        let of_users: Vec<_> = users
            .iter()
            .map(|user| EntityId { kind: EntityKind::User, id: user.id })
            .map(|user| (user, self.relations_ending_at(user)))
            .collect();
        self.commit(&mut writer, "delete a customer", |transaction| {
            save::no_relations(transaction, entity, &ending_there)?;
            for (user, ending_there) in &of_users {
                save::no_relations(transaction, *user, ending_there)?;
            }
            transaction.execute("DELETE FROM user WHERE customer = ?1", [id])?;
            for table in ["device", "asset", "entity_view"] {
                let sql =
                    format!("UPDATE {table} SET customer = NULL, version = version + 1 WHERE customer = ?1");
                transaction.execute(&sql, [id])?;
            }
            transaction.execute("DELETE FROM customer WHERE id = ?1", [id]).map(drop)
        })?;
        self.forget_customer(tenant, id);
        self.forget_cached();
        self.signal_sessions();
        Ok(customer)
    }

    /// Removes a customer from the index with its users, and ends the assignments to it.
    fn forget_customer(&self, tenant: Uuid, id: Uuid) {
        let mut index = self.index.write();
        let logins: Vec<_> = index
            .users()
            .filter(|user| user.customer == Some(id))
            .map(|user| (user.id, user.login.clone()))
            .collect();
        for (user, login) in logins {
            index.relations.remove_entity(EntityId { kind: EntityKind::User, id: user });
            index.remove_account(&login);
        }
        let devices: Vec<_> =
            index.devices().of(tenant).filter(|one| one.customer == Some(id)).cloned().collect();
        for device in devices {
            let Some(credentials) = index.device(device.id).map(|(_, found)| found.clone()) else { continue };
            let version = device.version + 1;
            index.put_device(
                Arc::new(Device { customer: None, version, ..Device::clone(&device) }),
                credentials,
            );
        }
        let assets: Vec<_> =
            index.assets.of(tenant).filter(|one| one.customer == Some(id)).cloned().collect();
        for asset in assets {
            let version = asset.version + 1;
            index.assets.put(Arc::new(Asset { customer: None, version, ..Asset::clone(&asset) }));
        }
        let views: Vec<_> = index.views.of(tenant).filter(|one| one.customer == Some(id)).cloned().collect();
        for view in views {
            let version = view.version + 1;
            index.views.put(Arc::new(EntityView { customer: None, version, ..EntityView::clone(&view) }));
        }
        index.relations.remove_entity(EntityId { kind: EntityKind::Customer, id });
        index.customers.remove(id);
    }

    /// Refuses a customer that is not one of the tenant.
    pub(super) fn check_customer(&self, tenant: Uuid, customer: Option<Uuid>) -> Result<(), RegistryError> {
        customer.map_or(Ok(()), |id| self.find::<Customer>(tenant, id).map(drop))
    }
}

/// Checks the fields, and returns the additional info as it is stored.
fn checked(fields: &CustomerFields<'_>) -> Result<Option<Box<str>>, RegistryError> {
    check_tag_value(fields.title)?;
    check_short("title", Some(fields.title))?;
    fields.contact.check()?;
    checked_info(fields.additional_info)
}
