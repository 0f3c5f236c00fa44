//! Entity views.

use std::sync::Arc;

use model::name::check_tag_value;
use parking_lot::MutexGuard;
use rusqlite::Connection;
use uuid::Uuid;

use super::checks::{check_short, check_version, checked_info, checked_json, over_limit};
use super::entity_view::{EntityView, EntityViewFields};
use super::error::RegistryError;
use super::handle::Registry;
use super::limits::{VIEW_KEYS_BYTES_MAX, VIEWS_PER_TENANT_MAX};
use super::system_time::now_ms;
use super::{file, save};
use crate::entity_id::{EntityId, EntityKind};

impl Registry {
    /// The entity view with that name.
    pub fn entity_view_by_name(&self, tenant: Uuid, name: &str) -> Option<Arc<EntityView>> {
        self.find_named(tenant, name)
    }

    /// Adds an entity view. Waits for the disk.
    pub fn add_entity_view(
        &self,
        tenant: Uuid,
        fields: EntityViewFields<'_>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        let (keys, additional_info) = checked(fields)?;
        let mut writer = self.writer.lock();
        self.check_tenant(tenant)?;
        self.check_entity_view(tenant, fields, None)?;
        let count = self.index.read().views.len_of(tenant) + 1;
        over_limit("number of entity views of the tenant", count, VIEWS_PER_TENANT_MAX)?;
        let view = EntityView {
            id: file::new_id(),
            tenant,
            customer: fields.customer,
            entity: fields.entity,
            name: fields.name.to_owned(),
            kind: fields.kind.to_owned(),
            keys,
            start_ms: fields.start_ms,
            end_ms: fields.end_ms,
            additional_info,
            created_at: now_ms(),
            version: 1,
        };
        self.store_entity_view(&mut writer, "add an entity view", view)
    }

    /// Changes an entity view. Waits for the disk.
    pub fn change_entity_view(
        &self,
        tenant: Uuid,
        id: Uuid,
        fields: EntityViewFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        let (keys, additional_info) = checked(fields)?;
        let mut writer = self.writer.lock();
        let old = self.find::<EntityView>(tenant, id)?;
        check_version("entity view", &old.name, version, old.version)?;
        self.check_entity_view(tenant, fields, Some(&old))?;
        let view = EntityView {
            customer: fields.customer,
            entity: fields.entity,
            name: fields.name.to_owned(),
            kind: fields.kind.to_owned(),
            keys,
            start_ms: fields.start_ms,
            end_ms: fields.end_ms,
            additional_info,
            version: old.version + 1,
            ..EntityView::clone(&old)
        };
        self.store_entity_view(&mut writer, "change an entity view", view)
    }

    /// Assigns an entity view to a customer, or to nobody. Waits for the disk.
    pub fn assign_entity_view(
        &self,
        tenant: Uuid,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<EntityView>, RegistryError> {
        let mut writer = self.writer.lock();
        let old = self.find::<EntityView>(tenant, id)?;
        self.check_customer(tenant, customer)?;
        if old.customer == customer {
            return Ok(old);
        }
        let view = EntityView { customer, version: old.version + 1, ..EntityView::clone(&old) };
        self.store_entity_view(&mut writer, "assign an entity view", view)
    }

    /// Deletes an entity view with its relations. Waits for the disk.
    pub fn delete_entity_view(&self, tenant: Uuid, id: Uuid) -> Result<Arc<EntityView>, RegistryError> {
        let mut writer = self.writer.lock();
        let view = self.find::<EntityView>(tenant, id)?;
        let entity = EntityId::of(EntityKind::EntityView, id);
        self.delete_row(&mut writer, "delete an entity view", "entity_view", entity)?.views.remove(id);
        Ok(view)
    }

    fn check_entity_view(
        &self,
        tenant: Uuid,
        fields: EntityViewFields<'_>,
        old: Option<&EntityView>,
    ) -> Result<(), RegistryError> {
        self.check_customer(tenant, fields.customer)?;
        if old.is_none_or(|old| old.name != fields.name) {
            self.check_is_free::<EntityView>(tenant, fields.name)?;
        }
        match fields.entity {
            // The entity may have been deleted since the view was added.
            entity if old.is_some_and(|old| old.entity == entity) => Ok(()),
            EntityId { kind: EntityKind::Device | EntityKind::Asset, .. } => {
                self.entity(tenant, fields.entity).map(drop)
            }
            EntityId { kind, .. } => {
                let reason = format!("is of a {kind}; views are of devices and assets");
                Err(RegistryError::Invalid { what: "entity view", reason })
            }
        }
    }

    fn store_entity_view(
        &self,
        writer: &mut MutexGuard<'_, Connection>,
        what: &'static str,
        view: EntityView,
    ) -> Result<Arc<EntityView>, RegistryError> {
        let view = Arc::new(view);
        self.commit(writer, what, |transaction| save::entity_view(transaction, &view))?;
        self.index.write().views.put(Arc::clone(&view));
        Ok(view)
    }
}

/// Texts as they are stored: keys and additional info.
type StoredTexts = (Option<Box<str>>, Option<Box<str>>);

/// Checks the fields, and returns the keys and the additional info as they are stored.
fn checked(fields: EntityViewFields<'_>) -> Result<StoredTexts, RegistryError> {
    check_tag_value(fields.name)?;
    check_short("name", Some(fields.name))?;
    check_short("type", Some(fields.kind))?;
    if fields.kind.is_empty() {
        let reason = "is empty; choose one".to_owned();
        return Err(RegistryError::Invalid { what: "type of the entity view", reason });
    }
    let EntityViewFields { start_ms, end_ms, .. } = fields;
    if start_ms < 0 || end_ms < 0 || end_ms != 0 && end_ms < start_ms {
        let reason = format!("{start_ms} to {end_ms} are not a range; 0 is not a bound");
        return Err(RegistryError::Invalid { what: "times of the entity view", reason });
    }
    let keys = checked_json("keys", fields.keys, VIEW_KEYS_BYTES_MAX, "VIEW_KEYS_BYTES_MAX")?;
    Ok((keys, checked_info(fields.additional_info)?))
}
