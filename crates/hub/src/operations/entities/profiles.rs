//! Management of device profiles, for callers with the permission.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::alarms::{AlarmRules, rules_of};
use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{Entity, EntityId, EntityKind, PackageIds, Profile, ProfileFields, RegistryError};

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

    /// The profile with an id.
    pub fn profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        self.find(caller, id)
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
        let entity = EntityId::of(EntityKind::DeviceProfile, profile.id);
        self.audit_of(caller, "add device profile", subject, entity);
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
        let old = self.registry.find::<Profile>(caller.tenant(), id)?;
        let profile = self.change_profile_and_packages(&old, &fields, || {
            let _lock = self.rule_book.lock();
            let profile = self.registry.change_profile(caller.tenant(), id, fields, version)?;
            self.set_profile_rules(&profile, rules);
            Ok(profile)
        })?;
        let entity = EntityId::of(EntityKind::DeviceProfile, profile.id);
        self.audit_of(caller, "change device profile", &profile.name, entity);
        Ok(profile)
    }

    /// Makes a profile that of devices that are added without one. Waits for the disk.
    pub fn set_default_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, RegistryError> {
        self.manage(caller, "set default device profile", |registry, tenant| {
            registry.set_default_profile(tenant, id)
        })
    }

    /// Deletes a profile without devices, and its attributes. Its table stays. Waits for the disk.
    pub fn delete_profile(&self, caller: &Caller, id: Uuid) -> Result<Arc<Profile>, Error> {
        self.manage_deletion(caller, "delete device profile", id, |registry, tenant| {
            let _lock = self.rule_book.lock();
            let profile = registry.delete_profile(tenant, id)?;
            self.set_profile_rules(&profile, AlarmRules::default());
            Ok(profile)
        })
    }
}
