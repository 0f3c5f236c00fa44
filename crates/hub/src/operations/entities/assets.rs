//! Management of assets and their profiles, for callers with the permission.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{Asset, AssetFields, AssetProfile, Page, PageRequest, RegistryError};

impl Hub {
    /// The asset with an id.
    pub fn asset(&self, caller: &Caller, id: Uuid) -> Result<Arc<Asset>, RegistryError> {
        self.find(caller, id)
    }

    /// A page of the assets that the caller sees, of those for which `wanted` holds.
    pub fn assets_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&Asset) -> bool,
    ) -> Result<Page<Arc<Asset>>, RegistryError> {
        self.page(caller, request, wanted)
    }

    /// Adds an asset. Waits for the disk.
    pub fn add_asset(&self, caller: &Caller, fields: AssetFields<'_>) -> Result<Arc<Asset>, RegistryError> {
        self.manage(caller, "add asset", |registry, tenant| registry.add_asset(tenant, fields))
    }

    /// Changes an asset. Waits for the disk.
    pub fn change_asset(
        &self,
        caller: &Caller,
        id: Uuid,
        fields: AssetFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Asset>, RegistryError> {
        let change = "change asset";
        self.manage(caller, change, |registry, tenant| registry.change_asset(tenant, id, fields, version))
    }

    /// Assigns an asset to a customer, or to nobody. Waits for the disk.
    pub fn assign_asset(
        &self,
        caller: &Caller,
        id: Uuid,
        customer: Option<Uuid>,
    ) -> Result<Arc<Asset>, RegistryError> {
        let act = if customer.is_some() { "assign asset" } else { "unassign asset" };
        self.manage(caller, act, |registry, tenant| registry.assign_asset(tenant, id, customer))
    }

    /// Deletes an asset with its attributes. Its values stay in the store. Waits for the disk.
    pub fn delete_asset(&self, caller: &Caller, id: Uuid) -> Result<Arc<Asset>, Error> {
        self.manage_deletion(caller, "delete asset", id, |registry, tenant| registry.delete_asset(tenant, id))
    }

    /// The asset profile with a name; added if there is none. Waits for the disk.
    pub fn asset_profile_named(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        match self.registry.find_named(caller.tenant(), name) {
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
        self.manage(caller, "add asset profile", |registry, tenant| {
            registry.add_asset_profile(tenant, name, description)
        })
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
        self.manage(caller, "change asset profile", |registry, tenant| {
            registry.change_asset_profile(tenant, id, name, description, version)
        })
    }

    /// Makes an asset profile that of assets that are added without one. Waits for the disk.
    pub fn set_default_asset_profile(
        &self,
        caller: &Caller,
        id: Uuid,
    ) -> Result<Arc<AssetProfile>, RegistryError> {
        self.manage(caller, "set default asset profile", |registry, tenant| {
            registry.set_default_asset_profile(tenant, id)
        })
    }

    /// Deletes an asset profile without assets, and its attributes. Waits for the disk.
    pub fn delete_asset_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<AssetProfile>, Error> {
        self.manage_deletion(caller, "delete asset profile", id, |registry, tenant| {
            registry.delete_asset_profile(tenant, id)
        })
    }
}
