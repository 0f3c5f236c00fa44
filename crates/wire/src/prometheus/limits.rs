//! Limits of remote write.

/// Most bytes of an unpacked request. Prometheus sends 2,000 samples in a request (`max_samples_per_send`), about half a
/// megabyte; agents with larger requests send up to a few megabytes.
pub const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
