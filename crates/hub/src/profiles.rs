//! Management of device profiles, for callers with the permission.

use std::sync::Arc;

use uuid::Uuid;

use crate::caller::{Action, Caller};
use crate::hub::Hub;
use crate::registry::{Page, PageRequest, Profile, ProfileFields, RegistryError};

impl Hub {
    /// The profiles of the caller's tenant, sorted by name.
    pub fn profiles(&self, caller: &Caller) -> Result<Vec<Arc<Profile>>, RegistryError> {
        caller.check(Action::Read)?;
        Ok(self.registry.profiles(caller.tenant()))
    }

    /// A page of the profiles of the caller's tenant.
    pub fn profiles_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
    ) -> Result<Page<Arc<Profile>>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.profiles_page(caller.tenant(), request)
    }

    /// The profile with an id.
    pub fn profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.profile_by_id(caller.tenant(), id)
    }

    /// The profile with a name; added if there is none. Waits for the disk.
    pub fn profile_named(&self, caller: &Caller, name: &str) -> Result<Arc<Profile>, RegistryError> {
        match self.registry.profile(caller.tenant(), name) {
            Some(profile) => caller.check(Action::Read).map(|()| profile).map_err(Into::into),
            None => self.add_profile(caller, ProfileFields { name, ..ProfileFields::default() }),
        }
    }

    /// The profile of devices that are added without one.
    pub fn default_profile(&self, caller: &Caller) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.default_profile(caller.tenant())
    }

    /// Adds a profile with a table that is named after it. Waits for the disk.
    pub fn add_profile(
        &self,
        caller: &Caller,
        fields: ProfileFields<'_>,
    ) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let profile = self.registry.create_profile(caller.tenant(), fields)?;
        self.audit(
            caller,
            "add device profile",
            &format!("{} with the table {}", profile.name, profile.table),
        );
        Ok(profile)
    }

    /// Changes a profile. Waits for the disk.
    pub fn change_profile(
        &self,
        caller: &Caller,
        id: Uuid,
        fields: ProfileFields<'_>,
        version: Option<i64>,
    ) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let profile = self.registry.change_profile(caller.tenant(), id, fields, version)?;
        self.audit(caller, "change device profile", &profile.name);
        Ok(profile)
    }

    /// Makes a profile that of devices that are added without one. Waits for the disk.
    pub fn set_default_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let profile = self.registry.set_default_profile(caller.tenant(), id)?;
        self.audit(caller, "set default device profile", &profile.name);
        Ok(profile)
    }

    /// Deletes a profile without devices. Its table stays. Waits for the disk.
    pub fn delete_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let profile = self.registry.delete_profile(caller.tenant(), id)?;
        self.audit(caller, "delete device profile", &profile.name);
        Ok(profile)
    }
}
