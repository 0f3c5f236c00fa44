-- The schema of the registry. Ids are UUIDs as 16 bytes, times are milliseconds since the epoch, UTC. Texts named `additional_info`,
-- `contact`, `data` and `keys` are JSON; NULL is none. `version` grows with each change of its row.

-- Values of the installation itself: session_secret (32 random bytes), admin_pending (login of the administrator whose
-- first password nobody has confirmed to keep), last_receipt_us (the last time of receipt, in microseconds).
CREATE TABLE setting (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- A limit that is NULL does not exist.
CREATE TABLE tenant (
    id                      BLOB PRIMARY KEY CHECK (length(id) = 16),
    name                    TEXT NOT NULL UNIQUE,
    contact                 TEXT,
    additional_info         TEXT,
    created_at              INTEGER NOT NULL DEFAULT 0,
    version                 INTEGER NOT NULL DEFAULT 1,
    messages_per_second_max INTEGER CHECK (messages_per_second_max > 0),
    points_per_second_max   INTEGER CHECK (points_per_second_max > 0),
    connections_max         INTEGER CHECK (connections_max > 0),
    tables_max              INTEGER CHECK (tables_max > 0),
    series_max              INTEGER CHECK (series_max > 0),
    columns_max             INTEGER CHECK (columns_max > 0),
    sessions_max            INTEGER CHECK (sessions_max > 0),
    subscriptions_max       INTEGER CHECK (subscriptions_max > 0)
) STRICT, WITHOUT ROWID;

-- Tenants that were deleted. The server drops their tables, also those that it could not drop at once. A tenant that is unknown without being
-- listed here keeps its tables: the registry may be one of an older backup.
CREATE TABLE deleted_tenant (
    id BLOB PRIMARY KEY CHECK (length(id) = 16)
) STRICT, WITHOUT ROWID;

CREATE TABLE customer (
    id              BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant          BLOB NOT NULL REFERENCES tenant (id),
    title           TEXT NOT NULL,
    contact         TEXT,
    additional_info TEXT,
    created_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL DEFAULT 1,
    UNIQUE (tenant, title)
) STRICT, WITHOUT ROWID;

-- A user's sessions end by number. Session tokens hold the epoch in which they were issued; a new password or role begins the next one.
CREATE TABLE user (
    id                  BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant              BLOB NOT NULL REFERENCES tenant (id),
    login               TEXT NOT NULL UNIQUE,
    password_hash       TEXT NOT NULL,
    password_changed_at INTEGER NOT NULL,
    session_epoch       INTEGER NOT NULL DEFAULT 0,
    role                TEXT NOT NULL DEFAULT 'viewer' CHECK (role IN ('customer', 'viewer', 'operator', 'administrator')),
    customer            BLOB REFERENCES customer (id),
    first_name          TEXT,
    last_name           TEXT,
    phone               TEXT,
    additional_info     TEXT,
    created_at          INTEGER NOT NULL DEFAULT 0,
    enabled             INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    version             INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

-- The tokens of users who have not chosen a password yet.
CREATE TABLE activation (
    user       BLOB PRIMARY KEY REFERENCES user (id) ON DELETE CASCADE,
    token      TEXT NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Keys with which programs log in as a user. `hash` is SHA-256 of the key, which is random and long; the key itself is not kept.
-- `role` is the highest role of the key. `expires_at` is NULL for a key that does not expire.
CREATE TABLE api_key (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    user       BLOB NOT NULL REFERENCES user (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    role       TEXT NOT NULL CHECK (role IN ('customer', 'viewer', 'operator', 'administrator')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    UNIQUE (user, name)
) STRICT, WITHOUT ROWID;

-- Sessions that their users have ended, until their tokens expire.
CREATE TABLE ended_session (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `data` is ThingsBoard's profileData as the client sent it. One profile of a tenant is that of devices added without one. A profile with
-- `certificate_chain` has the strategy X509_CERTIFICATE_CHAIN, 'DISABLED' in provision_strategy, the authority's fingerprint as its key, and
-- its certificate as its secret. The packages `firmware` and `software` are in the key-value store.
CREATE TABLE profile (
    id                 BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant             BLOB NOT NULL REFERENCES tenant (id),
    name               TEXT NOT NULL,
    data_table         TEXT NOT NULL,
    durability         TEXT NOT NULL,
    description        TEXT,
    created_at         INTEGER NOT NULL DEFAULT 0,
    is_default         INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)),
    data               TEXT,
    version            INTEGER NOT NULL DEFAULT 1,
    provision_strategy TEXT NOT NULL DEFAULT 'DISABLED'
        CHECK (provision_strategy IN ('DISABLED', 'ALLOW_CREATE_NEW_DEVICES', 'CHECK_PRE_PROVISIONED_DEVICES')),
    provision_key      TEXT,
    provision_secret   TEXT,
    firmware           BLOB,
    software           BLOB,
    certificate_chain  TEXT,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX profile_by_provision_key ON profile (provision_key);

-- `gateway` is 1 for a device that speaks for the devices behind it. `last_gateway` is the device that last connected this one as its
-- gateway; that device may have been deleted since. `additional_info` has no members `gateway` and `lastConnectedGateway`: the columns have them.
CREATE TABLE device (
    id              BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant          BLOB NOT NULL REFERENCES tenant (id),
    name            TEXT NOT NULL,
    profile         BLOB NOT NULL REFERENCES profile (id),
    created_at      INTEGER NOT NULL,
    gateway         INTEGER NOT NULL DEFAULT 0 CHECK (gateway IN (0, 1)),
    last_gateway    BLOB CHECK (last_gateway IS NULL OR length(last_gateway) = 16),
    customer        BLOB REFERENCES customer (id),
    label           TEXT,
    additional_info TEXT,
    version         INTEGER NOT NULL DEFAULT 1,
    firmware        BLOB,
    software        BLOB,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

-- What a device logs in with, found by its id. `value` is ThingsBoard's credentialsValue.
CREATE TABLE credentials (
    device BLOB PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
    kind   TEXT NOT NULL CHECK (kind IN ('ACCESS_TOKEN', 'MQTT_BASIC', 'X509_CERTIFICATE')),
    id     TEXT NOT NULL UNIQUE,
    value  TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE asset_profile (
    id          BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant      BLOB NOT NULL REFERENCES tenant (id),
    name        TEXT NOT NULL,
    description TEXT,
    is_default  INTEGER NOT NULL CHECK (is_default IN (0, 1)),
    created_at  INTEGER NOT NULL,
    version     INTEGER NOT NULL DEFAULT 1,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE asset (
    id              BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant          BLOB NOT NULL REFERENCES tenant (id),
    customer        BLOB REFERENCES customer (id),
    name            TEXT NOT NULL,
    profile         BLOB NOT NULL REFERENCES asset_profile (id),
    label           TEXT,
    additional_info TEXT,
    created_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL DEFAULT 1,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

-- `keys` is ThingsBoard's TelemetryEntityView. A time of 0 is not a bound.
CREATE TABLE entity_view (
    id              BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant          BLOB NOT NULL REFERENCES tenant (id),
    customer        BLOB REFERENCES customer (id),
    entity_kind     TEXT NOT NULL CHECK (entity_kind IN ('DEVICE', 'ASSET')),
    entity          BLOB NOT NULL CHECK (length(entity) = 16),
    name            TEXT NOT NULL,
    type            TEXT NOT NULL,
    keys            TEXT,
    start_ms        INTEGER NOT NULL,
    end_ms          INTEGER NOT NULL,
    additional_info TEXT,
    created_at      INTEGER NOT NULL,
    version         INTEGER NOT NULL DEFAULT 1,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

-- Kinds are ThingsBoard's entity types.
CREATE TABLE relation (
    tenant          BLOB NOT NULL REFERENCES tenant (id),
    from_kind       TEXT NOT NULL,
    from_id         BLOB NOT NULL CHECK (length(from_id) = 16),
    type_group      TEXT NOT NULL,
    type            TEXT NOT NULL,
    to_kind         TEXT NOT NULL,
    to_id           BLOB NOT NULL CHECK (length(to_id) = 16),
    additional_info TEXT,
    version         INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (from_id, type_group, type, to_id, from_kind, to_kind)
) STRICT, WITHOUT ROWID;

-- Databases of the time-series interfaces. Each is a namespace of tables, named by its id.
CREATE TABLE database (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant     BLOB NOT NULL REFERENCES tenant (id),
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

-- Databases whose tables the store must still drop, and those that were dropped. Ids never come again.
CREATE TABLE deleted_database (
    id BLOB PRIMARY KEY CHECK (length(id) = 16)
) STRICT, WITHOUT ROWID;
