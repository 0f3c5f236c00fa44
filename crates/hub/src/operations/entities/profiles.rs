//! Management of device profiles, for callers with the permission.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::alarms::{AlarmRules, rules_of};
use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{
    Entity, EntityId, EntityKind, PackageIds, Page, PageRequest, Profile, ProfileFields, RegistryError,
};

impl Hub {
    /// The profiles of the caller's tenant, sorted by name.
    pub fn profiles(&self, caller: &Caller) -> Result<Vec<Arc<Profile>>, RegistryError> {
        caller.check(Action::Read)?;
        Ok(self.registry.profiles(caller.tenant()))
    }

    /// The ids of the profiles that devices, or assets, have that the caller sees.
    pub fn used_profiles(&self, caller: &Caller, kind: EntityKind) -> Result<HashSet<Uuid>, RegistryError> {
        let entities = self.visible_entities(caller, kind)?;
        let profile = |entity: &Entity| match entity {
            Entity::Device(device) => Some(device.profile.id),
            Entity::Asset(asset) => Some(asset.profile.id),
            _ => None,
        };
        Ok(entities.iter().filter_map(profile).collect())
    }

    /// A page of the profiles of the caller's tenant.
    pub fn profiles_page(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
    ) -> Result<Page<Arc<Profile>>, RegistryError> {
        self.profiles_page_of(caller, request, |_| true)
    }

    /// A page of the profiles of the caller's tenant, of those for which `wanted` holds.
    pub fn profiles_page_of(
        &self,
        caller: &Caller,
        request: PageRequest<'_>,
        wanted: impl Fn(&Profile) -> bool,
    ) -> Result<Page<Arc<Profile>>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.profiles_page(caller.tenant(), request, wanted)
    }

    /// The profile with an id.
    pub fn profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::Read)?;
        self.registry.profile_by_id(caller.tenant(), id)
    }

    /// The profile with a name; added if there is none. Waits for the disk.
    pub fn profile_named(&self, caller: &Caller, name: &str) -> Result<Arc<Profile>, Error> {
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
    pub fn add_profile(&self, caller: &Caller, fields: ProfileFields<'_>) -> Result<Arc<Profile>, Error> {
        caller.check(Action::ManageEntities)?;
        let rules = rules_of(fields.data)?;
        let packages = fields.packages.on(PackageIds::default());
        // No package can be for a profile that is not there yet.
        let profile = self.with_new_packages(caller.tenant(), packages, None, || {
            let _lock = self.rule_book.lock();
            let profile = self.registry.create_profile(caller.tenant(), fields)?;
            self.set_profile_rules(&profile, rules);
            Ok(profile)
        })?;
        let subject = &format!("{} with the table {}", profile.name, profile.table);
        self.audit_of(
            caller,
            "add device profile",
            subject,
            EntityId::of(EntityKind::DeviceProfile, profile.id),
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
    ) -> Result<Arc<Profile>, Error> {
        caller.check(Action::ManageEntities)?;
        let rules = rules_of(fields.data)?;
        let old = self.registry.profile_by_id(caller.tenant(), id)?;
        let profile = self.change_profile_and_packages(&old, &fields, || {
            let _lock = self.rule_book.lock();
            let profile = self.registry.change_profile(caller.tenant(), id, fields, version)?;
            self.set_profile_rules(&profile, rules);
            Ok(profile)
        })?;
        self.audit_of(
            caller,
            "change device profile",
            &profile.name,
            EntityId::of(EntityKind::DeviceProfile, profile.id),
        );
        Ok(profile)
    }

    /// Makes a profile that of devices that are added without one. Waits for the disk.
    pub fn set_default_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let profile = self.registry.set_default_profile(caller.tenant(), id)?;
        self.audit_of(
            caller,
            "set default device profile",
            &profile.name,
            EntityId::of(EntityKind::DeviceProfile, profile.id),
        );
        Ok(profile)
    }

    /// Deletes a profile without devices, and its attributes. Its table stays. Waits for the disk.
    pub fn delete_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, Error> {
        caller.check(Action::ManageEntities)?;
        let owner = self.own_entity(caller, EntityId { kind: EntityKind::DeviceProfile, id })?;
        let delete = || {
            let _lock = self.rule_book.lock();
            let profile = self.registry.delete_profile(caller.tenant(), id)?;
            self.set_profile_rules(&profile, AlarmRules::default());
            Ok(profile)
        };
        let profile = self.delete_then_attributes(&owner, delete)?;
        self.audit_of(
            caller,
            "delete device profile",
            &profile.name,
            EntityId::of(EntityKind::DeviceProfile, profile.id),
        );
        Ok(profile)
    }
}
