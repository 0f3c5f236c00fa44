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
