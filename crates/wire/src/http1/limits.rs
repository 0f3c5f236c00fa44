//! Limits of HTTP/1.1, with the reason for each value.

/// Longest head of an answer (status line and headers): eight times the default limit of Apache and nginx for requests.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most headers of an answer. Apache accepts 100 in a request.
pub const HEADERS_MAX: usize = 128;
/// Longest line with the size of a chunk, including extensions, and longest line of a trailer. Servers write no extensions.
pub const CHUNK_LINE_BYTES_MAX: usize = 4 * 1024;
