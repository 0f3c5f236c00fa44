-- Version 1 of the registry. Ids are UUIDs as 16 bytes, times are milliseconds since the epoch, UTC.

-- Values of the installation itself: session_secret (32 random bytes), admin_pending (login of the administrator whose
-- first password nobody has confirmed to keep), last_receipt_us (the last time of receipt, in microseconds).
CREATE TABLE setting (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tenant (
    id   BLOB PRIMARY KEY CHECK (length(id) = 16),
    name TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

CREATE TABLE user (
    id                  BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant              BLOB NOT NULL REFERENCES tenant (id),
    login               TEXT NOT NULL UNIQUE,
    authority           TEXT NOT NULL CHECK (authority IN ('SYS_ADMIN', 'TENANT_ADMIN', 'CUSTOMER_USER')),
    password_hash       TEXT NOT NULL,
    password_changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE profile (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant     BLOB NOT NULL REFERENCES tenant (id),
    name       TEXT NOT NULL,
    data_table TEXT NOT NULL,
    durability TEXT NOT NULL,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE device (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant     BLOB NOT NULL REFERENCES tenant (id),
    name       TEXT NOT NULL,
    profile    BLOB NOT NULL REFERENCES profile (id),
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

-- Apart from the device because other kinds of credentials come to stand beside tokens.
CREATE TABLE access_token (
    device BLOB PRIMARY KEY REFERENCES device (id) ON DELETE CASCADE,
    token  TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
