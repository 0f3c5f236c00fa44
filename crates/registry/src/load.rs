//! Loads the registry's file into memory.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use model::{TableName, Timestamp};
use payload_schema::PayloadSchemas;
use rusqlite::types::{FromSql, Type};
use rusqlite::{Connection, Row};
use uuid::Uuid;

use super::asset::{Asset, AssetProfile};
use super::certificate_chain::CertificateChain;
use super::contact::Contact;
use super::credentials::Credentials;
use super::customer::Customer;
use super::database::Database;
use super::entity::{Device, Profile, Tenant};
use super::entity_view::EntityView;
use super::error::RegistryError;
use super::index::{Account, Index};
use super::package_ids::PackageIds;
use super::provision_terms::ProvisionTerms;
use super::relation::{Relation, RelationKey};
use super::tenant_limits::{TenantLimit, TenantLimits};
use super::user::{Activation, ApiKey, User};
use crate::entity_id::EntityId;
use crate::namespace::namespace_of;
use crate::topic_rights::TopicRights;

type Read<T> = rusqlite::Result<T>;

/// Loads the whole file.
pub(super) fn load(connection: &Connection, path: &Path) -> Result<Index, RegistryError> {
    let read = || {
        let mut index = Index::default();
        let limits = TenantLimit::ALL.map(TenantLimit::metric).join(", ");
        let sql =
            format!("SELECT id, name, contact, additional_info, created_at, version, {limits} FROM tenant");
        index.tenants = rows(connection, &sql, tenant)?;
        index.deleted_tenants = rows(connection, "SELECT id FROM deleted_tenant", |row| row.get(0))?;
        let sql = "SELECT id, tenant, title, contact, additional_info, created_at, version FROM customer";
        rows(connection, sql, customer)?.into_iter().for_each(|one| index.customers.put(one));
        databases(connection, &mut index)?;
        devices(connection, &mut index)?;
        assets(connection, &mut index)?;
        let sql = "SELECT id, tenant, customer, entity_kind, entity, name, type, keys, start_ms, end_ms, \
                   additional_info, created_at, version FROM entity_view";
        rows(connection, sql, entity_view)?.into_iter().for_each(|one| index.views.put(one));
        let sql = "SELECT tenant, from_kind, from_id, type_group, type, to_kind, to_id, additional_info, version \
                   FROM relation";
        rows(connection, sql, relation)?.into_iter().for_each(|one| index.relations.put(one));
        users(connection, &mut index)?;
        Ok(index)
    };
    read().map_err(RegistryError::sqlite("read the registry", path))
}

fn databases(connection: &Connection, index: &mut Index) -> Read<()> {
    let sql = "SELECT id, tenant, name, created_at FROM database";
    rows(connection, sql, database)?.into_iter().for_each(|one| index.databases.put(one));
    index.deleted_databases = rows(connection, "SELECT id FROM deleted_database", |row| row.get(0))?;
    Ok(())
}

fn devices(connection: &Connection, index: &mut Index) -> Read<()> {
    let default_tenant = index.default_tenant().map(|tenant| tenant.id).unwrap_or_default();
    let sql = "SELECT id, tenant, name, data_table, durability, description, data, is_default, created_at, version, \
               provision_strategy, provision_key, provision_secret, firmware, software, certificate_chain FROM profile";
    for profile in rows(connection, sql, |row| profile(row, default_tenant))? {
        index.put_profile(profile);
    }
    let sql = "SELECT d.id, d.tenant, d.name, d.profile, d.created_at, c.id, d.gateway, d.last_gateway, \
               d.customer, d.label, d.additional_info, d.version, c.kind, c.value, d.firmware, d.software \
               FROM device d JOIN credentials c ON c.device = d.id";
    for (device, credentials) in rows(connection, sql, |row| device(row, index))? {
        index.put_device(device, credentials);
    }
    Ok(())
}

fn assets(connection: &Connection, index: &mut Index) -> Read<()> {
    let sql = "SELECT id, tenant, name, description, is_default, created_at, version FROM asset_profile";
    rows(connection, sql, asset_profile)?.into_iter().for_each(|one| index.asset_profiles.put(one));
    let sql =
        "SELECT id, tenant, customer, name, profile, label, additional_info, created_at, version FROM asset";
    let assets = rows(connection, sql, |row| asset(row, index))?;
    assets.into_iter().for_each(|one| index.assets.put(one));
    Ok(())
}

fn users(connection: &Connection, index: &mut Index) -> Read<()> {
    let sql = "SELECT u.id, u.tenant, u.login, u.role, u.password_hash, u.password_changed_at, u.session_epoch, \
               u.customer, u.first_name, u.last_name, u.phone, u.additional_info, u.created_at, u.enabled, \
               u.version, a.token, a.expires_at \
               FROM user u LEFT JOIN activation a ON a.user = u.id";
    for account in rows(connection, sql, account)? {
        index.put_account(account);
    }
    let ended =
        rows(connection, "SELECT id, expires_at FROM ended_session", |row| Ok((row.get(0)?, time(row, 1)?)))?;
    index.ended_sessions = ended.into_iter().collect();
    let sql = "SELECT id, user, name, role, created_at, expires_at, hash FROM api_key";
    for (hash, key) in rows(connection, sql, api_key)? {
        index.put_api_key(hash, key);
    }
    Ok(())
}

fn rows<T>(connection: &Connection, sql: &str, row: impl FnMut(&Row<'_>) -> Read<T>) -> Read<Vec<T>> {
    connection.prepare(sql)?.query_map([], row)?.collect()
}

fn tenant(row: &Row<'_>) -> Read<Arc<Tenant>> {
    Ok(Arc::new(Tenant {
        id: row.get(0)?,
        name: row.get(1)?,
        contact: contact(row, 2)?,
        additional_info: row.get(3)?,
        limits: TenantLimits::try_from_fn(|one| limit(row, 6 + one as usize))?,
        created_at: time(row, 4)?,
        version: row.get(5)?,
    }))
}

fn limit(row: &Row<'_>, column: usize) -> Read<Option<NonZeroU32>> {
    Ok(row.get::<_, Option<u32>>(column)?.and_then(NonZeroU32::new))
}

fn database(row: &Row<'_>) -> Read<Arc<Database>> {
    let (id, tenant, name) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(Arc::new(Database { id, tenant, name, created_at: time(row, 3)? }))
}

fn customer(row: &Row<'_>) -> Read<Arc<Customer>> {
    Ok(Arc::new(Customer {
        id: row.get(0)?,
        tenant: row.get(1)?,
        title: row.get(2)?,
        contact: contact(row, 3)?,
        additional_info: row.get(4)?,
        created_at: time(row, 5)?,
        version: row.get(6)?,
    }))
}

fn profile(row: &Row<'_>, default_tenant: Uuid) -> Read<Arc<Profile>> {
    let (tenant, table): (Uuid, String) = (row.get(1)?, row.get(3)?);
    let table = TableName::new(&namespace_of(tenant, default_tenant), &table)
        .map_err(|error| unreadable(3, error.into()))?;
    let (name, data): (String, Option<Box<str>>) = (row.get(2)?, row.get(6)?);
    // One profile that cannot be read must not keep the server from starting.
    let is_of_installation = tenant == default_tenant;
    let topics = TopicRights::of_profile_data(data.as_deref(), is_of_installation).unwrap_or_else(|error| {
        tracing::warn!(profile = name, %error, "a device profile is used without the topics that it lists");
        TopicRights::default()
    });
    let payloads = PayloadSchemas::of_profile_data(data.as_deref()).unwrap_or_else(|error| {
        tracing::warn!(profile = name, %error, "a device profile is used without the schemas of its payloads");
        PayloadSchemas::default()
    });
    Ok(Arc::new(Profile {
        id: row.get(0)?,
        tenant,
        name,
        table,
        durability: parsed(row, 4)?,
        description: row.get(5)?,
        data,
        topics,
        payloads,
        provision: provision_terms(row)?,
        packages: PackageIds { firmware: row.get(13)?, software: row.get(14)? },
        is_default: row.get(7)?,
        created_at: time(row, 8)?,
        version: row.get(9)?,
    }))
}

fn provision_terms(row: &Row<'_>) -> Read<ProvisionTerms> {
    let (secret, settings): (Option<Box<str>>, Option<String>) = (row.get(12)?, row.get(15)?);
    match settings {
        None => Ok(ProvisionTerms { strategy: parsed(row, 10)?, key: row.get(11)?, secret, chain: None }),
        Some(settings) => CertificateChain::stored(secret.as_deref().unwrap_or_default(), &settings)
            .map(ProvisionTerms::of_chain)
            .map_err(|error| unreadable(15, error.into())),
    }
}

fn device(row: &Row<'_>, index: &Index) -> Read<(Arc<Device>, Credentials)> {
    let profile = index.profiles.get(row.get(3)?).ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let device = Device {
        id: row.get(0)?,
        tenant: row.get(1)?,
        name: row.get(2)?,
        profile: Arc::clone(profile),
        created_at: time(row, 4)?,
        gateway: row.get(6)?,
        last_gateway: row.get(7)?,
        customer: row.get(8)?,
        label: row.get(9)?,
        additional_info: row.get(10)?,
        own_packages: PackageIds { firmware: row.get(14)?, software: row.get(15)? },
        version: row.get(11)?,
    };
    let value: Option<String> = row.get(13)?;
    let credentials = Credentials::stored(parsed(row, 12)?, row.get(5)?, value.as_deref());
    Ok((Arc::new(device), credentials.map_err(|error| unreadable(13, error.into()))?))
}

fn asset_profile(row: &Row<'_>) -> Read<Arc<AssetProfile>> {
    Ok(Arc::new(AssetProfile {
        id: row.get(0)?,
        tenant: row.get(1)?,
        name: row.get(2)?,
        description: row.get(3)?,
        is_default: row.get(4)?,
        created_at: time(row, 5)?,
        version: row.get(6)?,
    }))
}

fn asset(row: &Row<'_>, index: &Index) -> Read<Arc<Asset>> {
    let profile = index.asset_profiles.get(row.get(4)?).ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(Arc::new(Asset {
        id: row.get(0)?,
        tenant: row.get(1)?,
        customer: row.get(2)?,
        name: row.get(3)?,
        profile: Arc::clone(profile),
        label: row.get(5)?,
        additional_info: row.get(6)?,
        created_at: time(row, 7)?,
        version: row.get(8)?,
    }))
}

fn entity_view(row: &Row<'_>) -> Read<Arc<EntityView>> {
    Ok(Arc::new(EntityView {
        id: row.get(0)?,
        tenant: row.get(1)?,
        customer: row.get(2)?,
        entity: EntityId { kind: parsed(row, 3)?, id: row.get(4)? },
        name: row.get(5)?,
        kind: row.get(6)?,
        keys: row.get(7)?,
        start_ms: row.get(8)?,
        end_ms: row.get(9)?,
        additional_info: row.get(10)?,
        created_at: time(row, 11)?,
        version: row.get(12)?,
    }))
}

fn relation(row: &Row<'_>) -> Read<Arc<Relation>> {
    let key = RelationKey {
        from: EntityId { kind: parsed(row, 1)?, id: row.get(2)? },
        type_group: row.get(3)?,
        kind: row.get(4)?,
        to: EntityId { kind: parsed(row, 5)?, id: row.get(6)? },
    };
    let (tenant, additional_info, version) = (row.get(0)?, row.get(7)?, row.get(8)?);
    Ok(Arc::new(Relation { tenant, key, additional_info, version }))
}

fn account(row: &Row<'_>) -> Read<Account> {
    let user = User {
        id: row.get(0)?,
        tenant: row.get(1)?,
        login: row.get(2)?,
        role: parsed(row, 3)?,
        password_changed_at: time(row, 5)?,
        session_epoch: row.get(6)?,
        customer: row.get(7)?,
        first_name: row.get(8)?,
        last_name: row.get(9)?,
        phone: row.get(10)?,
        additional_info: row.get(11)?,
        created_at: time(row, 12)?,
        enabled: row.get(13)?,
        version: row.get(14)?,
    };
    let activation = match row.get::<_, Option<String>>(15)? {
        Some(token) => Some(Activation { token, expires_at: time(row, 16)? }),
        None => None,
    };
    Ok(Account { user: Arc::new(user), password_hash: row.get(4)?, activation })
}

fn api_key(row: &Row<'_>) -> Read<([u8; 32], Arc<ApiKey>)> {
    let expires_at = match row.get::<_, Option<i64>>(5)? {
        Some(_) => Some(time(row, 5)?),
        None => None,
    };
    let (id, user, name) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let key = ApiKey { id, user, name, role: parsed(row, 3)?, created_at: time(row, 4)?, expires_at };
    Ok((row.get(6)?, Arc::new(key)))
}

fn contact(row: &Row<'_>, column: usize) -> Read<Contact> {
    let text: Option<String> = row.get(column)?;
    let read = text.map(|text| serde_json::from_str(&text)).transpose();
    Ok(read.map_err(|error| unreadable(column, error.into()))?.unwrap_or_default())
}

fn time(row: &Row<'_>, column: usize) -> Read<Timestamp> {
    let millis = row.get(column)?;
    Timestamp::from_millis(millis).ok_or(rusqlite::Error::IntegralValueOutOfRange(column, millis))
}

fn parsed<T: std::str::FromStr<Err = String>>(row: &Row<'_>, column: usize) -> Read<T> {
    let text = String::column_result(row.get_ref(column)?)?;
    text.parse().map_err(|error: String| unreadable(column, error.into()))
}

fn unreadable(column: usize, error: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error)
}
