//! Management of assets and their profiles, for callers with the permission.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{
    Asset, AssetFields, AssetProfile, EntityId, EntityKind, Page, PageRequest, RegistryError,
};

impl Hub {
    /// The asset with an id.
    pub fn asset(&self, caller: &Caller, id: Uuid) -> Result<Arc<Asset>, RegistryError> {
        caller.check(Action::Read)?;
        let asset = self.registry.asset(caller.tenant(), id)?;
        match caller.sees(asset.tenant, asset.customer) {
            true => Ok(asset),
            false => Err(RegistryError::unknown("asset", id)),
        }
    }

    /// The asset with a name.
    pub fn asset_by_name(&self, caller: &Caller, name: &str) -> Result<Arc<Asset>, RegistryError> {
        caller.check(Action::Read)?;
        let asset = self.registry.asset_by_name(caller.tenant(), name);
        let asset = asset.filter(|asset| caller.sees(asset.tenant, asset.customer));
        asset.ok_or_else(|| RegistryError::unknown("asset", name))
    }

    /// A page of the assets that the caller sees, of those for which `wanted` holds.
    pub fn assets_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&Asset) -> bool,
    ) -> Result<Page<Arc<Asset>>, RegistryError> {
        caller.check(Action::Read)?;
        let wanted = |asset: &Asset| caller.sees(asset.tenant, asset.customer) && wanted(asset);
        self.registry.assets_page(caller.tenant(), request, wanted)
    }

    /// Adds an asset. Waits for the disk.
    pub fn add_asset(&self, caller: &Caller, fields: AssetFields<'_>) -> Result<Arc<Asset>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let asset = self.registry.add_asset(caller.tenant(), fields)?;
        self.audit_of(caller, "add asset", &asset.name, EntityId::of(EntityKind::Asset, asset.id));
        Ok(asset)
    }

    /// Changes an asset. Waits for the disk.
    pub fn change_asset(
        &self,
        caller: &Caller,
        id: Uuid,
        fields: AssetFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Asset>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let asset = self.registry.change_asset(caller.tenant(), id, fields, version)?;
        self.audit_of(caller, "change asset", &asset.name, EntityId::of(EntityKind::Asset, asset.id));
        Ok(asset)
    }

    /// Assigns an asset to a customer, or to nobody. Waits for the disk.
    pub fn assign_asset(
        &self,
        caller: &Caller,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<Asset>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let asset = self.registry.assign_asset(caller.tenant(), id, customer)?;
        let act = if customer.is_some() { "assign asset" } else { "unassign asset" };
        self.audit_of(caller, act, &asset.name, EntityId::of(EntityKind::Asset, asset.id));
        Ok(asset)
    }

    /// A page of the asset profiles of the caller's tenant.
    pub fn asset_profiles_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
    ) -> Result<Page<Arc<AssetProfile>>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.asset_profiles_page(caller.tenant(), request)
    }

    /// The asset profile with an id.
    pub fn asset_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<AssetProfile>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.asset_profile(caller.tenant(), id)
    }

    /// The asset profile with a name; added if there is none. Waits for the disk.
    pub fn asset_profile_named(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        match self.registry.asset_profile_by_name(caller.tenant(), name) {
            Some(profile) => Ok(profile),
            None => self.add_asset_profile(caller, name, None),
        }
    }

    /// The profile of assets that are added without one.
    pub fn default_asset_profile(&self, caller: &Caller) -> Result<Arc<AssetProfile>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.default_asset_profile(caller.tenant())
    }

    /// Adds an asset profile. Waits for the disk.
    pub fn add_asset_profile(
        &self,
        caller: &Caller,
        name: &str,
        description: Option<&str>,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let profile = self.registry.add_asset_profile(caller.tenant(), name, description)?;
        self.audit_of(caller, "add asset profile", name, EntityId::of(EntityKind::AssetProfile, profile.id));
        Ok(profile)
    }

    /// Changes an asset profile. Waits for the disk.
    pub fn change_asset_profile(
        &self,
        caller: &Caller,
        id: Uuid,
        name: &str,
        description: Option<&str>,
        version: Option<i64>,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let tenant = caller.tenant();
        let profile = self.registry.change_asset_profile(tenant, id, name, description, version)?;
        self.audit_of(
            caller,
            "change asset profile",
            name,
            EntityId::of(EntityKind::AssetProfile, profile.id),
        );
        Ok(profile)
    }

    /// Makes an asset profile that of assets that are added without one. Waits for the disk.
    pub fn set_default_asset_profile(
        &self,
        caller: &Caller,
        id: Uuid,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let profile = self.registry.set_default_asset_profile(caller.tenant(), id)?;
        self.audit_of(
            caller,
            "set default asset profile",
            &profile.name,
            EntityId::of(EntityKind::AssetProfile, profile.id),
        );
        Ok(profile)
    }

    /// Deletes an asset profile without assets, and its attributes. Waits for the disk.
    pub fn delete_asset_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<AssetProfile>, Error> {
        caller.check(Action::ManageEntities)?;
        let owner = self.own_entity(caller, EntityId { kind: EntityKind::AssetProfile, id })?;
        let delete = || self.registry.delete_asset_profile(caller.tenant(), id);
        let profile = self.delete_then_attributes(&owner, delete)?;
        self.audit_of(
            caller,
            "delete asset profile",
            &profile.name,
            EntityId::of(EntityKind::AssetProfile, profile.id),
        );
        Ok(profile)
    }

    /// Deletes an asset with its attributes. Its values stay in the store. Waits for the disk.
    pub fn delete_asset(&self, caller: &Caller, id: Uuid) -> Result<Arc<Asset>, Error> {
        caller.check(Action::ManageEntities)?;
        let owner = self.own_entity(caller, EntityId { kind: EntityKind::Asset, id })?;
        let delete = || self.registry.delete_asset(caller.tenant(), id);
        let asset = self.delete_then_attributes(&owner, delete)?;
        self.audit_of(caller, "delete asset", &asset.name, EntityId::of(EntityKind::Asset, asset.id));
        Ok(asset)
    }
}
