//! Limits of the probes: what they take from a target.

use std::time::Duration;

/// The longest body of an HTTP answer, in bytes. Statistics of shards grow with the cluster: 32 MiB are some 100,000 shards.
pub(crate) const HTTP_BODY_BYTES_MAX: u64 = 32 << 20;
/// The longest frame of Cassandra's protocol, in bytes. The settings of a node take 50 KiB, a table 1 KiB.
pub(crate) const CQL_FRAME_BYTES_MAX: u32 = 32 << 20;
/// The region servers whose configuration and counters are read.
pub(crate) const REGION_SERVERS_MAX: usize = 100;
/// The size of a client's configuration file, in bytes.
pub(crate) const CLIENT_CONFIG_BYTES_MAX: u64 = 8 << 20;
/// The most keys of a Redis that a sample looks at.
pub(crate) const SAMPLED_KEYS_MAX: usize = 2_000;
/// The longest time for this sample. A key costs two or three short commands.
pub(crate) const SAMPLING_TIME_MAX: Duration = Duration::from_secs(2);
/// The most fields of a hash whose values are read. Larger hashes are counted only.
pub(crate) const SAMPLED_FIELDS_MAX: f64 = 512.0;
/// A key with more elements is big.
pub(crate) const BIG_KEY_ELEMENTS: f64 = 10_000.0;
/// The most tables of a PostgreSQL that are looked at: those with most dead rows.
pub(crate) const TABLES_MAX: usize = 100;
/// The size of an undo file, in bytes. A change takes about 500.
pub(crate) const UNDO_FILE_BYTES_MAX: u64 = 4 << 20;
/// The longest wait until a target shows a value that it has taken. PostgreSQL reads its file, InnoDB resizes its pool.
pub(crate) const EFFECT_TIME_MAX: Duration = Duration::from_secs(15);
/// The pause between two looks at the target.
pub(crate) const EFFECT_PAUSE: Duration = Duration::from_millis(100);
/// The longest wait for a target that starts again, or that shall be restored after it has gone.
pub(crate) const RESTART_TIME_MAX: Duration = Duration::from_secs(120);
/// The pause between two attempts to connect to it.
pub(crate) const RESTART_PAUSE: Duration = Duration::from_millis(200);
/// The longest file of a chain, in bytes. A layer takes some 300 bytes.
pub(crate) const CHAIN_FILE_BYTES_MAX: u64 = 1 << 20;
/// The most layers of a chain.
pub(crate) const CHAIN_LAYERS_MAX: usize = 32;
