//! Entities of the registry: tenants, customers, users, devices, assets, profiles, views and relations.

mod api_keys;
mod assets;
mod customers;
mod devices;
mod entity_views;
mod kinds;
mod profiles;
mod relations;
mod tenant_loads;
mod tenants;
mod users;
mod visible;
