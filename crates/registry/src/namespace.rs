//! The namespaces of tenants: each tenant has tables of its own.

use model::{Namespace, TableName};
use uuid::Uuid;

use super::handle::Registry;

impl Registry {
    /// The namespace of a tenant's tables. Ids of tenants never come again, so a tenant never inherits tables.
    pub fn namespace(&self, tenant: Uuid) -> Namespace {
        namespace_of(tenant, self.default_tenant())
    }

    /// The namespaces of all tables of a tenant: its own one, and those of its databases.
    pub fn namespaces(&self, tenant: Uuid) -> Vec<Namespace> {
        let databases = self.databases(tenant);
        let of_databases = databases.iter().map(|database| database.namespace());
        std::iter::once(self.namespace(tenant)).chain(of_databases).collect()
    }

    /// The tenant of a namespace; `None` if its tenant or its database does not exist.
    pub fn tenant_of_namespace(&self, namespace: &Namespace) -> Option<Uuid> {
        let Some(name) = namespace.name() else { return Some(self.default_tenant()) };
        let id = Uuid::try_parse(name).ok()?;
        let index = self.index.read();
        let tenant = index.tenant(id).map(|tenant| tenant.id);
        tenant.or_else(|| Some(index.databases.get(id)?.tenant))
    }
}

/// The namespace of a tenant: the default one for the tenant that every installation has, otherwise one named by its id.
pub(crate) fn namespace_of(tenant: Uuid, default_tenant: Uuid) -> Namespace {
    if tenant == default_tenant {
        return Namespace::DEFAULT;
    }
    Namespace::new(&tenant.simple().to_string()).expect("BUG: an id is a valid name")
}

/// A table that the server itself writes, such as the dead letters of a tenant.
pub fn own_table(namespace: &Namespace, name: &'static str) -> TableName {
    TableName::new(namespace, name).expect("BUG: the hub's own names are valid")
}
