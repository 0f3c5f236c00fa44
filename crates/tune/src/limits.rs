//! Limits of the probes: what they take from a target.

/// The longest body of an HTTP answer, in bytes. Statistics of shards grow with the cluster: 32 MiB are some 100,000 shards.
pub(crate) const HTTP_BODY_BYTES_MAX: u64 = 32 << 20;
/// The longest frame of Cassandra's protocol, in bytes. The settings of a node take 50 KiB, a table 1 KiB.
pub(crate) const CQL_FRAME_BYTES_MAX: u32 = 32 << 20;
/// The region servers whose configuration and counters are read.
pub(crate) const REGION_SERVERS_MAX: usize = 100;
/// The size of a client's configuration file, in bytes.
pub(crate) const CLIENT_CONFIG_BYTES_MAX: u64 = 8 << 20;
