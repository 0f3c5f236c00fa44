-- Version 5: customers, assets, asset profiles, relations, entity views, roles of users, and more facts about each thing.
-- Texts named `additional_info`, `contact`, `data` and `keys` are JSON; NULL is none. `version` grows with each change of its row.

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

ALTER TABLE tenant ADD COLUMN contact TEXT;
ALTER TABLE tenant ADD COLUMN additional_info TEXT;
ALTER TABLE tenant ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
UPDATE tenant SET created_at = unixepoch() * 1000;

-- The role replaces the authority, which follows from it.
ALTER TABLE user ADD COLUMN role TEXT NOT NULL DEFAULT 'viewer' CHECK (role IN ('customer', 'viewer', 'operator', 'administrator'));
UPDATE user SET role = 'administrator' WHERE authority <> 'CUSTOMER_USER';
ALTER TABLE user DROP COLUMN authority;
ALTER TABLE user ADD COLUMN customer BLOB REFERENCES customer (id);
ALTER TABLE user ADD COLUMN first_name TEXT;
ALTER TABLE user ADD COLUMN last_name TEXT;
ALTER TABLE user ADD COLUMN phone TEXT;
ALTER TABLE user ADD COLUMN additional_info TEXT;
ALTER TABLE user ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE user ADD COLUMN enabled INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1));
ALTER TABLE user ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
UPDATE user SET created_at = unixepoch() * 1000;

-- The tokens of users who have not chosen a password yet.
CREATE TABLE activation (
    user       BLOB PRIMARY KEY REFERENCES user (id) ON DELETE CASCADE,
    token      TEXT NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The same table with all roles. Nothing refers to it.
CREATE TABLE api_key_of_all_roles (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    user       BLOB NOT NULL REFERENCES user (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    role       TEXT NOT NULL CHECK (role IN ('customer', 'viewer', 'operator', 'administrator')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    UNIQUE (user, name)
) STRICT, WITHOUT ROWID;
INSERT INTO api_key_of_all_roles SELECT id, user, name, hash, role, created_at, expires_at FROM api_key;
DROP TABLE api_key;
ALTER TABLE api_key_of_all_roles RENAME TO api_key;

-- `data` is ThingsBoard's profileData as the client sent it. One profile of a tenant is that of devices added without one.
ALTER TABLE profile ADD COLUMN description TEXT;
ALTER TABLE profile ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE profile ADD COLUMN is_default INTEGER NOT NULL DEFAULT 0 CHECK (is_default IN (0, 1));
ALTER TABLE profile ADD COLUMN data TEXT;
ALTER TABLE profile ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
UPDATE profile SET created_at = unixepoch() * 1000, is_default = (name = 'default');

-- `additional_info` has no members `gateway` and `lastConnectedGateway`: the columns gateway and last_gateway have them.
ALTER TABLE device ADD COLUMN customer BLOB REFERENCES customer (id);
ALTER TABLE device ADD COLUMN label TEXT;
ALTER TABLE device ADD COLUMN additional_info TEXT;
ALTER TABLE device ADD COLUMN version INTEGER NOT NULL DEFAULT 1;

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

-- Each tenant has the asset profile `default`. Its id is a random UUID (version 4).
INSERT INTO asset_profile (id, tenant, name, is_default, created_at)
SELECT unhex(hex(randomblob(6)) || '4' || substr(hex(randomblob(2)), 2) || substr('89AB', 1 + abs(random() % 4), 1)
             || substr(hex(randomblob(2)), 2) || hex(randomblob(6))),
       id, 'default', 1, unixepoch() * 1000
FROM tenant;

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

-- `keys` is ThingsBoard's TelemetryEntityView. Times are milliseconds since the epoch, 0 for no bound.
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

-- Sessions that their users have ended, until their tokens expire.
CREATE TABLE ended_session (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
