-- A registry of version 10 as commit ad6acc8b left it: the text of its tables after ten migrations, and some rows.

CREATE TABLE setting (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tenant (
    id   BLOB PRIMARY KEY CHECK (length(id) = 16),
    name TEXT NOT NULL UNIQUE
, contact TEXT, additional_info TEXT, created_at INTEGER NOT NULL DEFAULT 0, version INTEGER NOT NULL DEFAULT 1, messages_per_second_max INTEGER CHECK (messages_per_second_max > 0), points_per_second_max INTEGER CHECK (points_per_second_max > 0), connections_max INTEGER CHECK (connections_max > 0)) STRICT, WITHOUT ROWID;

CREATE TABLE user (
    id                  BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant              BLOB NOT NULL REFERENCES tenant (id),
    login               TEXT NOT NULL UNIQUE,
    password_hash       TEXT NOT NULL,
    password_changed_at INTEGER NOT NULL
, session_epoch INTEGER NOT NULL DEFAULT 0, role TEXT NOT NULL DEFAULT 'viewer' CHECK (role IN ('customer', 'viewer', 'operator', 'administrator')), customer BLOB REFERENCES customer (id), first_name TEXT, last_name TEXT, phone TEXT, additional_info TEXT, created_at INTEGER NOT NULL DEFAULT 0, enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)), version INTEGER NOT NULL DEFAULT 1) STRICT, WITHOUT ROWID;

CREATE TABLE profile (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant     BLOB NOT NULL REFERENCES tenant (id),
    name       TEXT NOT NULL,
    data_table TEXT NOT NULL,
    durability TEXT NOT NULL, description TEXT, created_at INTEGER NOT NULL DEFAULT 0, is_default INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1)), data TEXT, version INTEGER NOT NULL DEFAULT 1, provision_strategy TEXT NOT NULL DEFAULT 'DISABLED'
    CHECK (provision_strategy IN ('DISABLED', 'ALLOW_CREATE_NEW_DEVICES', 'CHECK_PRE_PROVISIONED_DEVICES')), provision_key TEXT, provision_secret TEXT, firmware BLOB, software BLOB, certificate_chain TEXT,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE device (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant     BLOB NOT NULL REFERENCES tenant (id),
    name       TEXT NOT NULL,
    profile    BLOB NOT NULL REFERENCES profile (id),
    created_at INTEGER NOT NULL, gateway INTEGER NOT NULL DEFAULT 0 CHECK (gateway IN (0, 1)), last_gateway BLOB CHECK (last_gateway IS NULL OR length(last_gateway) = 16), customer BLOB REFERENCES customer (id), label TEXT, additional_info TEXT, version INTEGER NOT NULL DEFAULT 1, firmware BLOB, software BLOB,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE activation (
    user       BLOB PRIMARY KEY REFERENCES user (id) ON DELETE CASCADE,
    token      TEXT NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "api_key" (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    user       BLOB NOT NULL REFERENCES user (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    role       TEXT NOT NULL CHECK (role IN ('customer', 'viewer', 'operator', 'administrator')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    UNIQUE (user, name)
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

CREATE TABLE ended_session (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE database (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant     BLOB NOT NULL REFERENCES tenant (id),
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE deleted_database (
    id BLOB PRIMARY KEY CHECK (length(id) = 16)
) STRICT, WITHOUT ROWID;

CREATE TABLE credentials (
    device BLOB PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
    kind   TEXT NOT NULL CHECK (kind IN ('ACCESS_TOKEN', 'MQTT_BASIC', 'X509_CERTIFICATE')),
    id     TEXT NOT NULL UNIQUE,
    value  TEXT
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX profile_by_provision_key ON profile (provision_key);

INSERT INTO setting VALUES ('session_secret', randomblob(32));
INSERT INTO tenant (id, name, created_at) VALUES (randomblob(16), 'default', 1);
INSERT INTO profile (id, tenant, name, data_table, durability, created_at, is_default)
    SELECT randomblob(16), id, 'default', 'telemetry', 'fsync', 2, 1 FROM tenant;
INSERT INTO profile (id, tenant, name, data_table, durability, created_at)
    SELECT randomblob(16), id, 'truck', 'trucks', 'os', 3 FROM tenant;
INSERT INTO asset_profile (id, tenant, name, is_default, created_at)
    SELECT randomblob(16), id, 'default', 1, 4 FROM tenant;
INSERT INTO user (id, tenant, login, password_hash, password_changed_at, role, created_at)
    SELECT randomblob(16), id, 'admin@tachograph.local', '!', 7, 'administrator', 5 FROM tenant;
INSERT INTO user (id, tenant, login, password_hash, password_changed_at, role, created_at)
    SELECT randomblob(16), id, 'eve@example.org', '!', 8, 'viewer', 6 FROM tenant;
INSERT INTO api_key SELECT randomblob(16), id, 'reports', randomblob(32), 'viewer', 5, 6 FROM user;
INSERT INTO device (id, tenant, name, profile, created_at, gateway)
    SELECT randomblob(16), tenant, 'of ' || name, id, 9, name = 'truck' FROM profile;
INSERT INTO credentials SELECT id, 'ACCESS_TOKEN', 'token ' || name, NULL FROM device;
PRAGMA application_id = 0x54414348;
PRAGMA user_version = 10;
