-- Version 6: databases of the time-series interfaces. Each is a namespace of tables, named by its id.

CREATE TABLE database (
    id         BLOB PRIMARY KEY CHECK (length(id) = 16),
    tenant     BLOB NOT NULL REFERENCES tenant (id),
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (tenant, name)
) STRICT, WITHOUT ROWID;

-- Databases whose tables the store still has to drop, and those that were dropped. Ids never come again.
CREATE TABLE deleted_database (
    id BLOB PRIMARY KEY CHECK (length(id) = 16)
) STRICT, WITHOUT ROWID;
