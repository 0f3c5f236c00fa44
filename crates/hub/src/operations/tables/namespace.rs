//! The namespaces of tenants: each tenant has tables of its own.

use model::TableName;

use crate::caller::Caller;
use crate::hub::Hub;

impl Hub {
    /// A table of the caller's tenant.
    ///
    /// # Errors
    /// The name breaks the rules for table names.
    pub(crate) fn table(&self, caller: &Caller, name: &str) -> Result<TableName, store::StoreError> {
        Ok(TableName::new(&self.registry.namespace(caller.tenant()), name)?)
    }
}
