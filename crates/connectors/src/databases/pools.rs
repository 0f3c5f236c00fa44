//! Pools of connections, which sensors with one database share.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use clients::outgoing::AllowedTargets;
use parking_lot::Mutex;
use virtual_sensors::DatabaseOptions;

use super::client::Database;

/// The pools of all databases in use.
#[derive(Debug)]
pub(crate) struct Pools {
    targets: Arc<AllowedTargets>,
    open: Mutex<HashMap<DatabaseOptions, Weak<Database>>>,
}

impl Pools {
    /// No pools yet. They connect only to servers that are allowed.
    pub(crate) fn new(targets: &Arc<AllowedTargets>) -> Self {
        Self { targets: Arc::clone(targets), open: Mutex::default() }
    }

    /// The client of a database. Callers with the same options get the same one.
    pub(crate) fn get(&self, options: &DatabaseOptions) -> Arc<Database> {
        let mut open = self.open.lock();
        if let Some(database) = open.get(options).and_then(Weak::upgrade) {
            return database;
        }
        open.retain(|_, database| database.strong_count() > 0);
        let database = Arc::new(Database::new(options, Arc::clone(&self.targets)));
        open.insert(options.clone(), Arc::downgrade(&database));
        database
    }
}
