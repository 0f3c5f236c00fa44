//! Pools of connections, which sensors with one database share.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use virtual_sensors::DatabaseOptions;

use super::client::Database;
use super::error::DatabaseError;

/// The pools of all databases in use.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    open: Mutex<HashMap<DatabaseOptions, Weak<Database>>>,
}

impl Pools {
    /// The client of a database. Callers with the same options get the same one.
    ///
    /// # Errors
    /// The errors of [`Database::open`].
    pub(crate) fn get(&self, options: &DatabaseOptions) -> Result<Arc<Database>, DatabaseError> {
        let mut open = self.open.lock();
        if let Some(database) = open.get(options).and_then(Weak::upgrade) {
            return Ok(database);
        }
        open.retain(|_, database| database.strong_count() > 0);
        let database = Arc::new(Database::open(options)?);
        open.insert(options.clone(), Arc::downgrade(&database));
        Ok(database)
    }
}
