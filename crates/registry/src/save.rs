//! Writes entities into the registry's file. Each function adds a row, or replaces the one with the same id.

use std::num::NonZeroU32;

use model::Timestamp;
use rusqlite::{Transaction, params};
use uuid::Uuid;

use super::asset::{Asset, AssetProfile};
use super::credentials::Credentials;
use super::customer::Customer;
use super::database::Database;
use super::entity::{Device, Profile, Tenant};
use super::entity_view::EntityView;
use super::index::Account;
use super::package_ids::PackageIds;
use super::provision_terms::{ProvisionStrategy, ProvisionTerms};
use super::relation::{Relation, RelationKey};
use super::tenant_limits::TenantLimit;
use super::user::ApiKey;
use crate::entity_id::EntityId;

type Written = rusqlite::Result<()>;

pub(super) fn database(transaction: &Transaction<'_>, database: &Database) -> Written {
    let Database { id, tenant, name, created_at } = database;
    let sql = "INSERT INTO database (id, tenant, name, created_at) VALUES (?1, ?2, ?3, ?4)";
    transaction.prepare_cached(sql)?.execute(params![id, tenant, name, created_at.millis()])?;
    Ok(())
}

pub(super) fn tenant(transaction: &Transaction<'_>, tenant: &Tenant) -> Written {
    let Tenant { id, name, contact, additional_info, limits, created_at, version } = tenant;
    let sql = "INSERT INTO tenant (id, name, contact, additional_info, created_at, version) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE SET name = excluded.name, \
               contact = excluded.contact, additional_info = excluded.additional_info, version = excluded.version";
    let (contact, created_at) = (contact.stored(), created_at.millis());
    transaction.execute(sql, params![id, name, contact, additional_info, created_at, version])?;
    for limit in TenantLimit::ALL {
        let sql = format!("UPDATE tenant SET {} = ?2 WHERE id = ?1", limit.metric());
        let value = limits.value(limit).map(NonZeroU32::get);
        transaction.prepare_cached(&sql)?.execute(params![id, value])?;
    }
    Ok(())
}

pub(super) fn customer(transaction: &Transaction<'_>, customer: &Customer) -> Written {
    let Customer { id, tenant, title, contact, additional_info, created_at, version } = customer;
    let sql = "INSERT INTO customer (id, tenant, title, contact, additional_info, created_at, version) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO UPDATE SET title = excluded.title, \
               contact = excluded.contact, additional_info = excluded.additional_info, version = excluded.version";
    let values = params![id, tenant, title, contact.stored(), additional_info, created_at.millis(), version];
    transaction.execute(sql, values).map(drop)
}

pub(super) fn profile(transaction: &Transaction<'_>, profile: &Profile) -> Written {
    // The topics and the schemas of payloads are in the data.
    let Profile { id, tenant, name, table, durability, description, data, is_default, created_at, .. } =
        profile;
    let ProvisionTerms { strategy, key, secret, chain } = &profile.provision;
    // The column has no other word for the strategy of a chain.
    let strategy = if chain.is_some() { ProvisionStrategy::Disabled } else { *strategy };
    let chain = chain.as_ref().map(|chain| chain.settings());
    let sql = "INSERT INTO profile (id, tenant, name, data_table, durability, description, data, is_default, \
               created_at, version, provision_strategy, provision_key, provision_secret, firmware, software, certificate_chain) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16) \
               ON CONFLICT (id) DO UPDATE SET name = excluded.name, data_table = excluded.data_table, \
               durability = excluded.durability, description = excluded.description, data = excluded.data, \
               is_default = excluded.is_default, version = excluded.version, \
               provision_strategy = excluded.provision_strategy, provision_key = excluded.provision_key, \
               provision_secret = excluded.provision_secret, \
               firmware = excluded.firmware, software = excluded.software, certificate_chain = excluded.certificate_chain";
    let PackageIds { firmware, software } = profile.packages;
    let (table, durability, created_at) = (table.name(), durability.name(), created_at.millis());
    let values = params![
        id,
        tenant,
        name,
        table,
        durability,
        description,
        data,
        is_default,
        created_at,
        profile.version,
        strategy.name(),
        key,
        secret,
        firmware,
        software,
        chain
    ];
    transaction.execute(sql, values).map(drop)
}

pub(super) fn device(transaction: &Transaction<'_>, device: &Device) -> Written {
    let sql = "INSERT INTO device (id, tenant, name, profile, created_at, gateway, last_gateway, customer, label, \
               additional_info, version, firmware, software) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) \
               ON CONFLICT (id) DO UPDATE SET name = excluded.name, profile = excluded.profile, \
               gateway = excluded.gateway, last_gateway = excluded.last_gateway, customer = excluded.customer, \
               label = excluded.label, additional_info = excluded.additional_info, version = excluded.version, \
               firmware = excluded.firmware, software = excluded.software";
    let PackageIds { firmware, software } = device.own_packages;
    let Device { id, tenant, name, profile, created_at, gateway, last_gateway, .. } = device;
    let Device { customer, label, additional_info, version, .. } = device;
    let (profile, created_at) = (profile.id, created_at.millis());
    let values = params![
        id,
        tenant,
        name,
        profile,
        created_at,
        gateway,
        last_gateway,
        customer,
        label,
        additional_info,
        version,
        firmware,
        software
    ];
    transaction.prepare_cached(sql)?.execute(values).map(drop)
}

pub(super) fn credentials(transaction: &Transaction<'_>, device: Uuid, credentials: &Credentials) -> Written {
    let sql = "INSERT INTO credentials (device, kind, id, value) VALUES (?1, ?2, ?3, ?4) \
               ON CONFLICT (device) DO UPDATE SET kind = excluded.kind, id = excluded.id, value = excluded.value";
    let (kind, id, value) = (credentials.kind().name(), credentials.id(), credentials.value());
    transaction.prepare_cached(sql)?.execute((device, kind, id, value)).map(drop)
}

pub(super) fn asset_profile(transaction: &Transaction<'_>, profile: &AssetProfile) -> Written {
    let AssetProfile { id, tenant, name, description, is_default, created_at, version } = profile;
    let sql = "INSERT INTO asset_profile (id, tenant, name, description, is_default, created_at, version) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO UPDATE SET name = excluded.name, \
               description = excluded.description, is_default = excluded.is_default, version = excluded.version";
    let values = params![id, tenant, name, description, is_default, created_at.millis(), version];
    transaction.execute(sql, values).map(drop)
}

pub(super) fn asset(transaction: &Transaction<'_>, asset: &Asset) -> Written {
    let Asset { id, tenant, customer, name, profile, label, additional_info, created_at, version } = asset;
    let sql = "INSERT INTO asset (id, tenant, customer, name, profile, label, additional_info, created_at, version) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO UPDATE SET \
               customer = excluded.customer, name = excluded.name, profile = excluded.profile, \
               label = excluded.label, additional_info = excluded.additional_info, version = excluded.version";
    let (profile, created_at) = (profile.id, created_at.millis());
    let values = params![id, tenant, customer, name, profile, label, additional_info, created_at, version];
    transaction.execute(sql, values).map(drop)
}

pub(super) fn entity_view(transaction: &Transaction<'_>, view: &EntityView) -> Written {
    let sql = "INSERT INTO entity_view (id, tenant, customer, entity_kind, entity, name, type, keys, start_ms, end_ms, \
               additional_info, created_at, version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) \
               ON CONFLICT (id) DO UPDATE SET customer = excluded.customer, entity_kind = excluded.entity_kind, \
               entity = excluded.entity, name = excluded.name, type = excluded.type, keys = excluded.keys, \
               start_ms = excluded.start_ms, end_ms = excluded.end_ms, \
               additional_info = excluded.additional_info, version = excluded.version";
    let EntityView { id, tenant, customer, entity, name, kind, keys, start_ms, end_ms, .. } = view;
    let EntityView { additional_info, created_at, version, .. } = view;
    let (entity_kind, entity, created_at) = (entity.kind.name(), entity.id, created_at.millis());
    let values = params![
        id,
        tenant,
        customer,
        entity_kind,
        entity,
        name,
        kind,
        keys,
        start_ms,
        end_ms,
        additional_info,
        created_at,
        version
    ];
    transaction.execute(sql, values).map(drop)
}

pub(super) fn relation(transaction: &Transaction<'_>, relation: &Relation) -> Written {
    let Relation { tenant, key, additional_info, version } = relation;
    let RelationKey { from, type_group, kind, to } = key;
    let sql = "INSERT OR REPLACE INTO relation (tenant, from_kind, from_id, type_group, type, to_kind, to_id, \
               additional_info, version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let (from_kind, to_kind) = (from.kind.name(), to.kind.name());
    let values =
        params![tenant, from_kind, from.id, type_group, kind, to_kind, to.id, additional_info, version];
    transaction.execute(sql, values).map(drop)
}

pub(super) fn no_relation(transaction: &Transaction<'_>, key: &RelationKey) -> Written {
    let RelationKey { from, type_group, kind, to } = key;
    let sql = "DELETE FROM relation WHERE from_id = ?1 AND type_group = ?2 AND type = ?3 AND to_id = ?4 \
               AND from_kind = ?5 AND to_kind = ?6";
    let values = params![from.id, type_group, kind, to.id, from.kind.name(), to.kind.name()];
    transaction.execute(sql, values).map(drop)
}

/// Deletes the relations of an entity. Those that end there are found by their keys, which the index has.
pub(super) fn no_relations(
    transaction: &Transaction<'_>,
    entity: EntityId,
    ending_there: &[RelationKey],
) -> Written {
    let sql = "DELETE FROM relation WHERE from_id = ?1 AND from_kind = ?2";
    transaction.execute(sql, (entity.id, entity.kind.name()))?;
    ending_there.iter().try_for_each(|key| no_relation(transaction, key))
}

pub(super) fn account(transaction: &Transaction<'_>, account: &Account) -> Written {
    let Account { user, password_hash, activation } = account;
    let sql = "INSERT INTO user (id, tenant, login, role, password_hash, password_changed_at, session_epoch, customer, \
               first_name, last_name, phone, additional_info, created_at, enabled, version) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) \
               ON CONFLICT (id) DO UPDATE SET login = excluded.login, role = excluded.role, \
               password_hash = excluded.password_hash, password_changed_at = excluded.password_changed_at, \
               session_epoch = excluded.session_epoch, customer = excluded.customer, \
               first_name = excluded.first_name, last_name = excluded.last_name, phone = excluded.phone, \
               additional_info = excluded.additional_info, enabled = excluded.enabled, version = excluded.version";
    let values = params![
        user.id,
        user.tenant,
        user.login,
        user.role.name(),
        password_hash,
        user.password_changed_at.millis(),
        user.session_epoch,
        user.customer,
        user.first_name,
        user.last_name,
        user.phone,
        user.additional_info,
        user.created_at.millis(),
        user.enabled,
        user.version
    ];
    transaction.execute(sql, values)?;
    transaction.execute("DELETE FROM activation WHERE user = ?1", [user.id])?;
    if let Some(activation) = activation {
        let sql = "INSERT INTO activation (user, token, expires_at) VALUES (?1, ?2, ?3)";
        transaction.execute(sql, (user.id, &activation.token, activation.expires_at.millis()))?;
    }
    Ok(())
}

pub(super) fn api_key(transaction: &Transaction<'_>, key: &ApiKey, hash: [u8; 32]) -> Written {
    let sql = "INSERT INTO api_key (id, user, name, role, created_at, expires_at, hash) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let ApiKey { id, user, name, role, created_at, expires_at } = key;
    let expires_at = expires_at.map(Timestamp::millis);
    transaction.execute(sql, (id, user, name, role.name(), created_at.millis(), expires_at, hash)).map(drop)
}
