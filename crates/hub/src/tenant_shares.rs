//! How the tenants share what an installation has once: tables, series, columns, sessions, subscriptions, memory of messages.
//!
//! An administrator of the installation may set a limit for a tenant. Without one a tenant may have half of what the others leave
//! ([`share_of`]), and the only tenant all of it. Limits hold for what is new: what a tenant has above its share stays.

use std::sync::{Arc, Weak};

use model::limits::{COLUMNS_MAX, Portion, TABLES_MAX};
use model::{TableName, share_of};
use store::{DefinitionCounts, DefinitionLimits, Definitions, StoreError};
use uuid::Uuid;

use crate::broker;
use crate::registry::{AUDIT_TABLE, DEAD_LETTER_TABLE, Registry, TenantLimit};

/// Gives each tenant its share.
pub(crate) struct TenantShares {
    /// Weak: a store that is still open after the hub has closed must not keep the registry open.
    registry: Weak<Registry>,
    /// What all tenants may define together.
    most: Definitions,
}

impl std::fmt::Debug for TenantShares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TenantShares").field("most", &self.most).finish_non_exhaustive()
    }
}

impl TenantShares {
    /// Shares what the memory of this machine allows, and `series_max` series.
    pub(crate) fn on(memory: Portion, registry: &Arc<Registry>, series_max: u64) -> Self {
        let registry = Arc::downgrade(registry);
        let columns = memory.of(COLUMNS_MAX) as u64;
        Self { registry, most: Definitions { tables: TABLES_MAX as u64, series: series_max, columns } }
    }

    /// What a tenant has defined, and the most that it may.
    pub(crate) fn definitions_of(
        &self,
        tenant: Uuid,
        present: &DefinitionCounts,
    ) -> (Definitions, Definitions) {
        let Some(registry) = self.registry.upgrade() else { return (Definitions::default(), self.most) };
        let namespaces = registry.namespaces(tenant);
        let own = namespaces.iter().fold(Definitions::default(), |sum, one| sum.plus(present.of(one)));
        let others = present.total().minus(own);
        let most = |limit, max, others| self.most_of(tenant, limit, max, others);
        let most = Definitions {
            tables: most(TenantLimit::Tables, self.most.tables, others.tables),
            series: most(TenantLimit::Series, self.most.series, others.series),
            columns: most(TenantLimit::Columns, self.most.columns, others.columns),
        };
        (own, most)
    }

    fn most_of(&self, tenant: Uuid, limit: TenantLimit, max: u64, others: u64) -> u64 {
        let limits = self.registry.upgrade().map(|registry| registry.tenant_limits(tenant));
        match limits.and_then(|limits| limits.value(limit)) {
            Some(limit) => u64::from(limit.get()).min(max.saturating_sub(others)),
            None => share_of(max, others, self.tenant_count()),
        }
    }

    fn tenant_count(&self) -> usize {
        self.registry.upgrade().map_or(1, |registry| registry.tenant_count())
    }
}

impl DefinitionLimits for TenantShares {
    fn check(
        &self,
        table: &TableName,
        new: Definitions,
        present: &DefinitionCounts,
    ) -> Result<(), StoreError> {
        // What the server itself writes: a tenant without room must have its dead letters.
        if [AUDIT_TABLE, DEAD_LETTER_TABLE].contains(&table.name()) {
            return Ok(());
        }
        let tenant =
            self.registry.upgrade().and_then(|registry| registry.tenant_of_namespace(&table.namespace()));
        let Some(tenant) = tenant else { return Ok(()) };
        let (own, most) = self.definitions_of(tenant, present);
        let next = own.plus(new);
        for (what, new, actual, limit) in [
            ("number of tables of the tenant (tablesMax)", new.tables, next.tables, most.tables),
            ("number of series of the tenant (seriesMax)", new.series, next.series, most.series),
            ("number of columns of the tenant (columnsMax)", new.columns, next.columns, most.columns),
        ] {
            if new > 0 && actual > limit {
                return Err(StoreError::OverLimit { what, actual, limit });
            }
        }
        Ok(())
    }
}

impl broker::TenantShares for TenantShares {
    fn most(&self, tenant: Uuid, of: broker::Shared, max: u64, others: u64) -> u64 {
        match of {
            broker::Shared::Sessions => self.most_of(tenant, TenantLimit::Sessions, max, others),
            broker::Shared::Subscriptions => self.most_of(tenant, TenantLimit::Subscriptions, max, others),
            broker::Shared::MemoryBytes => share_of(max, others, self.tenant_count()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use model::SeriesKey;
    use store::{Maintenance, MemoryStore, Writer};

    use super::*;
    use crate::registry::{TenantFields, TenantLimits};

    fn registry(directory: &tempfile::TempDir) -> Arc<Registry> {
        Arc::new(Registry::open(&directory.path().join("registry.sqlite")).unwrap().0)
    }

    fn limited(registry: &Arc<Registry>, series_max: u64) -> MemoryStore {
        let store = MemoryStore::new();
        store.limit_definitions(Arc::new(TenantShares::on(Portion::ALL, registry, series_max)));
        store
    }

    /// Makes series of a tenant until one is refused, at most 100; returns their number and the refusal.
    fn fill(store: &MemoryStore, registry: &Registry, tenant: Uuid) -> (usize, String) {
        let table = TableName::new(&registry.namespace(tenant), "t").unwrap();
        for n in 0..100 {
            if let Err(refusal) = store.series(&SeriesKey::device(&table, &n.to_string()).unwrap()) {
                return (n, refusal.to_string());
            }
        }
        (100, String::new())
    }

    #[test]
    fn tenants_share_series_and_one_alone_has_all() {
        let directory = tempfile::tempdir().unwrap();
        let registry = registry(&directory);
        let alone = limited(&registry, 30);
        let default = registry.default_tenant();
        assert_eq!(fill(&alone, &registry, default).0, 30);

        let acme =
            registry.add_empty_tenant(&TenantFields { name: "acme", ..TenantFields::default() }).unwrap().id;
        let store = limited(&registry, 30);
        let (count, refusal) = fill(&store, &registry, default);
        assert_eq!(count, 15);
        assert_eq!(refusal, "number of series of the tenant (seriesMax) is 16, the limit is 15");
        assert_eq!(fill(&store, &registry, acme).0, 7);
        let (own, most) =
            TenantShares::on(Portion::ALL, &registry, 30).definitions_of(acme, &store.definitions());
        assert_eq!((own.series, most.series, own.tables), (7, 7, 1));
    }

    #[test]
    fn a_limit_of_a_tenant_replaces_its_share_and_dead_letters_have_room() {
        let directory = tempfile::tempdir().unwrap();
        let registry = registry(&directory);
        let default = registry.default_tenant();
        let limits = TenantLimits::default()
            .with(TenantLimit::Series, NonZeroU32::new(3))
            .with(TenantLimit::Tables, NonZeroU32::new(1));
        registry.set_tenant_limits("default", limits).unwrap();
        let store = limited(&registry, 30);
        assert_eq!(fill(&store, &registry, default).0, 3);
        let series = |name: &str| {
            let table = TableName::new(&registry.namespace(default), name).unwrap();
            store.series(&SeriesKey::device(&table, "d").unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(
            series("u").unwrap_err(),
            "number of tables of the tenant (tablesMax) is 2, the limit is 1"
        );
        series(DEAD_LETTER_TABLE).unwrap();
        series(AUDIT_TABLE).unwrap();
        let elsewhere =
            TableName::new(&model::Namespace::new(&Uuid::from_u128(9).simple().to_string()).unwrap(), "t");
        store.series(&SeriesKey::device(elsewhere.unwrap(), "d").unwrap()).unwrap();
    }
}
