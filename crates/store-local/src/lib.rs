//! The embedded store: log, memtable, parts, manifest, recovery.
