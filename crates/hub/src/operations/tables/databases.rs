//! Opens, lists, creates and drops databases of the time-series interfaces.

use crate::caller::{Action, Caller};
use crate::databases::OpenDatabase;
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{OWN_DATABASE, RegistryError};

impl Hub {
    /// The tenant's own database.
    pub fn own_database(&self, caller: &Caller) -> OpenDatabase {
        OpenDatabase::own(self.registry.namespace(caller.tenant()))
    }

    /// The database with a name.
    ///
    /// # Errors
    /// The caller may not read, or its tenant has no such database.
    pub fn database(&self, caller: &Caller, name: &str) -> Result<OpenDatabase, RegistryError> {
        caller.check(Action::Read)?;
        if name == OWN_DATABASE {
            return Ok(self.own_database(caller));
        }
        let found = self.registry.database(caller.tenant(), name).map(OpenDatabase::from);
        found.ok_or_else(|| RegistryError::unknown("database", name))
    }

    /// The databases of the caller's tenant: its own one first, then the others by name.
    ///
    /// # Errors
    /// The caller may not read.
    pub fn databases(&self, caller: &Caller) -> Result<Vec<OpenDatabase>, RegistryError> {
        caller.check(Action::Read)?;
        let others = self.registry.databases(caller.tenant());
        let others = others.into_iter().map(OpenDatabase::from);
        Ok(std::iter::once(self.own_database(caller)).chain(others).collect())
    }

    /// Creates a database, or returns the one that has the name. Waits for the disk.
    ///
    /// # Errors
    /// The caller lacks the permission, the name is invalid, or the tenant has too many databases.
    pub fn create_database(&self, caller: &Caller, name: &str) -> Result<OpenDatabase, RegistryError> {
        caller.check(Action::CreateDatabases)?;
        if name == OWN_DATABASE || self.registry.database(caller.tenant(), name).is_some() {
            return self.database(caller, name);
        }
        let database = self.registry.add_database(caller.tenant(), name)?;
        self.audit(caller, "create database", name);
        Ok(database.into())
    }

    /// Drops a database with its tables, if it is there. Waits for the disk. If the store drops nothing now,
    /// [`drop_deleted_tables`](Self::drop_deleted_tables) drops them later.
    ///
    /// # Errors
    /// The caller lacks the permission, the database is the tenant's own one, or the store fails.
    pub fn drop_database(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        caller.check(Action::DeleteData)?;
        if name == OWN_DATABASE {
            let reason =
                format!("{name:?} has the tables of the devices and cannot be dropped; drop single tables");
            return Err(RegistryError::Invalid { what: "database", reason }.into());
        }
        match self.registry.delete_database(caller.tenant(), name) {
            Ok(database) => self.series_cache.forget(&database.namespace()),
            Err(RegistryError::Unknown { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        self.audit(caller, "drop database", name);
        self.announce_deletion();
        Ok(())
    }
}
