//! Bounds of the registry. Those of names, tokens, tenants, API keys and pages are in [`model::limits`].

/// Bytes of the `profileData` of a device profile, as JSON text.
pub const PROFILE_DATA_BYTES_MAX: usize = 256 * 1024;
/// Bytes of the `additionalInfo` of an entity, as JSON text.
pub const ADDITIONAL_INFO_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the keys of an entity view, as JSON text.
pub const VIEW_KEYS_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a label, a title, a first name, a phone number, a part of an address, or the type of a relation or an entity view.
pub const SHORT_TEXT_BYTES_MAX: usize = 255;
/// Bytes of the description of a profile.
pub const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a certificate of a device, as text.
pub const CERTIFICATE_BYTES_MAX: usize = 16 * 1024;
/// Customers of a tenant.
pub const CUSTOMERS_PER_TENANT_MAX: usize = 100_000;
/// Databases of a tenant. Each has tables of its own.
pub const DATABASES_PER_TENANT_MAX: usize = 1_000;
/// Users of a tenant.
pub const USERS_PER_TENANT_MAX: usize = 100_000;
/// Device profiles of a tenant. Each has a table of its own. A virtual sensor has one, and a second one for elements from outside.
pub const PROFILES_PER_TENANT_MAX: usize = 25_000;
/// Asset profiles of a tenant.
pub const ASSET_PROFILES_PER_TENANT_MAX: usize = 1_000;
/// Single devices that share one transaction when they are added at the same time.
pub const DEVICES_PER_COMMIT_MAX: usize = 1_024;
/// Assets of a tenant.
pub const ASSETS_PER_TENANT_MAX: usize = 1_000_000;
/// Entity views of a tenant.
pub const VIEWS_PER_TENANT_MAX: usize = 100_000;
/// Relations of a tenant.
pub const RELATIONS_PER_TENANT_MAX: usize = 1_000_000;
/// Relations that one query follows.
pub const RELATIONS_FOLLOWED_MAX: usize = 100_000;
/// Sessions that their users have ended and whose tokens have not expired. Above it a logout ends all sessions of its user.
pub const ENDED_SESSIONS_MAX: usize = 1_000_000;
/// How long the token of an activation link is valid (ThingsBoard's `security.user_activation_token_ttl`).
pub const ACTIVATION_SECONDS: i64 = 24 * 3_600;
/// Patterns in a list of topics of a device profile. Each costs a comparison for each message of its devices.
pub const TOPIC_PATTERNS_MAX: usize = 64;
/// Bytes of such a pattern.
pub const TOPIC_PATTERN_BYTES_MAX: usize = 1_024;
