//! The series of the entities that a caller sees.

use std::borrow::Cow;

use model::series::ASSET_TAG;
use store::Durability;

use crate::caller::Caller;
use crate::hub::Hub;
use crate::registry::{Entity, EntityId, RegistryError, own_table};
use crate::series_owner::{ASSETS_TABLE, SeriesOwner};

impl Hub {
    /// The series of an entity that a caller sees.
    ///
    /// # Errors
    /// Entities of this kind have no time series, or the caller does not see it.
    pub fn series_owner(&self, caller: &Caller, id: EntityId) -> Result<SeriesOwner<'static>, RegistryError> {
        self.owner_of(&self.visible_entity(caller, id)?)
    }

    /// The series of an entity.
    pub(crate) fn owner_of(&self, entity: &Entity) -> Result<SeriesOwner<'static>, RegistryError> {
        match entity {
            Entity::Device(device) => Ok(SeriesOwner::from(device).into_owned()),
            Entity::Asset(asset) => Ok(SeriesOwner {
                tenant: asset.tenant,
                customer: asset.customer,
                entity: entity.id(),
                device_profile: None,
                name: Cow::Owned(asset.name.clone()),
                tag: ASSET_TAG,
                table: Cow::Owned(own_table(&self.registry.namespace(asset.tenant), ASSETS_TABLE)),
                durability: Durability::Fsync,
            }),
            other => Err(RegistryError::Invalid {
                what: "entity type",
                reason: format!("a {} has no time series; devices and assets have", other.kind().words()),
            }),
        }
    }
}
