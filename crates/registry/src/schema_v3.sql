-- Version 3: keys with which programs log in as a user. `hash` is SHA-256 of the key, which is random and long; the key itself is not kept.
-- `role` is the highest role of the key. `expires_at` is NULL for a key that does not expire.
CREATE TABLE api_key (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    user       BLOB NOT NULL REFERENCES user (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    role       TEXT NOT NULL CHECK (role IN ('administrator', 'viewer')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    UNIQUE (user, name)
) STRICT, WITHOUT ROWID;

-- Tenants that were deleted. The server drops their tables, also those that it could not drop at once. A tenant that is unknown without being
-- listed here keeps its tables: the registry may be one of an older backup.
CREATE TABLE deleted_tenant (
    id BLOB PRIMARY KEY CHECK (length(id) = 16)
) STRICT, WITHOUT ROWID;
