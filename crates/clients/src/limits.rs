//! Every limit of the clients, with the reason for its value.

use std::time::Duration;

/// The largest file with certificates or a key. The authorities of a system have some 200 KiB.
pub(crate) const PEM_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The longest part of a body that an error quotes.
pub const HTTP_QUOTE_CHARS: usize = 300;
/// The longest time before a streamed answer begins: a server flushes before it sends a backup.
pub(crate) const HTTP_STREAM_BEGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes of the name of a host.
pub const HOST_BYTES_MAX: usize = 253;
